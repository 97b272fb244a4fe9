//! Steps of the server's clock that most nodes see.

use engine::Clock;
use store::{Store, Taking};

use crate::driven::{ADOPT_AFTER, BEAT, Driven, HOUR};

/// What is held stays held and what lives lives, at every moment of a step that is announced, corrected, lasts and is adopted.
async fn lives_through(step: i64) {
    let mut driven = Driven::with(3).await;
    let held = driven.nodes[1].create("held").await;
    let mut holder = driven.nodes[1].take(&held).await;
    let outside = driven.nodes[1].begin_outside("held").await;
    let expires_at = driven.nodes[1].expires_at(&outside).await;
    driven.set(step).await;
    let mut adopted = false;
    for _ in 0..(ADOPT_AFTER + 60) / BEAT {
        driven.pass(BEAT).await;
        for node in &driven.nodes {
            node.round().await;
            // Whoever has not heard of a jump yet takes nothing by the time before it.
            for rival in [0, 2] {
                driven.nodes[rival].try_to_take(&holder).await;
            }
        }
        holder.renew(&driven.nodes[1]).await;
        adopted |= driven.nodes[0].clock.status().steps > 0;
    }
    assert!(adopted, "it has lasted");
    driven.rounds().await;
    driven.check_times(step);
    let known = driven.nodes[2].store.clock().await.unwrap();
    assert_eq!(known.correction_micros, 0);
    assert_eq!(known.steps.as_slice().len(), 1, "{known:?}");
    // The life is as long as it was: after a step back it is moved at once, after one ahead by whoever comes to it.
    driven.nodes[2].engine.move_timers(&outside, "tester".into()).await.unwrap();
    let moved = driven.nodes[0].expires_at(&outside).await.micros() - expires_at.micros();
    assert_eq!((moved + 2_500_000) / 5_000_000, (step * 1_000_000 + 2_500_000) / 5_000_000);
    // What nobody renews any more is over in time.
    driven.live(70).await;
    driven.nodes[2].take(&held).await;
    driven.verify().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn step_ahead_on_three_nodes_takes_no_lease_and_no_life() {
    lives_through(HOUR).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn step_back_on_three_nodes_takes_no_lease_and_no_life() {
    lives_through(-2 * HOUR).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn glitch_on_three_nodes_leaves_no_step_and_no_correction() {
    for step in [72 * HOUR, -72 * HOUR] {
        let mut driven = Driven::with(3).await;
        let held = driven.nodes[1].create("held").await;
        let mut holder = driven.nodes[1].take(&held).await;
        driven.set(step).await;
        for beat in 0..8 {
            driven.live(BEAT).await;
            holder.renew(&driven.nodes[1]).await;
            driven.nodes[0].try_to_take(&holder).await;
            if beat == 3 {
                driven.set(-step).await;
            }
        }
        driven.check_times(0);
        let known = driven.nodes[0].store.clock().await.unwrap();
        assert_eq!((known.correction_micros, known.steps.as_slice().len()), (0, 0));
        driven.verify().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_live_by_their_own_clocks_when_the_server_is_set() {
    for step in [2 * HOUR, -2 * HOUR] {
        let mut driven = Driven::with(3).await;
        let drained = driven.nodes[2].id.clone();
        assert_eq!(driven.nodes[0].store.tell_node(&drained, Taking::Drains).await, Ok(true));
        driven.set(step).await;
        driven.pass(BEAT).await;
        driven.nodes[0].round().await;
        let nodes = driven.nodes[0].store.nodes().await.unwrap();
        let now = driven.nodes[0].clock.now();
        assert_eq!(nodes.len(), 3, "nobody was forgotten");
        assert!(nodes.iter().all(|node| !node.is_silent(now)), "{nodes:?}");
        let taking = nodes.iter().find(|node| node.id == drained).map(|node| node.taking);
        assert_eq!(taking, Some(Taking::Drains));
        // Those that live agree, although one that has died was heard of last by the clock that was set back.
        driven.nodes.truncate(2);
        driven.live(60).await;
        driven.check_times(0);
        let known = driven.nodes[0].store.clock().await.unwrap();
        assert_eq!((known.correction_micros, known.steps.as_slice().len()), (-step * 1_000_000, 0));
    }
}
