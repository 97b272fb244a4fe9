//! Several nodes on one database: nothing is missed, nothing is given twice, and hints come through.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use domain::RecordKind;
use store::{Lane, Node, Ready, SharedStore, Store, StoreError, StoredFact, Taking};

use super::database::{Database, soon};
use crate::given::*;

const NODES: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn follower_misses_no_fact_while_four_nodes_commit() {
    const WRITERS: usize = 8;
    const EACH: usize = 60;
    let database = Database::missing().await;
    let reader = database.open().await;
    let left = Arc::new(AtomicUsize::new(NODES * WRITERS));
    for node in 0..NODES {
        let store = Arc::new(database.open().await);
        for writer in 0..WRITERS {
            let (store, left) = (store.clone(), left.clone());
            tokio::spawn(async move {
                for number in 0..EACH {
                    let id = job(&format!("{node}-{writer}-{number}"));
                    let step = commit(vec![creation(&id, created(), at(0))], at(0));
                    store.commit(step).await.unwrap();
                }
                left.fetch_sub(1, Ordering::SeqCst);
            });
        }
    }
    // What was not seen when it was passed would never be seen.
    let mut followed: Vec<StoredFact> = Vec::new();
    let mut while_written = 0;
    soon(async {
        loop {
            let over = left.load(Ordering::SeqCst) == 0;
            let after = followed.last().map_or(0, |fact| fact.position);
            let page = reader.facts_after(after, 50).await.unwrap();
            if page.is_empty() && over {
                return;
            }
            while_written += if over { 0 } else { page.len() };
            followed.extend(page);
        }
    })
    .await;
    assert_eq!(followed.len(), NODES * WRITERS * EACH);
    assert_eq!(followed, all_facts(&reader).await);
    assert!(while_written > EACH, "only {while_written} were read while others wrote");
    assert!(database.verified().await.differences.is_empty());
}

