//! Commits: all or nothing, on the head that they were decided on, and safe to repeat.

use store::StoreError;

use crate::given::*;
use crate::subject::on_every_store;

#[tokio::test]
async fn commit_over_several_records_is_written_whole() {
    on_every_store(async |store| {
        write(&*store, &job("a"), vec![created(), dispatched(1)], at(0)).await;
        let deferring = next_change(&*store, &job("a"), vec![deferred(&operation("a"))], at(1)).await;
        let accepting = creation(&operation("a"), accepted(&job("a"), at(6)), at(1));
        let beside = creation(&job("b"), created(), at(1));
        let written = store.commit(commit(vec![deferring, accepting, beside], at(1))).await.unwrap();

        assert_eq!(written.position, 5);
        for (id, version) in [(job("a"), 3), (operation("a"), 1), (job("b"), 1)] {
            let loaded = store.load(&id).await.unwrap().unwrap();
            assert_eq!((loaded.record.id(), loaded.head.version), (id.clone(), version));
            assert_eq!(store.facts_of(&id, 0, 10).await.unwrap().len() as u64, version);
        }
    })
    .await;
}

#[tokio::test]
async fn commit_of_which_one_record_does_not_fit_leaves_nothing() {
    on_every_store(async |store| {
        write(&*store, &job("b"), vec![created()], at(0)).await;
        let late = next_change(&*store, &job("b"), vec![dispatched(1)], at(1)).await;
        write(&*store, &job("b"), vec![noted("someone was first")], at(1)).await;
        let before = sight(&*store).await;

        for late_last in [true, false] {
            let mut fitting = creation(&job("a"), created(), at(2));
            let body = new_body(domain::BodyName::Input, b"{}");
            fitting.bodies = vec![body.clone()];
            let mut changes = vec![late.clone(), fitting];
            if late_last {
                changes.reverse();
            }
            let mut refused = commit(changes, at(2));
            refused.keys = vec![kept(key("k"), &job("a"), b"created")];
            assert_eq!(store.commit(refused).await, Err(StoreError::Conflict));

            assert_eq!(sight(&*store).await, before);
            assert_eq!(store.load(&job("a")).await, Ok(None));
            assert_eq!(store.body(&job("a"), body.body).await, Ok(None));
            assert_eq!(store.key(&key("k")).await, Ok(None));
        }
    })
    .await;
}

#[tokio::test]
async fn of_two_commits_on_one_head_the_second_is_a_conflict() {
    on_every_store(async |store| {
        write(&*store, &job("a"), vec![created()], at(0)).await;
        let one = next_change(&*store, &job("a"), vec![noted("one")], at(1)).await;
        let other = next_change(&*store, &job("a"), vec![noted("other")], at(1)).await;
        // Both wait before either is answered, so that they may come into one batch.
        let (one, other) = (store.commit(commit(vec![one], at(1))), store.commit(commit(vec![other], at(1))));
        let answers = [one.await.map(|_| ()), other.await.map(|_| ())];

        assert_eq!(answers, [Ok(()), Err(StoreError::Conflict)]);
        assert_eq!(store.facts_of(&job("a"), 0, 10).await.unwrap().len(), 2);
    })
    .await;
}

#[tokio::test]
async fn head_that_is_not_the_records_own_is_a_conflict() {
    on_every_store(async |store| {
        write(&*store, &job("a"), vec![created(), noted("one"), noted("two")], at(0)).await;
        let before = sight(&*store).await;
        let again = creation(&job("a"), created(), at(1));
        let mut ahead = next_change(&*store, &job("a"), vec![noted("three")], at(1)).await;
        ahead.expected.version = 4;
        let mut behind = next_change(&*store, &job("a"), vec![noted("three")], at(1)).await;
        behind.expected.version = 2;
        let mut absent = creation(&job("absent"), created(), at(1));
        absent.expected.version = 1;
        for change in [again, ahead, behind, absent] {
            assert_eq!(store.commit(commit(vec![change], at(1))).await, Err(StoreError::Conflict));
        }
        assert_eq!(sight(&*store).await, before);
    })
    .await;
}

