//! An operator sets the store's time right: at once, with a name, and what ended in the future can be worked with.

use domain::RecordKind;
use domain::attention::Retention;
use domain::job::{JobCommand, Trigger};
use engine::Clock;
use store::{Store, fact_kind};

use crate::driven::{Driven, HOUR};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn set_right_sees_a_step_that_no_heartbeat_has_seen() {
    for step in [HOUR, -HOUR] {
        let mut driven = Driven::with(2).await;
        let held = driven.nodes[1].create("held").await;
        let mut holder = driven.nodes[1].take(&held).await;
        let outside = driven.nodes[1].begin_outside("named").await;
        driven.set(step).await;
        let jumped = driven.nodes[0].agreement.set_right("joan".into()).await.unwrap();
        let jumped = jumped.expect("they disagree").by_micros();
        assert!((jumped - step * 1_000_000).abs() <= 5_000_000, "{jumped}");
        driven.nodes[0].agreement.moved().await;
        driven.nodes[0].try_to_take(&holder).await;
        holder.renew(&driven.nodes[1]).await;
        driven.live(20).await;
        driven.check_times(step);
        assert_eq!(driven.nodes[0].agreement.set_right("joan".into()).await, Ok(None));
        // Who it was is read afterwards, and named by what was moved.
        let known = driven.nodes[1].store.clock().await.unwrap();
        assert_eq!(known.adopted_by, ["joan".into()]);
        if step < 0 {
            let facts = driven.nodes[1].facts(&outside).await;
            let moved = facts.iter().find(|fact| fact_kind(&fact.fact).contains("timers_moved"));
            assert_eq!(moved.map(|fact| &*fact.actor), Some("joan"));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_that_ended_in_the_future_can_be_worked_with() {
    let mut driven = Driven::with(1).await;
    driven.set(72 * HOUR).await;
    driven.nodes[0].agreement.set_right("joan".into()).await.unwrap();
    let node = &driven.nodes[0];
    let ended = [node.fail("retried").await, node.fail("purged").await, node.fail("kept").await];
    driven.set(-72 * HOUR).await;
    driven.nodes[0].agreement.set_right("joan".into()).await.unwrap();
    driven.nodes[0].agreement.moved().await;
    let node = &driven.nodes[0];
    let now = node.clock.now();
    let facts_before = node.facts(&ended[2]).await.len();
    let again = node.take(&ended[0]).await;
    node.dispatch(&again, 2, Trigger::Retry).await;
    node.order(&ended[1], JobCommand::Purge).await.unwrap();
    // What was asked for is done now, and not in three days.
    for id in &ended[..2] {
        let record = node.store.load(id).await.unwrap().unwrap().record;
        assert!(record.updated_at() <= now.plus_seconds(5), "{record:?}");
    }
    let due_at = node.store.earliest_due(RecordKind::Job).await.unwrap().expect("it is held");
    assert!(due_at <= now.plus_seconds(130), "{due_at:?}");
    // What is left alone has no fact for it, and goes in its time.
    assert_eq!(node.facts(&ended[2]).await.len(), facts_before);
    driven.verify().await;
    driven.pass(72 * HOUR + i64::try_from(Retention::DEFAULT.other_seconds).unwrap()).await;
    driven.rounds().await;
    driven.nodes[0].attend_to_what_is_due().await;
    assert_eq!(driven.nodes[0].store.load(&ended[2]).await, Ok(None));
    driven.verify().await;
}
