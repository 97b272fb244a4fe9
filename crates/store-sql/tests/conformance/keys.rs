//! Idempotency keys: one answer per (principal, route, key), the same as long as it is kept.

use store::limits::MAX_FORGOTTEN_KEYS;
use store::{IdempotencyKey, KeptKey, Store, StoreError};
use tokio::task::JoinSet;

use crate::given::*;
use crate::retirement::retiring;
use crate::subject::on_every_store;

const ANSWER: &[u8] = b"{\"id\":\"work-a\"}\n\xff\0 not even text";

fn creating(name: &str, key: IdempotencyKey, answer: &[u8]) -> store::Commit {
    let mut step = commit(vec![creation(&job(name), created(), at(0))], at(0));
    step.keys = vec![kept(key, &job(name), answer)];
    step
}

#[tokio::test]
async fn key_that_was_used_gives_the_first_answer_byte_for_byte_and_writes_nothing() {
    on_every_store(async |store| {
        assert_eq!(store.key(&key("k")).await, Ok(None));
        store.commit(creating("a", key("k"), ANSWER)).await.unwrap();
        let before = sight(&*store).await;

        let first = kept(key("k"), &job("a"), ANSWER);
        let refused = store.commit(creating("b", key("k"), b"another answer")).await;
        assert_eq!(refused, Err(StoreError::KeyTaken(Box::new(first.clone()))));
        assert_eq!(store.key(&key("k")).await, Ok(Some(first)));
        assert_eq!(sight(&*store).await, before);
    })
    .await;
}

#[tokio::test]
async fn key_is_one_per_principal_route_and_key() {
    on_every_store(async |store| {
        let others = [
            key("k"),
            key("other"),
            IdempotencyKey { principal: "token:grace".to_owned(), ..key("k") },
            IdempotencyKey { route: "POST /work".to_owned(), ..key("k") },
            // Not to be had by moving bytes between the three.
            IdempotencyKey { principal: "token:adaPOST /jobs".to_owned(), route: String::new(), ..key("k") },
        ];
        for (name, key) in ["a", "b", "c", "d", "e"].into_iter().zip(&others) {
            store.commit(creating(name, key.clone(), name.as_bytes())).await.unwrap();
        }
        for (name, key) in ["a", "b", "c", "d", "e"].into_iter().zip(&others) {
            assert_eq!(store.key(key).await.unwrap().unwrap().record, job(name));
        }
    })
    .await;
}

