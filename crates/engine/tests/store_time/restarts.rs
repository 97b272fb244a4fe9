//! A node that is started again on the same machine between a step of the server's clock and its correction.

use engine::Clock;
use store::Store;

use crate::driven::{ADOPT_AFTER, BEAT, Driven, HOUR};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_restarted_within_a_glitch_keeps_the_stores_time() {
    for step in [HOUR, -HOUR] {
        let mut driven = Driven::with(1).await;
        let held = driven.nodes[0].create("held").await;
        let mut holder = driven.nodes[0].take(&held).await;
        driven.set(step).await;
        driven.restart(0, "again").await;
        let told = driven.nodes[0].clock.status().step_seconds();
        assert!((told - step).abs() <= 5, "{told} s are told");
        driven.nodes[0].try_to_take(&holder).await;
        // The one that has died is taken for living at first.
        for _ in 0..5 {
            driven.live(BEAT).await;
            holder.renew(&driven.nodes[0]).await;
        }
        assert_ne!(driven.nodes[0].store.clock().await.unwrap().correction_micros, 0, "it is corrected");
        driven.set(-step).await;
        driven.live(5 * BEAT).await;
        driven.check_times(0);
        let known = driven.nodes[0].store.clock().await.unwrap();
        assert_eq!((known.correction_micros, known.steps.as_slice().len()), (0, 0));
        driven.verify().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn anchor_of_before_a_jump_or_of_another_boot_says_nothing() {
    let mut driven = Driven::with(1).await;
    driven.set(HOUR).await;
    driven.nodes[0].agreement.set_right("joan".into()).await.unwrap();
    // Before the next heartbeat.
    driven.restart(0, "after-the-jump").await;
    driven.check_times(HOUR);
    driven.rounds().await;
    driven.set(HOUR).await;
    driven.nodes.clear();
    // Nobody knows of the time on this machine: it believes the server's clock.
    driven.start("elsewhere").await;
    driven.check_times(2 * HOUR);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarted_node_sees_the_step_that_the_others_see() {
    let mut driven = Driven::with(2).await;
    let held = driven.nodes[1].create("held").await;
    let mut holder = driven.nodes[1].take(&held).await;
    driven.set(HOUR).await;
    driven.restart(0, "again").await;
    for _ in 0..(ADOPT_AFTER + 60) / BEAT {
        driven.live(BEAT).await;
        holder.renew(&driven.nodes[0]).await;
        driven.nodes[1].try_to_take(&holder).await;
    }
    driven.check_times(HOUR);
    assert_eq!(driven.nodes[0].store.clock().await.unwrap().steps.as_slice().len(), 1);
    driven.verify().await;
}
