//! The time of a store on a file after it was opened again, and what `verify` says of it.

use domain::timeline::{Anchor, Step};
use store::ClockStore;

use super::file::File;
use crate::given::*;

const ANCHOR: Anchor = Anchor { boot: 7, offset_micros: 0, ahead_at_start: false };

#[tokio::test]
async fn facts_from_before_a_step_back_are_no_floor() {
    let file = File::missing();
    let store = file.open();
    write(&store, &job("a"), vec![created()], at(100)).await;
    store.keep_clock(ANCHOR, Some(Step { from: at(100), to: at(50) })).await.unwrap();
    drop(store);
    assert_eq!(file.open().newest_fact(), at(50));
    // What comes after the time that was gone back from is one again.
    write(&file.open(), &job("b"), vec![created()], at(200)).await;
    assert_eq!(file.open().newest_fact(), at(200));
}

#[tokio::test]
async fn limit_that_moved_with_its_lease_is_no_difference() {
    for to in [at(3_710), at(60)] {
        let file = File::lived_in().await;
        let store = file.open();
        taken(&store, &operation("press"), "node-a", at(100)).await;
        store.keep_clock(ANCHOR, Some(Step { from: at(110), to })).await.unwrap();
        drop(store);
        assert_eq!(file.verified().differences, []);
    }
}
