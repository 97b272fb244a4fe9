//! What goes along with an event: the correlation over every hop, payloads however large, what a file says a step is given, and what its
//! plugin remembers.

use domain::event::NewEvent;
use domain::job::JobStateName;
use domain::run::RunState;
use domain::{Json, RecordId};
use engine::{Emitted, Output, Produced, StateChange, StateUpdate};
use serde_json::{Value, json};

use crate::given::routed::{Seen, World, done, emitting, noting};
use crate::given::{Given, job};

/// An executor that is given events with their context, as plugins are.
fn taking_events(
    name: &'static str,
    seen: &Seen,
    answer: impl Fn(&Value) -> Produced + Send + Sync + 'static,
) -> (String, engine::Executor) {
    struct TakesEvents(std::sync::Arc<dyn engine::Specialist>);
    impl engine::Specialist for TakesEvents {
        fn produce(
            &self,
            assignment: engine::Assignment,
            link: engine::Link,
        ) -> futures::future::BoxFuture<'_, Produced> {
            self.0.produce(assignment, link)
        }

        fn traits(&self) -> engine::ExecutorTraits {
            engine::ExecutorTraits { takes_events: true, ..engine::ExecutorTraits::default() }
        }
    }
    let (name, executor) = noting(name, seen, answer);
    let specialist = std::sync::Arc::new(TakesEvents(executor.specialist.clone()));
    (name, engine::Executor { specialist, ..executor })
}

/// A result with one event that says what is carried from now on.
fn carrying(kind: &str, correlation: &Value) -> Produced {
    let listed = json!({ "type": kind, "payload": { "step": "its own" }, "correlation": correlation });
    let correlation = Some(Json::parse(&correlation.to_string()).expect("it is JSON"));
    let (kind, payload) = (kind.to_owned(), listed["payload"].to_string().into_bytes());
    Produced::Completed(Output {
        data: Some(json!({ "result": "ok", "events": [listed] }).to_string().into_bytes()),
        emitted: vec![Emitted { kind, payload, dedupe_key: None, correlation }],
        ..Output::default()
    })
}

fn carried_by(text: &str) -> impl FnOnce(&mut NewEvent) {
    let json = Json::parse(text).expect("it is JSON");
    move |new| new.correlation = Some(json)
}

