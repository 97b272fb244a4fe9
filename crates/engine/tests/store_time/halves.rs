//! No majority: two nodes, halves, and nobody who agrees with anybody. It comes to an end.

use engine::{Clock, clock_steps};
use store::Store;

use crate::driven::{ADOPT_AFTER, BEAT, Driven, HOUR};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_clock_of_two_follows_and_moves_nobody() {
    let mut driven = Driven::with(2).await;
    driven.stall(&[0], HOUR).await;
    driven.live(60).await;
    driven.check_times(0);
    let known = driven.nodes[1].store.clock().await.unwrap();
    assert_eq!((known.correction_micros, known.steps.as_slice().len()), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_of_the_nodes_follow_the_half_that_agrees_with_the_store() {
    let mut driven = Driven::with(4).await;
    driven.stall(&[0, 2], HOUR).await;
    driven.live(60).await;
    driven.check_times(0);
    let known = driven.nodes[1].store.clock().await.unwrap();
    assert_eq!((known.correction_micros, known.steps.as_slice().len()), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_that_see_different_steps_end_at_the_servers_clock() {
    let mut driven = Driven::with(2).await;
    let held = driven.nodes[0].create("held").await;
    let mut holder = driven.nodes[0].take(&held).await;
    driven.set(HOUR).await;
    driven.stall(&[1], HOUR / 2).await;
    holder.renew(&driven.nodes[0]).await;
    for _ in 0..(ADOPT_AFTER + 120) / BEAT {
        driven.live(BEAT).await;
        holder.renew(&driven.nodes[0]).await;
        driven.nodes[1].try_to_take(&holder).await;
    }
    driven.check_times(HOUR);
    let known = driven.nodes[1].store.clock().await.unwrap();
    assert_eq!((known.correction_micros, known.steps.as_slice().len()), (0, 1), "{known:?}");
    driven.verify().await;
}

/// What each node reads of the clocks of all, beside what each knows of its own.
async fn check_steps(driven: &Driven, expected: [i64; 2]) {
    let own: Vec<i64> = driven.nodes.iter().map(|node| node.clock.status().step_seconds()).collect();
    assert_eq!(own, expected);
    for node in &driven.nodes {
        let steps = clock_steps(&*node.store).await.unwrap();
        let read: Vec<i64> = driven.nodes.iter().map(|of| steps[&of.id]).collect();
        assert_eq!(read, expected, "read by {}", node.id);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clock_step_of_each_node_is_read_by_every_other() {
    let mut driven = Driven::with(2).await;
    check_steps(&driven, [0, 0]).await;
    driven.stall(&[0], HOUR).await;
    driven.rounds().await;
    check_steps(&driven, [HOUR, 0]).await;
    driven.live(60).await;
    check_steps(&driven, [0, 0]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn step_that_is_corrected_is_read_of_every_node() {
    let mut driven = Driven::with(2).await;
    driven.set(HOUR).await;
    driven.live(3 * BEAT).await;
    let known = driven.nodes[0].store.clock().await.unwrap();
    assert_ne!(known.correction_micros, 0);
    check_steps(&driven, [HOUR, HOUR]).await;
}
