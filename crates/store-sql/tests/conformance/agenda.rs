//! The agenda: who may take what, when, for how long, and in which order.

use domain::job::pinned;
use domain::run::StepLink;
use domain::{Fact, Lease, Record, RecordKind, RunId};
use store::{Lane, StoreError};
use tokio::task::JoinSet;

use crate::given::*;
use crate::subject::on_every_store;

// conforms: A22
#[tokio::test]
async fn due_records_are_taken_oldest_first_and_never_more_than_asked_for() {
    on_every_store(async |store| {
        for (name, due) in [("c", 10), ("a", 5), ("d", 11), ("b", 7)] {
            let later = created_with(|new| new.due_at = Some(at(due)));
            write(&*store, &job(name), vec![later], at(0)).await;
        }
        let first = store.take_due(RecordKind::Job, take("node-a", at(10), 2)).await.unwrap();
        assert_eq!(ids(&first), ["work-a", "work-b"]);
        let second = store.take_due(RecordKind::Job, take("node-a", at(10), 2)).await.unwrap();
        assert_eq!(ids(&second), ["work-c"]);
        assert!(store.take_due(RecordKind::Job, take("node-a", at(10), 2)).await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn record_is_due_at_its_time_and_not_a_microsecond_before() {
    on_every_store(async |store| {
        let later = created_with(|new| new.due_at = Some(at(5)));
        write(&*store, &job("a"), vec![later], at(0)).await;
        let early = take("node-a", at(5).plus_micros(-1), 10);
        assert!(store.take_due(RecordKind::Job, early).await.unwrap().is_empty());
        let due = store.take_due(RecordKind::Job, take("node-a", at(5), 10)).await.unwrap();
        assert_eq!(ids(&due), ["work-a"]);
    })
    .await;
}

#[tokio::test]
async fn each_kind_of_record_is_taken_on_its_own() {
    on_every_store(async |store| {
        let later = created_with(|new| new.due_at = Some(at(5)));
        write(&*store, &job("a"), vec![later], at(0)).await;
        write(&*store, &operation("a"), vec![accepted(&job("a"), at(6))], at(0)).await;
        assert_eq!(store.earliest_due(RecordKind::Job).await, Ok(Some(at(5))));
        assert_eq!(store.earliest_due(RecordKind::Operation).await, Ok(Some(at(6))));
        let polls = store.take_due(RecordKind::Operation, take("node-a", at(9), 10)).await.unwrap();
        assert_eq!(ids(&polls), ["op-a"]);
        let jobs = store.take_due(RecordKind::Job, take("node-a", at(9), 10)).await.unwrap();
        assert_eq!(ids(&jobs), ["work-a"]);
    })
    .await;
}

#[tokio::test]
async fn ready_jobs_are_taken_by_lane_then_priority_then_age() {
    on_every_store(async |store| {
        let jobs = [
            ("plain-2", "render", 0, 2),
            ("plain-1", "render", 0, 1),
            ("low", "render", -5, 0),
            ("other", "print", 9, 0),
            ("high-3", "render", 5, 3),
            ("high-1", "render", 5, 1),
        ];
        for (name, lane, priority, second) in jobs {
            let fact = created_with(|new| {
                new.spec.lane = Some(lane.to_owned());
                new.spec.priority = priority;
            });
            write(&*store, &job(name), vec![fact], at(second)).await;
        }
        let first = store.take_ready("render".into(), take("node-a", at(9), 3)).await.unwrap();
        assert_eq!(ids(&first), ["work-high-1", "work-high-3", "work-plain-1"]);
        let rest = store.take_ready("render".into(), take("node-a", at(9), 3)).await.unwrap();
        assert_eq!(ids(&rest), ["work-plain-2", "work-low"]);
        let other = store.take_ready("print".into(), take("node-a", at(9), 3)).await.unwrap();
        assert_eq!(ids(&other), ["work-other"]);
        assert!(store.take_ready("nowhere".into(), take("node-a", at(9), 3)).await.unwrap().is_empty());
    })
    .await;
}

// conforms: A25
#[tokio::test]
async fn record_that_another_holds_is_skipped_and_the_rest_is_taken() {
    on_every_store(async |store| {
        let made = create_jobs(&*store, ["a", "b", "c"].map(str::to_owned)).await;
        taken(&*store, &made[1], "node-b", at(1)).await;
        let again = store.take(&made[1], take("node-a", at(1), 1)).await;
        assert_eq!(again, Err(StoreError::ClaimHeld));
        let ready = store.take_ready(LANE.into(), take("node-a", at(1), 10)).await.unwrap();
        assert_eq!(ids(&ready), ["work-a", "work-c"]);
        assert_eq!(store.load(&made[1]).await.unwrap().unwrap().claim.unwrap().owner, owner("node-b"));
    })
    .await;
}

// conforms: A24 A32
#[tokio::test]
async fn end_of_a_lease_makes_a_held_record_due_and_equality_is_the_end() {
    on_every_store(async |store| {
        write(&*store, &job("a"), vec![created()], at(0)).await;
        taken(&*store, &job("a"), "node-a", at(0)).await;
        write(&*store, &job("a"), vec![dispatched(1)], at(1)).await;
        // Node a is never heard of again.
        assert_eq!(store.earliest_due(RecordKind::Job).await, Ok(Some(at(60))));
        let early = at(60).plus_micros(-1);
        assert!(store.take_due(RecordKind::Job, take("node-b", early, 10)).await.unwrap().is_empty());
        assert_eq!(store.take(&job("a"), take("node-b", early, 1)).await, Err(StoreError::ClaimHeld));

        let due = store.take_due(RecordKind::Job, take("node-b", at(60), 10)).await.unwrap();
        assert_eq!(ids(&due), ["work-a"]);
        assert_eq!(due[0].claim.fence(), fence("node-b", 1));
        assert_eq!(due[0].claim.lease_expires_at, at(120));
        assert_eq!(due[0].claim.heartbeat_at, at(60));
        assert_eq!(store.earliest_due(RecordKind::Job).await, Ok(Some(at(120))));
    })
    .await;
}

#[tokio::test]
async fn record_whose_own_limit_has_passed_is_taken_from_a_live_owner() {
    on_every_store(async |store| {
        let short = created_with(|new| new.spec.expires_at = Some(at(30)));
        write(&*store, &job("a"), vec![short], at(0)).await;
        let held = taken(&*store, &job("a"), "node-a", at(10)).await.claim;
        write(&*store, &job("a"), vec![dispatched(1)], at(11)).await;
        assert_eq!(store.earliest_due(RecordKind::Job).await, Ok(Some(at(30))));
        assert_eq!(store.take(&job("a"), take("node-b", at(29), 1)).await, Err(StoreError::ClaimHeld));

        let due = store.take_due(RecordKind::Job, take("node-b", at(30), 10)).await.unwrap();
        assert_eq!(due[0].claim.fence(), fence("node-b", held.claim_version + 1));
        // The limit is the taker's business now: only the end of its lease is due.
        assert_eq!(store.earliest_due(RecordKind::Job).await, Ok(Some(at(90))));
        let renewing = store.renew(&job("a"), held.fence(), at(31), Lease::DEFAULT).await;
        assert_eq!(renewing, Err(StoreError::Fenced));
    })
    .await;
}

// conforms: A28
#[tokio::test]
async fn renewal_swaps_the_version_once_and_moves_the_end_of_the_lease() {
    on_every_store(async |store| {
        write(&*store, &job("a"), vec![created()], at(0)).await;
        let claim = taken(&*store, &job("a"), "node-a", at(0)).await.claim;
        write(&*store, &job("a"), vec![dispatched(1)], at(0)).await;
        let renewed = store.renew(&job("a"), claim.fence(), at(20), Lease::DEFAULT).await.unwrap().claim;
        assert_eq!(renewed.fence(), fence("node-a", 1));
        assert_eq!((renewed.heartbeat_at, renewed.lease_expires_at), (at(20), at(80)));
        assert_eq!(store.earliest_due(RecordKind::Job).await, Ok(Some(at(80))));
        assert_eq!(store.load(&job("a")).await.unwrap().unwrap().claim, Some(renewed.clone()));

        let twice = store.renew(&job("a"), claim.fence(), at(21), Lease::DEFAULT).await;
        assert_eq!(twice, Err(StoreError::Fenced));
        assert!(store.take_due(RecordKind::Job, take("node-b", at(79), 10)).await.unwrap().is_empty());
        let late = store.take_due(RecordKind::Job, take("node-b", at(80), 10)).await.unwrap();
        assert_eq!(late[0].claim.fence(), fence("node-b", 2));
    })
    .await;
}

#[tokio::test]
async fn record_handed_back_is_due_at_once_and_keeps_its_version() {
    on_every_store(async |store| {
        write(&*store, &job("a"), vec![created()], at(0)).await;
        let claim = taken(&*store, &job("a"), "node-a", at(0)).await.claim;
        let wrong = store.hand_back(&job("a"), fence("node-b", 0), at(5), at(5)).await;
        assert_eq!(wrong, Err(StoreError::Fenced));
        assert_eq!(store.earliest_due(RecordKind::Job).await, Ok(Some(at(60))));

        store.hand_back(&job("a"), claim.fence(), at(5), at(5)).await.unwrap();
        assert_eq!(store.earliest_due(RecordKind::Job).await, Ok(Some(at(5))));
        let left = store.load(&job("a")).await.unwrap().unwrap().claim.unwrap();
        assert_eq!((left.fence(), left.lease_expires_at), (claim.fence(), at(5)));
        let due = store.take_due(RecordKind::Job, take("node-b", at(5), 10)).await.unwrap();
        assert_eq!(due[0].claim.fence(), fence("node-b", 1));
    })
    .await;
}

#[tokio::test]
async fn record_handed_back_for_later_is_due_then_or_at_its_own_limit() {
    on_every_store(async |store| {
        write(&*store, &operation("a"), vec![accepted(&job("a"), at(5))], at(0)).await;
        let loaded = store.load(&operation("a")).await.unwrap().unwrap();
        let Record::Operation(open) = &*loaded.record else { panic!("it is an operation") };
        let expires_at = open.expires_at;
        for (due_at, expected) in [(at(20), at(20)), (expires_at.plus_seconds(60), expires_at)] {
            let claim = taken(&*store, &operation("a"), "node-a", at(5)).await.claim;
            store.hand_back(&operation("a"), claim.fence(), at(5), due_at).await.unwrap();
            assert_eq!(store.earliest_due(RecordKind::Operation).await, Ok(Some(expected)));
            let early = take("node-b", expected.plus_micros(-1), 10);
            assert_eq!(store.take_due(RecordKind::Operation, early).await, Ok(vec![]));
        }
    })
    .await;
}

#[tokio::test]
async fn owner_that_handed_back_cannot_renew() {
    on_every_store(async |store| {
        write(&*store, &job("a"), vec![created()], at(0)).await;
        let claim = taken(&*store, &job("a"), "node-a", at(0)).await.claim;
        store.hand_back(&job("a"), claim.fence(), at(5), at(5)).await.unwrap();
        let renewed = store.renew(&job("a"), claim.fence(), at(6), Lease::DEFAULT).await;
        assert_eq!(renewed, Err(StoreError::Fenced));
        assert_eq!(store.earliest_due(RecordKind::Job).await, Ok(Some(at(5))));
    })
    .await;
}

#[tokio::test]
async fn limit_that_has_passed_is_not_pushed_away_by_renewals() {
    on_every_store(async |store| {
        let short = created_with(|new| new.spec.expires_at = Some(at(30)));
        write(&*store, &job("a"), vec![short], at(0)).await;
        let mut claim = taken(&*store, &job("a"), "node-a", at(10)).await.claim;
        write(&*store, &job("a"), vec![dispatched(1)], at(11)).await;
        for second in [20, 29, 40, 50] {
            claim = store.renew(&job("a"), claim.fence(), at(second), Lease::DEFAULT).await.unwrap().claim;
            assert_eq!(store.earliest_due(RecordKind::Job).await, Ok(Some(at(30))));
        }
        let due = store.take_due(RecordKind::Job, take("node-b", at(50), 10)).await.unwrap();
        assert_eq!(ids(&due), ["work-a"]);
    })
    .await;
}

// conforms: A30 A31
#[tokio::test]
async fn commit_that_ends_a_job_releases_it_and_one_that_was_refused_does_not() {
    on_every_store(async |store| {
        write(&*store, &job("a"), vec![created()], at(0)).await;
        let claim = taken(&*store, &job("a"), "node-a", at(0)).await.claim;
        let mut dispatching = next_change(&*store, &job("a"), vec![dispatched(1)], at(0)).await;
        dispatching.fence = Some(claim.fence());
        store.commit(commit(vec![dispatching], at(0))).await.unwrap();

        let mut ending = next_change(&*store, &job("a"), vec![completed()], at(1)).await;
        ending.fence = Some(claim.fence());
        let mut refused = ending.clone();
        refused.expected.version += 1;
        assert_eq!(store.commit(commit(vec![refused], at(1))).await, Err(StoreError::Conflict));
        assert_eq!(store.take(&job("a"), take("node-b", at(1), 1)).await, Err(StoreError::ClaimHeld));

        store.commit(commit(vec![ending], at(1))).await.unwrap();
        let ended = store.load(&job("a")).await.unwrap().unwrap();
        assert_eq!(ended.claim.unwrap().lease_expires_at, at(1));
        assert_eq!(store.take(&job("a"), take("node-b", at(1), 1)).await.unwrap().claim.claim_version, 1);
    })
    .await;
}

// conforms: A21
#[tokio::test]
async fn claim_stays_with_the_record_through_its_ends_and_its_version_only_rises() {
    on_every_store(async |store| {
        write(&*store, &job("a"), vec![created()], at(0)).await;
        let mut version = None;
        for attempt in 1..=5 {
            let second = u64::from(attempt) * 100;
            let claim = taken(&*store, &job("a"), "node-a", at(second)).await.claim;
            assert!(Some(claim.claim_version) > version, "{claim:?} after {version:?}");
            let renewed = store.renew(&job("a"), claim.fence(), at(second + 20), Lease::DEFAULT).await;
            version = Some(renewed.unwrap().claim.claim_version);
            write(&*store, &job("a"), vec![dispatched(attempt), lease_lost()], at(second + 21)).await;
            let left = store.load(&job("a")).await.unwrap().unwrap().claim.unwrap();
            assert_eq!(Some(left.claim_version), version);
        }
        assert_eq!(version, Some(9));
    })
    .await;
}

// conforms: A23
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_thirty_two_that_take_one_record_at_once_one_gets_it() {
    on_every_store(async |store| {
        for round in 0..8 {
            let id = job(&format!("{round}"));
            write(&*store, &id, vec![created()], at(0)).await;
            let mut tasks = JoinSet::new();
            for node in 0..32 {
                let (store, id) = (store.share(), id.clone());
                tasks.spawn(async move { store.take(&id, take(&format!("node-{node}"), at(1), 1)).await });
            }
            let answers = tasks.join_all().await;
            let winners: Vec<_> = answers.iter().flatten().collect();
            assert_eq!(winners.len(), 1);
            assert!(answers.iter().all(|answer| answer.is_ok() || *answer == Err(StoreError::ClaimHeld)));
            let claim = store.load(&id).await.unwrap().unwrap().claim;
            assert_eq!(claim.as_ref(), Some(&winners[0].claim));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn dispatchers_that_take_batches_at_once_share_the_lane_without_doubles() {
    on_every_store(async |store| {
        let made = create_jobs(&*store, (0..100).map(|number| format!("{number:03}"))).await;
        let mut tasks = JoinSet::new();
        for node in 0..16 {
            let store = store.share();
            tasks.spawn(async move {
                let mut mine = Vec::new();
                loop {
                    let batch =
                        store.take_ready(LANE.into(), take(&format!("node-{node}"), at(1), 3)).await.unwrap();
                    if batch.is_empty() {
                        return mine;
                    }
                    mine.extend(batch.into_iter().map(|taken| taken.id));
                }
            });
        }
        let mut all: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
        all.sort();
        assert_eq!(all, made);
    })
    .await;
}

#[tokio::test]
async fn limit_of_a_lane_counts_what_is_held_of_it_until_it_ends_or_waits() {
    on_every_store(async |store| {
        create_jobs(&*store, ["a", "b", "c", "d", "e"].map(str::to_owned)).await;
        let within = |limit| Lane { name: LANE, limit: Some(limit) };
        let from = async |limit, asked| {
            let taken = store.take_ready(within(limit), take("node-a", at(1), asked)).await.unwrap();
            ids(&taken).into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(from(2, 10).await, ["work-a", "work-b"]);
        assert_eq!(from(2, 10).await, [""; 0], "both are held");
        assert_eq!(from(3, 10).await, ["work-c"], "whoever allows more may take more");
        // Under way they hold their slots; waiting for a service or over, they do not.
        for name in ["a", "b", "c"] {
            write(&*store, &job(name), vec![dispatched(1)], at(1)).await;
        }
        assert_eq!(from(3, 10).await, [""; 0], "three are under way");
        write(&*store, &job("a"), vec![completed()], at(1)).await;
        write(&*store, &job("b"), vec![deferred(&operation("b"))], at(1)).await;
        assert_eq!(from(3, 1).await, ["work-d"], "no more than was asked for");
        assert_eq!(from(3, 10).await, ["work-e"]);
        assert_eq!(store.take_ready("other".into(), take("node-a", at(1), 10)).await, Ok(Vec::new()));
    })
    .await;
}

#[tokio::test]
async fn what_is_pinned_to_nodes_counts_to_the_limit_of_the_lane_that_it_would_be_anywhere() {
    on_every_store(async |store| {
        for (name, node) in [("a", None), ("b", Some("one")), ("c", Some("two"))] {
            write(&*store, &job(name), vec![created_for(node)], at(0)).await;
        }
        // Another lane, whose name only ends alike.
        let other = created_with(|new| new.spec.lane = Some(format!("x:{LANE}")));
        write(&*store, &job("d"), vec![other], at(0)).await;
        let from = async |lane: &str, limit| {
            let lane = Lane { name: lane, limit: Some(limit) };
            let taken = store.take_ready(lane, take("one-1", at(1), 10)).await.unwrap();
            ids(&taken).into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        let (one, two) = (pinned("one", LANE), pinned("two", LANE));
        assert_eq!(from(&one, 1).await, ["work-b"]);
        assert_eq!(from(&two, 1).await, [""; 0], "what another node has counts");
        assert_eq!(from(LANE, 1).await, [""; 0], "and for all nodes");
        assert_eq!(from(&format!("x:{LANE}"), 1).await, ["work-d"]);
        assert_eq!(from(LANE, 2).await, ["work-a"]);
        assert_eq!(from(&two, 2).await, [""; 0], "what is for all nodes counts too");
        write(&*store, &job("b"), vec![dispatched(1), completed()], at(1)).await;
        assert_eq!(from(&two, 2).await, ["work-c"]);
    })
    .await;
}

/// It begins with files of this node.
fn created_for(node: Option<&str>) -> Fact {
    created_with(|new| {
        new.spec.step = Some(Box::new(StepLink {
            run_id: RunId::new("run-1"),
            visit: 1,
            pipeline: "line".to_owned(),
            step: "two".to_owned(),
            ordinal: 0,
            node: node.map(str::to_owned),
        }));
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn takers_at_the_same_time_keep_to_the_limit_of_a_lane_together() {
    on_every_store(async |store| {
        create_jobs(&*store, (0..60).map(|number| format!("{number:02}"))).await;
        let mut tasks = JoinSet::new();
        for node in 0..16 {
            let store = store.share();
            tasks.spawn(async move {
                let lane = Lane { name: LANE, limit: Some(7) };
                store.take_ready(lane, take(&format!("node-{node}"), at(1), 3)).await.unwrap().len()
            });
        }
        assert_eq!(tasks.join_all().await.into_iter().sum::<usize>(), 7);
    })
    .await;
}

#[tokio::test]
async fn claims_on_what_is_not_there_or_was_never_taken_are_refused() {
    on_every_store(async |store| {
        let missing = job("missing");
        let lease = Lease::DEFAULT;
        assert_eq!(store.take(&missing, take("node-a", at(0), 1)).await, Err(StoreError::UnknownRecord));
        assert_eq!(
            store.renew(&missing, fence("node-a", 0), at(0), lease).await,
            Err(StoreError::UnknownRecord)
        );
        assert_eq!(
            store.hand_back(&missing, fence("node-a", 0), at(0), at(0)).await,
            Err(StoreError::UnknownRecord)
        );
        write(&*store, &job("a"), vec![created()], at(0)).await;
        assert_eq!(store.renew(&job("a"), fence("node-a", 0), at(0), lease).await, Err(StoreError::Fenced));
        assert_eq!(
            store.hand_back(&job("a"), fence("node-a", 0), at(0), at(0)).await,
            Err(StoreError::Fenced)
        );
    })
    .await;
}

#[tokio::test]
async fn nothing_is_due_in_an_empty_store() {
    on_every_store(async |store| {
        for kind in RecordKind::ALL {
            assert_eq!(store.earliest_due(kind).await, Ok(None));
            assert!(store.take_due(kind, take("node-a", at(0), 10)).await.unwrap().is_empty());
        }
        assert!(store.take_ready(LANE.into(), take("node-a", at(0), 10)).await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn job_that_waits_in_its_lane_is_due_only_at_its_own_limit() {
    on_every_store(async |store| {
        let limited = created_with(|new| new.spec.deadline_at = Some(at(40)));
        write(&*store, &job("a"), vec![created()], at(0)).await;
        assert_eq!(store.earliest_due(RecordKind::Job).await, Ok(None));
        write(&*store, &job("b"), vec![limited], at(0)).await;
        assert_eq!(store.earliest_due(RecordKind::Job).await, Ok(Some(at(40))));
        let due = store.take_due(RecordKind::Job, take("node-a", at(40), 10)).await.unwrap();
        assert_eq!(ids(&due), ["work-b"]);
    })
    .await;
}

#[tokio::test]
async fn taken_job_is_no_longer_ready_until_a_commit_says_so() {
    on_every_store(async |store| {
        write(&*store, &job("a"), vec![created()], at(0)).await;
        let claim = store.take_ready(LANE.into(), take("node-a", at(0), 1)).await.unwrap().remove(0).claim;
        store.hand_back(&job("a"), claim.fence(), at(1), at(1)).await.unwrap();
        assert!(store.take_ready(LANE.into(), take("node-b", at(1), 1)).await.unwrap().is_empty());
        write(&*store, &job("a"), vec![noted("back")], at(2)).await;
        assert_eq!(ids(&store.take_ready(LANE.into(), take("node-b", at(2), 1)).await.unwrap()), ["work-a"]);
    })
    .await;
}

#[tokio::test]
async fn record_that_a_commit_has_released_is_due_when_the_commit_says_and_not_by_handing_it_back() {
    on_every_store(async |store| {
        write(&*store, &operation("a"), vec![accepted(&job("a"), at(5))], at(0)).await;
        let claim = taken(&*store, &operation("a"), "node-a", at(5)).await.claim;
        write(&*store, &operation("a"), vec![polled(at(35))], at(6)).await;
        store.hand_back(&operation("a"), claim.fence(), at(7), at(7)).await.unwrap();
        assert_eq!(store.earliest_due(RecordKind::Operation).await, Ok(Some(at(35))));
    })
    .await;
}