#[tokio::test]
async fn what_an_event_carries_reaches_every_step_and_what_they_start_until_an_event_says_otherwise() {
    let yaml = "
pipelines:
- name: p
  on: go
  steps: [{ id: a, uses: a }, { id: plain, uses: plain }, { id: b, uses: b }, { id: c, uses: c }]
- { name: q, on: told, steps: [{ uses: d }] }
";
    let world = World::new(yaml, |seen| {
        [
            taking_events("a", seen, |_| emitting(&[("x", json!({ "correlation": "no", "step": 9 }))])),
            noting("plain", seen, |_| done()),
            taking_events("b", seen, |_| carrying("told", &json!({ "step": 2 }))),
            taking_events("c", seen, |_| done()),
            taking_events("d", seen, |_| done()),
        ]
    });
    let id = world.publish_with("go", json!({}), carried_by(r#"{"step":1}"#)).await;
    world.until(&world.started(&id).await, RunState::Completed).await;
    let all = || world.seen().into_iter().filter(|(name, _)| name != "plain");
    while all().count() < 4 {
        world.given.settle().await;
    }
    for (name, input) in all() {
        let expected = if name == "a" || name == "b" { json!({ "step": 1 }) } else { json!({ "step": 2 }) };
        assert_eq!(input["context"]["correlation"], expected, "{name}");
    }
}

#[tokio::test]
async fn payload_is_carried_whole_where_the_pipeline_says_so_and_what_is_the_hosts_own_is_not_taken_from_it()
{
    let yaml = "
pipelines:
- { name: p, on: go, carry: payload, steps: [{ uses: a }, { id: b, uses: b }] }
- { name: q, on: go, steps: [{ uses: c }, { uses: d }] }
";
    let world = World::new(yaml, |seen| {
        let other = |_: &Value| emitting(&[("x", json!({ "run_id": "theirs" }))]);
        [
            taking_events("a", seen, other),
            taking_events("b", seen, |_| done()),
            taking_events("c", seen, other),
            taking_events("d", seen, |_| done()),
        ]
    });
    let payload = json!({ "run_id": "R1", "step": 1, "correlation": "no", "ductile_step_id": "no" });
    world.publish("go", payload, None).await;
    while world.seen().len() < 4 {
        world.given.settle().await;
    }
    for (name, input) in world.seen() {
        let context = &input["context"];
        let run_id = if name == "a" || name == "b" { json!("R1") } else { Value::Null };
        assert_eq!((&context["run_id"], &context["correlation"]), (&run_id, &Value::Null), "{name}: {input}");
        assert_ne!(context["ductile_step_id"], "no", "{name}");
    }
}

#[tokio::test]
async fn what_a_file_gives_replaces_a_payload_and_is_laid_over_it_for_those_who_take_events() {
    let with = "with: { text: '{payload.level} mm' }";
    let yaml = format!(
        "pipelines: [{{ name: p, on: go, steps: [{{ split: [{{ uses: plain, {with} }}, {{ uses: plugin, {with} }}] }}] }}]"
    );
    let world = World::new(&yaml, |seen| {
        [noting("plain", seen, |_| done()), taking_events("plugin", seen, |_| done())]
    });
    let id = world.publish("go", json!({ "level": 7, "station": "north" }), None).await;
    world.until(&world.started(&id).await, RunState::Completed).await;
    for (name, input) in world.seen() {
        match name.as_str() {
            "plain" => assert_eq!(input, json!({ "text": "7 mm" })),
            _ => assert_eq!(
                input["event"]["payload"],
                json!({ "level": 7, "station": "north", "text": "7 mm" })
            ),
        }
    }
}

#[tokio::test]
async fn payloads_that_are_too_large_for_the_result_together_reach_the_next_step_all_the_same() {
    let yaml = "pipelines: [{ name: p, on: go, steps: [{ id: a, uses: a }, { id: b, uses: b }] }]";
    let world = World::new(yaml, |seen| {
        // As a plugin's result leaves them out.
        let a = noting("a", seen, |_| {
            let Produced::Completed(mut output) =
                emitting(&[("x", json!({ "n": 1 })), ("x", json!({ "n": 2 }))])
            else {
                unreachable!("it succeeds")
            };
            let without = json!({ "result": "ok", "events": [{ "type": "x" }, { "type": "x" }] });
            output.data = Some(without.to_string().into_bytes());
            Produced::Completed(output)
        });
        [a, noting("b", seen, |_| done())]
    });
    let id = world.publish("go", json!({}), None).await;
    world.until(&world.started(&id).await, RunState::Completed).await;
    let mut given: Vec<Value> =
        world.seen().into_iter().filter(|(name, _)| name == "b").map(|(_, input)| input).collect();
    given.sort_by_key(|input| input["n"].as_u64());
    assert_eq!(given, [json!({ "n": 1 }), json!({ "n": 2 })]);
}

/// A turn that remembers something and emits an event.
fn turn(remembered: &str) -> Produced {
    let Produced::Completed(output) = emitting(&[("asked", json!({}))]) else { unreachable!("it succeeds") };
    let updates = serde_json::from_str(&json!({ "pending": remembered }).to_string()).expect("it is JSON");
    let change = StateChange::Merge(updates);
    let state = Some(StateUpdate { plugin: "agent".to_owned(), change, facts: Vec::new() });
    Produced::Completed(Output { state, ..output })
}

// conforms: D19 L10
#[tokio::test]
async fn no_event_of_a_turn_is_there_without_what_its_plugin_remembers_of_it() {
    let seen = Seen::default();
    let agent = noting("agent", &seen, |input| {
        turn(&"x".repeat(usize::try_from(input["bytes"].as_u64().expect("a number")).expect("it fits")))
    });
    let given = Given::new([agent]);
    let done = given.create(job("agent").input(br#"{"bytes":4}"#)).await;
    given.until(&done, JobStateName::Completed).await;
    let event = emitted_by(&given, &done).expect("it was published");
    assert_eq!(given.store.remembered_with(&event), Some(vec!["agent".to_owned()]));
    assert!(given.store.changed_with(&event, &done.into()), "the job ends in another commit");
    // What cannot be remembered is not said either.
    let refused = given.create(job("agent").input(br#"{"bytes":1100000}"#)).await;
    given.until(&refused, JobStateName::Failed).await;
    assert_eq!(emitted_by(&given, &refused), None);
}

/// The event that a job has emitted, if it has.
fn emitted_by(given: &Given, job: &domain::JobId) -> Option<RecordId> {
    let views = given.store.inner.inspect(|tables| tables.views.clone());
    let mut events = views.values().filter_map(|record| record.as_event());
    let is_of_job = |origin: &domain::event::Origin| matches!(origin, domain::event::Origin::Emitted { job_id, .. } if job_id == job);
    events.find(|event| is_of_job(&event.said.origin)).map(|event| event.id.clone().into())
}