async fn all_facts(store: &dyn Store) -> Vec<StoredFact> {
    let mut facts: Vec<StoredFact> = Vec::new();
    loop {
        let page = store.facts_after(facts.last().map_or(0, |fact| fact.position), 1_000).await.unwrap();
        if page.is_empty() {
            return facts;
        }
        facts.extend(page);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nodes_that_take_at_the_same_time_never_get_the_same_record() {
    const JOBS: usize = 300;
    let database = Database::missing().await;
    let first = database.open().await;
    for number in 0..JOBS {
        write(&first, &job(&format!("{number:03}")), vec![created()], at(0)).await;
    }
    let mut takers = Vec::new();
    for node in 0..NODES {
        let store = database.open().await;
        takers.push(tokio::spawn(async move {
            let mut taken = Vec::new();
            loop {
                let batch =
                    store.take_ready(LANE.into(), take(&format!("node-{node}"), at(1), 7)).await.unwrap();
                taken.extend(batch.iter().map(|taken| taken.id.clone()));
                // A node that got none may have met others everywhere; it looks whether anything is left.
                if batch.is_empty() && store.ready_lanes().await.unwrap().is_empty() {
                    return taken;
                }
            }
        }));
    }
    let mut all = Vec::new();
    for taker in takers {
        all.extend(soon(taker).await.unwrap());
    }
    assert_eq!(all.len(), JOBS);
    assert_eq!(all.into_iter().collect::<BTreeSet<_>>().len(), JOBS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nodes_that_take_at_the_same_time_keep_to_the_limit_of_a_lane_together() {
    const JOBS: usize = 200;
    const LIMIT: usize = 5;
    const EACH: usize = 3;
    let database = Database::missing().await;
    let first = database.open().await;
    for number in 0..JOBS {
        write(&first, &job(&format!("{number:03}")), vec![created()], at(0)).await;
    }
    let (most, held) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut takers = Vec::new();
    for node in 0..NODES {
        let (store, most, held) = (database.open().await, most.clone(), held.clone());
        takers.push(tokio::spawn(async move {
            loop {
                let lane = Lane { name: LANE, limit: Some(LIMIT) };
                let batch = store.take_ready(lane, take(&format!("node-{node}"), at(1), EACH)).await.unwrap();
                most.fetch_max(held.fetch_add(batch.len(), Ordering::SeqCst) + batch.len(), Ordering::SeqCst);
                for taken in &batch {
                    held.fetch_sub(1, Ordering::SeqCst);
                    write(&store, &taken.id, vec![dispatched(1), completed()], at(1)).await;
                }
                if batch.is_empty() && store.ready_lanes().await.unwrap().is_empty() {
                    return;
                }
            }
        }));
    }
    for taker in takers {
        soon(taker).await.unwrap();
    }
    let most = most.load(Ordering::SeqCst);
    assert!(most > EACH, "only one node took at a time: {most}");
    assert!(most <= LIMIT, "{most} were held at the same time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_nodes_with_one_key_exactly_one_makes_its_job_and_the_others_are_shown_its_answer() {
    const KEYS: usize = 40;
    let database = Database::missing().await;
    let mut stores = Vec::new();
    for _ in 0..NODES {
        stores.push(Arc::new(database.open().await));
    }
    for number in 0..KEYS {
        let name = format!("key-{number}");
        let rivals = stores.iter().enumerate().map(|(node, store)| {
            let id = job(&format!("{number}-{node}"));
            let mut step = commit(vec![creation(&id, created(), at(0))], at(0));
            step.keys = vec![kept(key(&name), &id, format!("made by {node}").as_bytes())];
            store.commit(step)
        });
        let answers = soon(futures::future::join_all(rivals)).await;
        let made = answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(made, 1, "{answers:?}");
        let first = stores[0].key(&key(&name)).await.unwrap().unwrap();
        for refused in answers.into_iter().filter_map(Result::err) {
            assert_eq!(refused, StoreError::KeyTaken(Box::new(first.clone())));
        }
    }
    assert_eq!(all_facts(&*stores[0]).await.len(), KEYS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn batches_that_name_the_same_records_in_any_order_never_wait_for_each_other_in_a_circle() {
    const ROUNDS: usize = 30;
    let database = Database::missing().await;
    let first = database.open().await;
    let names: Vec<String> = (0..10).map(|number| format!("{number}")).collect();
    for name in &names {
        write(&first, &job(name), vec![created()], at(0)).await;
    }
    let mut nodes = Vec::new();
    for node in 0..NODES {
        let (store, mut names) = (database.open().await, names.clone());
        if node % 2 == 1 {
            names.reverse();
        }
        nodes.push(tokio::spawn(async move {
            let mut written = 0;
            while written < ROUNDS {
                let mut changes = Vec::new();
                for name in &names {
                    changes.push(next_change(&store, &job(name), vec![noted("again")], at(1)).await);
                }
                match store.commit(commit(changes, at(1))).await {
                    Ok(_) => written += 1,
                    Err(StoreError::Conflict) => {}
                    Err(other) => panic!("{other}"),
                }
            }
        }));
    }
    for node in nodes {
        soon(node).await.unwrap();
    }
    assert_eq!(first.facts_of(&job("0"), 0, 1_000).await.unwrap().len(), 1 + NODES * ROUNDS);
    assert!(database.verified().await.differences.is_empty());
}

#[tokio::test]
async fn node_is_told_that_another_wrote_and_not_that_it_did_itself() {
    let database = Database::missing().await;
    let (one, other) = (database.open().await, database.open().await);
    let mut hints = other.hints();
    // It has begun to listen.
    soon(hints.wait_for(|heard| *heard > 0)).await.unwrap();
    let before = *hints.borrow_and_update();
    write(&one, &job("a"), vec![created()], at(0)).await;
    soon(hints.wait_for(|heard| *heard > before)).await.unwrap();

    let before = *hints.borrow_and_update();
    let mut seen_by_one = one.hints();
    soon(seen_by_one.wait_for(|heard| *heard > 0)).await.unwrap();
    let own = *seen_by_one.borrow_and_update();
    write(&other, &job("b"), vec![created()], at(0)).await;
    soon(seen_by_one.wait_for(|heard| *heard > own)).await.unwrap();
    assert_eq!(*hints.borrow_and_update(), before);
}

#[tokio::test]
async fn pulse_says_the_databases_time_and_what_is_due_next_and_every_batch_measures_time() {
    let database = Database::missing().await;
    let store = database.open().await;
    assert_eq!(store.pulse("nobody").await.unwrap().job_due_at, None);
    write(&store, &job("a"), vec![created_with(|new| new.due_at = Some(at(500)))], at(1)).await;
    let heard = store.time().borrow().unwrap();
    let pulse = store.pulse("nobody").await.unwrap();
    assert_eq!(pulse.job_due_at, store.earliest_due(RecordKind::Job).await.unwrap());
    assert_eq!(pulse.operation_due_at, None);
    assert!(heard.at <= pulse.time, "{heard:?} {pulse:?}");
    let passed = pulse.time.micros() - heard.at.micros();
    assert!(passed < 60_000_000, "{passed}");
}

fn node(id: &str) -> Node {
    Node {
        id: id.to_owned(),
        name: "machine".to_owned(),
        url: "http://127.0.0.1:7420".to_owned(),
        version: "0.1.0".to_owned(),
        schema_version: 4,
        executors: vec!["noop".to_owned(), "press".to_owned()],
        started_at: at(1),
        heartbeat_at: at(1),
        attempts: 2,
        polls: 3,
        taking: Taking::Takes,
    }
}

#[tokio::test]
async fn heartbeat_is_its_nodes_time_and_forgets_nodes_after_an_hour() {
    let database = Database::missing().await;
    let store = database.open().await;
    let base = store.pulse("a").await.unwrap().time.plus_micros(-20_000_000_000);
    let heard = |id: &str, seconds| Node { heartbeat_at: base.plus_seconds(seconds), ..node(id) };
    let first = store.beat(heard("a", 10_000)).await.unwrap();
    assert_eq!((first.ready, first.taking), (Ready::None, Some(Taking::Takes)));
    store.beat(heard("b", 6_402)).await.unwrap();
    assert_eq!(store.tell_node("a", Taking::Drains).await, Ok(true));
    write(&store, &job("a"), vec![created()], at(1)).await;
    let second = store.beat(heard("a", 10_001)).await.unwrap();
    assert!(second.time > first.time);
    assert_eq!((second.ready, second.taking), (Ready::Some, Some(Taking::Drains)));
    let nodes = store.nodes().await.unwrap();
    let heartbeats: BTreeSet<_> = nodes.iter().map(|node| node.heartbeat_at).collect();
    assert_eq!(
        heartbeats,
        BTreeSet::from([base.plus_seconds(6_402), base.plus_seconds(10_001)]),
        "the server's clock says something else"
    );
    store.beat(heard("a", 10_003)).await.unwrap();
    assert_eq!(store.nodes().await.unwrap().len(), 1);
    // A node that is ahead of the server's clock forgets nobody.
    let ahead = Node { heartbeat_at: second.time.plus_seconds(7_200), ..node("c") };
    let now = Node { heartbeat_at: second.time, ..node("a") };
    store.beat(now).await.unwrap();
    store.beat(ahead).await.unwrap();
    assert_eq!(store.nodes().await.unwrap().len(), 2);
}

#[tokio::test]
async fn job_that_only_a_peer_can_take_is_no_reason_for_a_node_to_look() {
    let database = Database::missing().await;
    let store = database.open().await;
    write(&store, &job("a"), vec![created_with(|new| new.spec.executor = None)], at(1)).await;
    assert_eq!(store.ready_lanes().await.unwrap().len(), 1);
    assert_eq!(store.pulse("nobody").await.unwrap().ready, Ready::None);
}

#[tokio::test]
async fn versions_of_records_are_told_at_once_and_those_that_are_gone_are_left_out() {
    let database = Database::missing().await;
    let store = database.open().await;
    write(&store, &job("a"), vec![created()], at(1)).await;
    let ids = [job("a"), job("b")];
    assert_eq!(store.versions(&ids).await, Ok(vec![(job("a"), 1)]));
}

#[tokio::test]
async fn nodes_agree_on_the_key_of_whoever_came_first() {
    let database = Database::missing().await;
    let (one, other) = (database.open().await, database.open().await);
    assert_eq!(one.shared_key("callback", &[1; 32]).await, Ok(vec![1; 32]));
    assert_eq!(other.shared_key("callback", &[2; 32]).await, Ok(vec![1; 32]));
}

#[tokio::test]
async fn node_that_finds_another_schema_or_other_views_writes_nothing_more_and_says_why() {
    for mark in ["schema", "view_format"] {
        let database = Database::missing().await;
        let store = database.open().await;
        write(&store, &job("a"), vec![created()], at(1)).await;
        let raw = database.raw().await;
        let newer = format!("UPDATE meta SET value = 1000 WHERE name = '{mark}'");
        raw.batch_execute(&newer).await.unwrap();
        let refused =
            store.commit(commit(vec![creation(&job("b"), created(), at(2))], at(2))).await.unwrap_err();
        assert!(matches!(refused, StoreError::Unavailable(_)), "{refused:?}");
        let told = soon(store.stopped()).await;
        assert!(told.contains("1000") && told.contains("the newer longhaul"), "{told}");
        assert_eq!(all_facts(&store).await.len(), 1);
        assert!(matches!(store.beat(node("a")).await, Err(StoreError::Unavailable(_))));
    }
}