#[tokio::test]
async fn commit_that_changes_one_record_twice_is_refused() {
    on_every_store(async |store| {
        let twice = vec![creation(&job("a"), created(), at(0)), creation(&job("a"), created(), at(0))];
        assert_eq!(store.commit(commit(twice, at(0))).await.unwrap_err().code(), "store_broken");
        assert_eq!(store.load(&job("a")).await, Ok(None));
    })
    .await;
}

#[tokio::test]
async fn repeat_of_an_applied_commit_is_done_at_the_same_position() {
    on_every_store(async |store| {
        write(&*store, &job("a"), vec![created()], at(0)).await;
        let claim = taken(&*store, &job("a"), "node-a", at(1)).await.claim;
        let mut under_fence = next_change(&*store, &job("a"), vec![dispatched(1), noted("go")], at(1)).await;
        under_fence.fence = Some(claim.fence());
        let mut step = commit(vec![under_fence, creation(&job("b"), created(), at(1))], at(1));
        step.keys = vec![kept(key("k"), &job("b"), b"created")];

        let written = store.commit(step.clone()).await.unwrap();
        let before = sight(&*store).await;
        assert_eq!(store.commit(step.clone()).await, Ok(written));
        assert_eq!(sight(&*store).await, before);

        // Also when the world has gone on, and the claim with it.
        write(&*store, &job("a"), vec![completed()], at(2)).await;
        taken(&*store, &job("a"), "node-b", at(100)).await;
        let before = sight(&*store).await;
        assert_eq!(store.commit(step).await, Ok(written));
        assert_eq!(sight(&*store).await, before);
    })
    .await;
}

#[tokio::test]
async fn repeat_under_other_fact_ids_is_a_conflict() {
    on_every_store(async |store| {
        let step = commit(vec![creation(&job("a"), created(), at(0))], at(0));
        store.commit(step.clone()).await.unwrap();
        let before = sight(&*store).await;
        assert_eq!(store.commit(under_other_fact_ids(step)).await, Err(StoreError::Conflict));
        assert_eq!(sight(&*store).await, before);
    })
    .await;
}

#[tokio::test]
async fn commit_of_which_only_a_part_is_there_is_a_conflict() {
    on_every_store(async |store| {
        let there = creation(&job("a"), created(), at(0));
        store.commit(commit(vec![there.clone()], at(0))).await.unwrap();
        let before = sight(&*store).await;
        let both = vec![there.clone(), creation(&job("b"), created(), at(0))];
        assert_eq!(store.commit(commit(both, at(0))).await, Err(StoreError::Conflict));

        let mut longer = there;
        longer.facts.push(store::NewFact { id: next_fact_id(), fact: noted("one more") });
        assert_eq!(store.commit(commit(vec![longer], at(0))).await, Err(StoreError::Conflict));
        assert_eq!(sight(&*store).await, before);
    })
    .await;
}

#[tokio::test]
async fn commit_without_facts_only_brings_the_agenda_up_to_date() {
    on_every_store(async |store| {
        let later = created_with(|new| new.due_at = Some(at(60)));
        write(&*store, &job("a"), vec![later], at(0)).await;
        assert!(store.take_ready(LANE.into(), take("node-a", at(60), 10)).await.unwrap().is_empty());
        let before = store.load(&job("a")).await.unwrap().unwrap();

        let promotion = change(&job("a"), Some(&before), Vec::new(), at(60));
        let written = store.commit(commit(vec![promotion], at(60))).await.unwrap();
        assert_eq!(written.position, 0);
        assert_eq!(store.load(&job("a")).await.unwrap().unwrap(), before);
        assert_eq!(store.facts_after(0, 10).await.unwrap().len(), 1);
        let ready = store.take_ready(LANE.into(), take("node-a", at(60), 10)).await.unwrap();
        assert_eq!(ids(&ready), ["work-a"]);
    })
    .await;
}

#[tokio::test]
async fn commit_without_facts_on_an_old_head_is_a_conflict() {
    on_every_store(async |store| {
        write(&*store, &job("a"), vec![created()], at(0)).await;
        let old = next_change(&*store, &job("a"), Vec::new(), at(1)).await;
        write(&*store, &job("a"), vec![completed()], at(1)).await;
        let before = sight(&*store).await;
        assert_eq!(store.commit(commit(vec![old], at(2))).await, Err(StoreError::Conflict));
        assert_eq!(sight(&*store).await, before);
    })
    .await;
}
