//! Where the store's time stands to the clocks of machines: kept for each boot, as of one revision, and not for ever.

use domain::timeline::{Anchor, Step};
use store::{Correction, MAX_NODES, SharedStore, Store};

use super::database::Database;
use crate::given::*;

fn anchor(boot: i64, offset_micros: i64) -> Anchor {
    Anchor { boot, offset_micros, ahead_at_start: false }
}

#[tokio::test]
async fn anchor_is_kept_per_boot_until_the_clock_changes() {
    let database = Database::missing().await;
    let store = database.open().await;
    for anchor in [anchor(-7, -12), anchor(7, 5), anchor(7, 6)] {
        store.keep_anchor(anchor, 0).await.unwrap();
    }
    let known = store.clock().await.unwrap();
    assert_eq!([-7, 7].map(|boot| known.anchor_of(boot)), [Some(anchor(-7, -12)), Some(anchor(7, 6))]);
    assert_eq!(known.anchor_of(8), None);
    let step = Step { from: at(0), to: at(3_600) };
    let adopted = Some(step.into());
    let correction =
        Correction { revision: known.revision, micros: 0, since: at(0), ahead_at_start: false, adopted };
    assert_eq!(store.correct_clock(correction).await, Ok(true));
    // Kept by a node that has not heard of the step.
    store.keep_anchor(anchor(7, 6), 0).await.unwrap();
    assert_eq!(store.clock().await.unwrap().anchors, []);
}

#[tokio::test]
async fn anchors_of_the_machines_that_started_last_are_kept() {
    let database = Database::missing().await;
    let store = database.open().await;
    let raw = database.raw().await;
    let many = format!(
        "INSERT INTO meta (name, value) SELECT 'clock_anchor_' || lpad(to_hex(n), 16, '0') || '_0', n \
         FROM generate_series(2, {MAX_NODES}) AS n"
    );
    raw.batch_execute(&many).await.unwrap();
    let newest = i64::try_from(MAX_NODES).unwrap() + 1;
    store.keep_anchor(anchor(newest, newest), 0).await.unwrap();
    assert_eq!(store.clock().await.unwrap().anchors.len(), MAX_NODES);
    store.keep_anchor(anchor(newest + 1, newest + 1), 0).await.unwrap();
    let known = store.clock().await.unwrap();
    assert_eq!(known.anchors.len(), MAX_NODES);
    assert_eq!((known.anchor_of(2), known.anchor_of(3)), (None, Some(anchor(3, 3))));
}