#[tokio::test]
async fn commit_that_was_refused_does_not_use_its_key_up() {
    on_every_store(async |store| {
        write(&*store, &job("a"), vec![created()], at(0)).await;
        assert_eq!(store.commit(creating("a", key("k"), ANSWER)).await, Err(StoreError::Conflict));
        assert_eq!(store.key(&key("k")).await, Ok(None));
        store.commit(creating("b", key("k"), ANSWER)).await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixty_four_commits_at_once_under_one_key_make_one_job() {
    on_every_store(async |store| {
        for round in 0..8 {
            let one_key = key(&format!("round-{round}"));
            let mut tasks = JoinSet::new();
            for caller in 0..64 {
                let (store, one_key) = (store.share(), one_key.clone());
                let name = format!("{round}-{caller}");
                tasks.spawn(async move { store.commit(creating(&name, one_key, name.as_bytes())).await });
            }
            let (mut winners, mut refused) = (0, Vec::new());
            while let Some(answer) = tasks.join_next().await {
                match answer.unwrap() {
                    Ok(_) => winners += 1,
                    Err(StoreError::KeyTaken(kept)) => refused.push(*kept),
                    Err(other) => panic!("{other}"),
                }
            }
            let stored = store.key(&one_key).await.unwrap().unwrap();
            assert_eq!((winners, refused.len()), (1, 63));
            assert!(refused.iter().all(|kept| *kept == stored));
            assert_eq!(store.facts_of(&stored.record, 0, 10).await.unwrap().len(), 1);
        }
        let jobs: u64 = store.job_counts().await.unwrap().into_iter().map(|(_, count)| count).sum();
        assert_eq!(jobs, 8);
    })
    .await;
}

/// A finished job of this name and a key of the same name that is kept until then.
async fn finished(store: &dyn Store, name: &str, keep_until: u64) {
    let facts = vec![created(), dispatched(1), completed()];
    let mut step = commit(vec![change(&job(name), None, facts, at(0))], at(0));
    step.keys = vec![KeptKey { keep_until: at(keep_until), ..kept(key(name), &job(name), ANSWER) }];
    store.commit(step).await.unwrap();
}

/// A commit that writes a key at this time: the occasion to forget others.
async fn occasion(store: &dyn Store, name: &str, seconds: u64) {
    let mut step = commit(vec![creation(&job(name), created(), at(seconds))], at(seconds));
    step.keys = vec![KeptKey { keep_until: at(seconds + 86_400), ..kept(key(name), &job(name), ANSWER) }];
    store.commit(step).await.unwrap();
}

async fn is_kept(store: &dyn Store, name: &str) -> bool {
    store.key(&key(name)).await.unwrap().is_some()
}

#[tokio::test]
async fn key_lives_to_the_later_of_its_own_time_and_the_end_of_its_record() {
    on_every_store(async |store| {
        for (name, keep_until) in [("early", 10), ("late", 100), ("never", 10)] {
            finished(&*store, name, keep_until).await;
        }
        // Its own time has passed, its record is there.
        occasion(&*store, "first", 20).await;
        assert!(is_kept(&*store, "early").await);
        // Its record goes: with it a key whose time has passed, and no other.
        for name in ["early", "late"] {
            store.commit(retiring(&*store, &job(name), 30).await).await.unwrap();
        }
        assert!(!is_kept(&*store, "early").await && is_kept(&*store, "late").await);
        let taken = store.commit(creating("other", key("late"), b"another answer")).await.unwrap_err();
        assert_eq!(taken.code(), "idempotency_key_taken");
        // Its own time comes too.
        occasion(&*store, "second", 99).await;
        assert!(is_kept(&*store, "late").await);
        occasion(&*store, "third", 100).await;
        assert!(!is_kept(&*store, "late").await);
        for name in ["never", "first", "second", "third"] {
            assert!(is_kept(&*store, name).await, "{name}");
        }
    })
    .await;
}

#[tokio::test]
async fn keys_that_outlived_their_records_are_forgotten_in_bounded_batches_oldest_first() {
    on_every_store(async |store| {
        let names: Vec<String> = (0..MAX_FORGOTTEN_KEYS + 7).map(|number| format!("{number:03}")).collect();
        for (name, keep_until) in names.iter().zip(50..) {
            finished(&*store, name, keep_until).await;
            store.commit(retiring(&*store, &job(name), 1).await).await.unwrap();
        }
        let count = async || {
            let mut count = 0;
            for name in &names {
                count += usize::from(is_kept(&*store, name).await);
            }
            count
        };
        assert_eq!(count().await, names.len());
        // A commit without keys forgets nothing.
        write(&*store, &job("plain"), vec![created()], at(900)).await;
        assert_eq!(count().await, names.len());
        occasion(&*store, "first", 901).await;
        assert_eq!(count().await, 7);
        assert!(!is_kept(&*store, "099").await && is_kept(&*store, "100").await);
        occasion(&*store, "second", 902).await;
        assert_eq!(count().await, 0);
    })
    .await;
}

#[tokio::test]
async fn key_that_was_committed_with_the_retirement_of_its_record_does_not_stay_for_ever() {
    on_every_store(async |store| {
        finished(&*store, "a", 10).await;
        let mut last = retiring(&*store, &job("a"), 20).await;
        last.keys = vec![KeptKey { keep_until: at(30), ..kept(key("retire"), &job("a"), ANSWER) }];
        store.commit(last).await.unwrap();
        assert!(is_kept(&*store, "retire").await);
        occasion(&*store, "first", 29).await;
        assert!(is_kept(&*store, "retire").await);
        occasion(&*store, "second", 30).await;
        assert!(!is_kept(&*store, "retire").await);
    })
    .await;
}
