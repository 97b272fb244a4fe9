//! What a poll hands over with a result: its events and what its plugin remembers, in the commit of the end, and once.

use std::sync::Arc;

use domain::job::{AfterExternal, Job, JobStateName};
use domain::run::RunState;
use domain::{Fact, JobId, RecordId};
use engine::{Deferral, Output, Polled, Produced, StateChange, StateUpdate};
use serde_json::{Value, json};
use store::Store;
use tokio::sync::Semaphore;

use crate::given::routed::{Seen, World, done, emitting, noting};
use crate::given::{Given, in_a_process_that_dies};
use crate::specialist::{Answer, Scripted, handle};

const PRESSED: &str = "
pipelines:
- { name: main, on: go, steps: [{ id: press, uses: press }, { id: each, uses: worker }] }
- { name: also, on: made, steps: [{ uses: watcher }] }
";

/// A result with these events, and what the plugin `press` remembers of it.
fn handed_over(events: &[(&str, Value)]) -> Polled {
    let Produced::Completed(output) = emitting(events) else { unreachable!("it is completed") };
    let remembered = serde_json::from_str(r#"{"pages":12}"#).expect("it is an object");
    let state =
        StateUpdate { plugin: "press".to_owned(), change: StateChange::Merge(remembered), facts: Vec::new() };
    Polled::Completed(Output { state: Some(state), ..output })
}

fn two_events() -> Polled {
    handed_over(&[("made", json!({ "n": 1 })), ("made", json!({ "n": 2 }))])
}

fn world(yaml: &str, press: &Arc<Scripted>) -> World {
    World::new(yaml, |seen| {
        [press.named("press"), noting("worker", seen, |_| done()), noting("watcher", seen, |_| done())]
    })
}

impl World {
    async fn left_outside(&self) -> JobId {
        loop {
            let written = self.given.store.written.notified();
            let waits = |job: &Job| job.state.name() == JobStateName::AwaitingExternal;
            if let Some(job) = self.jobs().into_iter().find(waits) {
                return job.id;
            }
            written.await;
        }
    }

    async fn remembered(&self) -> Option<String> {
        let state = self.given.store.inner.plugin_state("press").await.expect("it can be read");
        state.map(|state| state.state.to_string())
    }
}

// conforms: L20 L96
#[tokio::test]
async fn poll_hands_over_events_and_state_in_the_commit_of_the_end() {
    let press = Scripted::deferring([Answer::Says(two_events())]);
    let world = world(PRESSED, &press);
    let id = world.publish("go", json!({}), None).await;
    let run_id = world.started(&id).await;
    let job = world.left_outside().await;
    world.given.next_poll(&job).await;
    let run = world.until(&run_id, RunState::Completed).await;
    world.given.settle().await;
    assert_eq!(run.visits.len(), 3, "one for each event");
    assert_eq!(world.names(), ["watcher", "watcher", "worker", "worker"]);
    let made = world.events("made");
    assert_eq!(made.len(), 2);
    let event = RecordId::from(made[0].id.clone());
    assert_eq!(world.given.store.remembered_with(&event), Some(vec!["press".to_owned()]));
    assert_eq!(world.remembered().await.as_deref(), Some(r#"{"pages":12}"#));
    let facts = world.given.store.inner.facts_after(0, 1_000).await.unwrap();
    let at = |stream: RecordId, kind: &str| {
        let of = |fact: &&store::StoredFact| fact.stream == stream && store::fact_kind(&fact.fact) == kind;
        let fact = facts.iter().find(of).unwrap_or_else(|| panic!("{stream} has no {kind}"));
        (fact.at, matches!(fact.fact, Fact::Job(_) | Fact::Operation(_)))
    };
    let operation = RecordId::from(world.given.operation_id_of(&job).await);
    for ended in [operation.clone(), job.into()] {
        assert!(world.given.store.changed_with(&event, &ended), "{ended} ends in another commit");
    }
    let (resolved, _) = at(operation, "external_production_resolved/1");
    assert_eq!(resolved, at(event, "event.settled/1").0);
}

#[tokio::test]
async fn process_that_dies_before_the_commit_of_a_poll_hands_over_once() {
    let (job, store, clock) = in_a_process_that_dies(async {
        let press = Scripted::deferring([Answer::Says(two_events())]);
        let world = world(PRESSED, &press);
        world.publish("go", json!({}), None).await;
        let job = world.left_outside().await;
        world.given.settle().await;
        world.given.store.hold_commits();
        world.given.next_poll(&job).await;
        assert_eq!((press.times("poll"), world.given.store.commits_held()), (1, 1));
        assert!(world.events("made").is_empty());
        (job, world.given.store.clone(), world.given.clock.clone())
    });
    store.take_commits_again();
    let press = Scripted::deferring([Answer::Says(two_events())]);
    let seen = Seen::default();
    let executors =
        [press.named("press"), noting("worker", &seen, |_| done()), noting("watcher", &seen, |_| done())];
    let world = World { seen, ..World::with(PRESSED, Given::on(store, clock, executors)) };
    // The claim of the dead process ends with its lease.
    world.given.clock.advance_seconds(60);
    world.given.until(&job, JobStateName::Completed).await;
    world.given.settle().await;
    assert_eq!((press.times("poll"), world.events("made").len()), (1, 2));
    assert_eq!(world.names(), ["watcher", "watcher", "worker", "worker"]);
}

#[tokio::test]
async fn poll_whose_commit_nobody_answers_for_hands_over_once() {
    let press = Scripted::deferring([Answer::Says(two_events()), Answer::Says(two_events())]);
    let world = world(PRESSED, &press);
    let id = world.publish("go", json!({}), None).await;
    let run_id = world.started(&id).await;
    let job = world.left_outside().await;
    world.given.settle().await;
    world.given.store.keep_silent_about(1);
    world.given.next_poll(&job).await;
    world.until(&run_id, RunState::Completed).await;
    world.given.settle().await;
    assert_eq!(world.events("made").len(), 2);
    assert_eq!(world.names(), ["watcher", "watcher", "worker", "worker"]);
}

#[tokio::test]
async fn result_that_its_job_does_not_take_hands_over_nothing() {
    let door = Arc::new(Semaphore::new(0));
    let press = Scripted::deferring([Answer::SaysOnce(door.clone(), two_events())]);
    let world = world(PRESSED, &press);
    let id = world.given.create(crate::given::job("press").deadline_in(&world.given, 8)).await;
    world.given.until(&id, JobStateName::AwaitingExternal).await;
    world.given.next_poll(&id).await;
    assert_eq!(press.times("poll"), 1);
    for _ in 0..4 {
        world.given.clock.advance_seconds(1);
        world.given.settle().await;
    }
    door.add_permits(1);
    world.given.until(&id, JobStateName::Expired).await;
    world.given.settle().await;
    assert!(world.events("made").is_empty());
    assert_eq!(world.remembered().await, None);
}

#[tokio::test]
async fn job_that_goes_on_after_a_poll_emits_both_what_came_and_its_own() {
    let goes_on = Produced::Deferred(Deferral { then: AfterExternal::Resume, ..handle() });
    let Polled::Completed(came) = two_events() else { unreachable!("it is completed") };
    let press = Scripted::producing(
        [goes_on, emitting(&[("made", json!({ "n": 3 }))])],
        [Answer::Says(Polled::Completed(came))],
    );
    let world = world(PRESSED, &press);
    let id = world.publish("go", json!({}), None).await;
    let run_id = world.started(&id).await;
    let job = world.left_outside().await;
    world.given.next_poll(&job).await;
    let run = world.until(&run_id, RunState::Completed).await;
    world.given.settle().await;
    assert_eq!((press.times("produce"), run.visits.len()), (2, 2), "its run goes on with its own");
    assert_eq!(world.events("made").len(), 3);
    assert_eq!(world.names(), ["watcher", "watcher", "watcher", "worker"]);
    assert_eq!(world.remembered().await.as_deref(), Some(r#"{"pages":12}"#));
}

#[tokio::test]
async fn poll_whose_events_lead_too_far_fails_its_job_and_starts_nothing() {
    let yaml = "pipelines: [{ name: echo, on: ping, max_depth: 1, steps: [{ uses: press }] }]";
    let pings = || Answer::Says(handed_over(&[("ping", json!({}))]));
    let press = Scripted::deferring([pings(), pings()]);
    let world = world(yaml, &press);
    world.publish("ping", json!({}), None).await;
    let first = world.left_outside().await;
    world.given.next_poll(&first).await;
    world.given.until(&first, JobStateName::Completed).await;
    let second = world.left_outside().await;
    world.given.next_poll(&second).await;
    let failed = world.given.until(&second, JobStateName::Failed).await;
    world.given.settle().await;
    assert_eq!(failed.state_reason.as_deref(), Some("depth_exceeded"));
    let error = world.given.store.inner.body(&second.into(), failed.result.error.unwrap()).await.unwrap();
    let error = String::from_utf8(error.unwrap()).unwrap();
    assert!(error.contains("max_depth = 1; change max_depth of echo"), "{error}");
    assert_eq!((world.jobs().len(), world.events("ping").len()), (2, 3), "it is written down");
    let remembered = world.given.store.inner.plugin_state("press").await.expect("it can be read");
    assert_eq!(remembered.map(|state| state.version), Some(1), "what failed is not remembered");
}
