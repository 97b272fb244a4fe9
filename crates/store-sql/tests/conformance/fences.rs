//! Fences: a commit under a claim is written only while that claim is the record's newest.

use domain::{Lease, RecordKind};
use store::{Store, StoreError};

use crate::given::*;
use crate::subject::on_every_store;

/// Writes a note on a job under a fence.
async fn note_under(store: &dyn Store, fence: domain::Fence, seconds: u64) -> Result<(), StoreError> {
    let mut change = next_change(store, &job("a"), vec![noted("still here")], at(seconds)).await;
    change.fence = Some(fence);
    store.commit(commit(vec![change], at(seconds))).await.map(|_| ())
}

#[tokio::test]
async fn commit_needs_the_owner_and_the_version_of_the_claim() {
    on_every_store(async |store| {
        write(&*store, &job("a"), vec![created()], at(0)).await;
        assert_eq!(note_under(&*store, fence("node-a", 0), 0).await, Err(StoreError::Fenced), "unclaimed");
        let claim = taken(&*store, &job("a"), "node-a", at(1)).await.claim;
        write(&*store, &job("a"), vec![dispatched(1)], at(1)).await;
        let before = sight(&*store).await;
        for wrong in [fence("node-b", 0), fence("node-a", 1), fence("", 0)] {
            assert_eq!(note_under(&*store, wrong, 2).await, Err(StoreError::Fenced));
        }
        assert_eq!(sight(&*store).await, before);
        assert_eq!(note_under(&*store, claim.fence(), 2).await, Ok(()));
    })
    .await;
}

#[tokio::test]
async fn record_that_does_not_exist_yet_has_no_claim_to_write_under() {
    on_every_store(async |store| {
        let mut change = creation(&job("a"), created(), at(0));
        change.fence = Some(fence("node-a", 0));
        assert_eq!(store.commit(commit(vec![change], at(0))).await, Err(StoreError::Fenced));
        assert_eq!(store.load(&job("a")).await, Ok(None));
    })
    .await;
}

// conforms: A29
#[tokio::test]
async fn owner_that_was_paused_past_its_lease_and_taken_over_from_can_write_nothing() {
    on_every_store(async |store| {
        write(&*store, &job("a"), vec![created()], at(0)).await;
        let paused = taken(&*store, &job("a"), "node-a", at(0)).await.claim;
        write(&*store, &job("a"), vec![dispatched(1)], at(0)).await;
        let successor = taken(&*store, &job("a"), "node-b", at(60)).await.claim;
        let before = sight(&*store).await;

        let lease = domain::Lease::DEFAULT;
        assert_eq!(note_under(&*store, paused.fence(), 61).await, Err(StoreError::Fenced));
        assert_eq!(store.renew(&job("a"), paused.fence(), at(61), lease).await, Err(StoreError::Fenced));
        assert_eq!(store.hand_back(&job("a"), paused.fence(), at(61), at(61)).await, Err(StoreError::Fenced));
        assert_eq!(sight(&*store).await, before);
        assert_eq!(note_under(&*store, successor.fence(), 61).await, Ok(()));
    })
    .await;
}

#[tokio::test]
async fn owner_that_handed_back_can_write_nothing_once_another_has_taken_it() {
    on_every_store(async |store| {
        write(&*store, &job("a"), vec![created()], at(0)).await;
        let released = taken(&*store, &job("a"), "node-a", at(0)).await.claim;
        store.hand_back(&job("a"), released.fence(), at(1), at(1)).await.unwrap();
        taken(&*store, &job("a"), "node-b", at(1)).await;
        let before = sight(&*store).await;
        assert_eq!(note_under(&*store, released.fence(), 2).await, Err(StoreError::Fenced));
        assert_eq!(sight(&*store).await, before);
    })
    .await;
}

#[tokio::test]
async fn renewal_replaces_the_fence() {
    on_every_store(async |store| {
        write(&*store, &job("a"), vec![created()], at(0)).await;
        let old = taken(&*store, &job("a"), "node-a", at(0)).await.claim;
        write(&*store, &job("a"), vec![dispatched(1)], at(0)).await;
        let renewed =
            store.renew(&job("a"), old.fence(), at(20), domain::Lease::DEFAULT).await.unwrap().claim;
        assert_eq!(note_under(&*store, old.fence(), 21).await, Err(StoreError::Fenced));
        assert_eq!(note_under(&*store, renewed.fence(), 21).await, Ok(()));
    })
    .await;
}

#[tokio::test]
async fn fence_of_one_record_guards_the_whole_commit() {
    on_every_store(async |store| {
        write(&*store, &job("a"), vec![created()], at(0)).await;
        let lost = taken(&*store, &job("a"), "node-a", at(0)).await.claim;
        taken(&*store, &job("a"), "node-b", at(60)).await;
        let before = sight(&*store).await;
        let mut fenced = next_change(&*store, &job("a"), vec![dispatched(1)], at(61)).await;
        fenced.fence = Some(lost.fence());
        let changes = vec![creation(&job("b"), created(), at(61)), fenced];
        assert_eq!(store.commit(commit(changes, at(61))).await, Err(StoreError::Fenced));
        assert_eq!(sight(&*store).await, before);
        assert_eq!(store.load(&job("b")).await, Ok(None));
    })
    .await;
}

#[tokio::test]
async fn leases_of_dead_owners_end_and_those_of_others_run_on() {
    on_every_store(async |store| {
        for name in ["a", "b", "c"] {
            write(&*store, &job(name), vec![created()], at(0)).await;
        }
        let dead = taken(&*store, &job("a"), "node-a-1", at(0)).await.claim;
        let released = taken(&*store, &job("b"), "node-a-2", at(0)).await.claim;
        store.hand_back(&job("b"), released.fence(), at(1), at(30)).await.unwrap();
        let alive = taken(&*store, &job("c"), "node-b-1", at(0)).await.claim;

        store.end_leases_of("node-a-", at(5)).await.unwrap();

        let due = store.take_due(RecordKind::Job, take("node-c", at(5), 10)).await.unwrap();
        assert_eq!(ids(&due), ["work-a"]);
        let renewed = store.renew(&job("a"), dead.fence(), at(6), Lease::DEFAULT).await;
        assert_eq!(renewed, Err(StoreError::Fenced));
        assert!(store.renew(&job("c"), alive.fence(), at(6), Lease::DEFAULT).await.is_ok());
    })
    .await;
}
