//! The time of a store on a file after it was opened again, and what `verify` says of it.

use domain::timeline::{Anchor, Step};
use domain::{Lease, RecordKind};
use store::{Store, StoreError};

use super::file::File;
use crate::given::*;

const ANCHOR: Anchor = Anchor { boot: 7, offset_micros: 0, ahead_at_start: false };

#[tokio::test]
async fn facts_from_before_a_step_back_are_no_floor() {
    let file = File::missing();
    let store = file.open();
    write(&store, &job("a"), vec![created()], at(100)).await;
    store.keep_clock(ANCHOR, Some(Step { from: at(100), to: at(50) }.into())).await.unwrap();
    drop(store);
    assert_eq!(file.open().newest_fact(), at(50));
    // What comes after the time that was gone back from is one again.
    write(&file.open(), &job("b"), vec![created()], at(200)).await;
    assert_eq!(file.open().newest_fact(), at(200));
}

#[tokio::test]
async fn take_that_waited_behind_a_step_back_takes_no_live_lease() {
    let file = File::missing();
    let store = file.open();
    write(&store, &job("a"), vec![created()], at(9_000)).await;
    let held = taken(&store, &job("a"), "node-a", at(9_000)).await;
    store.keep_clock(ANCHOR, Some(Step { from: at(9_001), to: at(1_001) }.into())).await.unwrap();
    // Both had read the time before the step.
    let rival = store.take(&job("a"), take("node-b", at(9_001), 1)).await;
    assert_eq!(rival, Err(StoreError::ClaimHeld));
    assert_eq!(store.take_due(RecordKind::Job, take("node-b", at(9_001), 1)).await, Ok(Vec::new()));
    let renewed = store.renew(&job("a"), held.claim.fence(), at(9_001), Lease::DEFAULT).await.unwrap();
    assert_eq!(renewed.claim.lease_expires_at, Lease::DEFAULT.expires_at(at(1_001)));
    let (fence, due_at) = (renewed.claim.fence(), at(9_031));
    store.hand_back(&job("a"), fence, at(9_001), due_at).await.unwrap();
    assert_eq!(store.earliest_due(RecordKind::Job).await, Ok(Some(at(1_031))));
}

#[tokio::test]
async fn limit_that_moved_with_its_lease_is_no_difference() {
    for to in [at(3_710), at(60)] {
        let file = File::lived_in().await;
        let store = file.open();
        taken(&store, &operation("press"), "node-a", at(100)).await;
        store.keep_clock(ANCHOR, Some(Step { from: at(110), to }.into())).await.unwrap();
        drop(store);
        assert_eq!(file.verified().differences, []);
    }
}
