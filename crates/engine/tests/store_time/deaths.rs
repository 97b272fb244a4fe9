//! A node that dies in the middle of a correction: another goes on with it.

use domain::timeline::Step;
use store::{Correction, SharedStore, Store, fact_kind};

use crate::driven::{BEAT, Driven, HOUR};

/// Adopts a step as a node does that dies before it has moved a timer.
async fn adopt_and_die(driven: &mut Driven, step: i64) {
    let dying = driven.nodes.remove(0);
    let known = dying.store.clock().await.unwrap();
    let from = dying.engine.clock().now();
    let step = Step { from, to: from.plus_micros(step * 1_000_000) };
    let adopted = Some(step.into());
    let correction =
        Correction { revision: known.revision, micros: 0, since: from, ahead_at_start: false, adopted };
    assert_eq!(dying.store.correct_clock(correction).await, Ok(true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timers_that_a_dead_node_left_are_moved_by_another() {
    let mut driven = Driven::with(3).await;
    let held = driven.nodes[1].create("held").await;
    let mut holder = driven.nodes[1].take(&held).await;
    let outside = driven.nodes[1].begin_outside("left").await;
    let expires_at = driven.nodes[1].expires_at(&outside).await;
    driven.set(-HOUR).await;
    adopt_and_die(&mut driven, -HOUR).await;
    for _ in 0..5 {
        driven.nodes[1].try_to_take(&holder).await;
        driven.live(BEAT).await;
        holder.renew(&driven.nodes[0]).await;
    }
    driven.check_times(-HOUR);
    let moved = driven.nodes[0].expires_at(&outside).await.micros() - expires_at.micros();
    assert!((moved + HOUR * 1_000_000).abs() <= 5_000_000, "moved by {moved}");
    assert!(driven.nodes[0].store.clock().await.unwrap().passes_left < 2);
    let kinds: Vec<_> =
        driven.nodes[0].facts(&outside).await.iter().map(|fact| fact_kind(&fact.fact).to_owned()).collect();
    assert_eq!(kinds.iter().filter(|kind| kind.contains("timers_moved")).count(), 1, "{kinds:?}");
    driven.verify().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timers_are_moved_by_a_node_that_starts_after_all_have_died() {
    let mut driven = Driven::with(1).await;
    let outside = driven.nodes[0].begin_outside("left").await;
    let expires_at = driven.nodes[0].expires_at(&outside).await;
    driven.set(-HOUR).await;
    adopt_and_die(&mut driven, -HOUR).await;
    driven.start("node-9").await;
    driven.live(40).await;
    let moved = driven.nodes[0].expires_at(&outside).await.micros() - expires_at.micros();
    assert!((moved + HOUR * 1_000_000).abs() <= 5_000_000, "moved by {moved}");
}
