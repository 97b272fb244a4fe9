//! What one commit may start is bounded; what is over the bound begins in commits of its own, and once.

use domain::event::Disposition;
use domain::job::JobStateName;
use domain::run::RunState;
use domain::{MAX_CONSEQUENCES, MAX_NOTIFIED};
use serde_json::json;

use crate::given::routed::{World, done, emitting, noting};

/// A hundred consequences, the record itself, and those that hear of its end.
const MOST_RECORDS: usize = 1 + MAX_CONSEQUENCES + MAX_NOTIFIED;

#[tokio::test]
async fn result_with_many_events_and_listeners_starts_them_all_once() {
    const EVENTS: u64 = 100;
    const LISTENERS: usize = 12;
    let listener = |n: usize| format!("- {{ name: also-{n}, on: made, steps: [{{ uses: watcher }}] }}\n");
    let yaml = format!(
        "pipelines:\n- {{ name: main, on: go, steps: [{{ id: make, uses: maker }}, {{ id: each, uses: worker }}] }}\n{}",
        (0..LISTENERS).map(listener).collect::<String>()
    );
    let world = World::new(&yaml, |seen| {
        let made: Vec<_> = (0..EVENTS).map(|n| ("made", json!({ "n": n }))).collect();
        let maker = noting("maker", seen, move |_| emitting(&made));
        [maker, noting("worker", seen, |_| done()), noting("watcher", seen, |_| done())]
    });
    let id = world.publish("go", json!({}), None).await;
    let run = world.until(&world.started(&id).await, RunState::Completed).await;
    world.given.settle().await;
    assert_eq!(run.visits.len() as u64, EVENTS + 1, "the run goes on with every event");
    let jobs = world.jobs();
    let count =
        |name: &str| jobs.iter().filter(|job| job.spec.executor.as_deref() == Some(name)).count() as u64;
    assert_eq!((count("maker"), count("worker"), count("watcher")), (1, EVENTS, EVENTS * LISTENERS as u64));
    assert!(jobs.iter().all(|job| job.attempt_count == 1 && job.state.name() == JobStateName::Completed));
    let made = world.events("made");
    assert_eq!(made.len() as u64, EVENTS);
    for event in made {
        let settlement = event.settled.expect("it is settled").settlement;
        assert!(settlement.moved_its_run && settlement.routes.len() == LISTENERS, "{settlement:?}");
    }
    let largest = world.given.store.largest_commit();
    assert!(largest <= MOST_RECORDS, "{largest} records in one commit");
}

#[tokio::test]
async fn event_of_many_listeners_starts_them_all_in_bounded_commits() {
    const LISTENERS: usize = 90;
    let steps = "[{ split: [{ uses: watcher }, { uses: watcher }, { uses: watcher }] }]";
    let listener = |n: usize| format!("- {{ name: fan-{n}, on: go, steps: {steps} }}\n");
    let yaml = format!("pipelines:\n{}", (0..LISTENERS).map(listener).collect::<String>());
    let world = World::new(&yaml, |seen| [noting("watcher", seen, |_| done())]);
    let id = world.publish("go", json!({}), None).await;
    let event = world.settled(&id).await;
    for routed in event.settled.expect("it is settled").settlement.routes {
        let Disposition::Started(run_id) = routed.disposition else { panic!("{routed:?}") };
        world.until(&run_id, RunState::Completed).await;
    }
    assert_eq!(world.jobs().len(), 3 * LISTENERS);
    let largest = world.given.store.largest_commit();
    assert!(largest <= MOST_RECORDS, "{largest} records in one commit");
}
