//! Events and pipelines over the memory store: what is started, in which commit, and what a crash leaves.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use domain::event::{Disposition, Event, EventStatus};
use domain::job::{AttemptLimit, JobCommand, JobStateName};
use domain::limit::LimitValue;
use domain::run::{MAX_CANCELLED, Run, RunCommand, RunState};
use domain::{JobId, RecordId};
use engine::{Executor, Order, Output, Produced};
use serde_json::json;
use store::Store;
use tokio::sync::Semaphore;

use crate::given::routed::{Seen, World, done, emitting, failed, noting};
use crate::given::{Gate, scripted};

// conforms: D27
#[tokio::test]
async fn event_starts_exactly_the_pipelines_that_listen_and_says_what_came_of_it_for_each() {
    let yaml = "
pipelines:
- { name: high, on: tide, if: { path: payload.level, op: gte, value: 2000 }, steps: [{ uses: a }] }
- { name: low, on: tide, if: { path: payload.level, op: lt, value: 2000 }, steps: [{ uses: a }] }
- { name: odd, on: tide, if: { path: payload.station, op: gt, value: 1 }, steps: [{ uses: a }] }
- { name: of_gauge, on: tide, from_plugin: gauge, steps: [{ uses: a }] }
- { name: other, on: wind, steps: [{ uses: a }] }
";
    let world = World::new(yaml, |seen| [noting("a", seen, |_| done())]);
    let id = world.publish("tide", json!({ "level": 2000, "station": "north" }), None).await;
    let event = world.settled(&id).await;
    let said: BTreeMap<String, &str> = event
        .settled
        .as_ref()
        .expect("it is settled")
        .settlement
        .routes
        .iter()
        .map(|routed| (routed.pipeline.clone(), routed.disposition.as_str()))
        .collect();
    let expected = [
        ("high", "started"),
        ("low", "predicate_false"),
        ("odd", "predicate_invalid"),
        ("of_gauge", "other_source"),
    ];
    assert_eq!(said, expected.map(|(name, word)| (name.to_owned(), word)).into());
    let run = world.until(&world.started(&id).await, RunState::Completed).await;
    assert_eq!((run.begun.pipeline.as_str(), world.jobs().len()), ("high", 1));
    assert_eq!(world.seen(), [("a".to_owned(), json!({ "level": 2000, "station": "north" }))]);
    let nobody = world.publish("nothing.listens", json!({}), None).await;
    assert_eq!(world.settled(&nobody).await.status(), EventStatus::NoRoute);
}

#[tokio::test]
async fn result_of_a_step_is_given_to_the_next_with_templates_and_baggage() {
    let yaml = r#"
pipelines:
- name: tides
  on: tide
  steps:
  - { id: render, uses: a, baggage: { tide.station: payload.station } }
  - { id: tell, uses: b, with: { text: "{payload.level} mm at {context.tide.station}", exact: "{payload.level}" } }
"#;
    let world = World::new(yaml, |seen| {
        let a = noting("a", seen, |input| emitting(&[("rendered", json!({ "level": input["level"] }))]));
        [a, noting("b", seen, |_| done())]
    });
    let level = u64::MAX - 1;
    let id = world.publish("tide", json!({ "level": level, "station": "north" }), None).await;
    world.until(&world.started(&id).await, RunState::Completed).await;
    let (_, given) = world.seen().pop().expect("it was done");
    assert_eq!(given["text"], format!("{level} mm at north"));
    assert_eq!(given["exact"], level, "a single reference keeps its kind");
}

#[tokio::test]
async fn what_follows_a_split_waits_for_all_branches_and_sees_what_each_came_to() {
    let yaml = "
pipelines:
- name: fan
  on: go
  steps:
  - split:
    - { id: left, uses: a }
    - { id: right, steps: [{ id: r1, uses: b }, { id: r2, uses: a }] }
  - { id: join, uses: c }
";
    let world = World::new(yaml, |seen| {
        let of = |name: &'static str| {
            noting(name, seen, move |_| {
                let data = json!({ "by": name }).to_string().into_bytes();
                Produced::Completed(Output { data: Some(data), ..Output::default() })
            })
        };
        [of("a"), of("b"), of("c")]
    });
    let id = world.publish("go", json!({}), None).await;
    world.until(&world.started(&id).await, RunState::Completed).await;
    assert_eq!(world.names(), ["a", "a", "b", "c"], "once each, the same executor in two branches too");
    let (last, given) = world.seen().pop().expect("it was done");
    assert_eq!(
        (last.as_str(), given),
        ("c", json!({ "branches": { "left": { "by": "a" }, "right": { "by": "a" } } }))
    );
}

#[tokio::test]
async fn every_event_of_a_step_moves_its_run_and_starts_what_listens_in_one_commit_with_the_end() {
    let yaml = "
pipelines:
- { name: main, on: go, steps: [{ id: make, uses: maker }, { id: each, uses: worker }] }
- { name: also, on: made, steps: [{ uses: watcher }] }
";
    let world = World::new(yaml, |seen| {
        let maker =
            noting("maker", seen, |_| emitting(&[("made", json!({ "n": 1 })), ("made", json!({ "n": 2 }))]));
        [maker, noting("worker", seen, |_| done()), noting("watcher", seen, |_| done())]
    });
    let id = world.publish("go", json!({}), None).await;
    let run = world.until(&world.started(&id).await, RunState::Completed).await;
    world.given.settle().await;
    assert_eq!(world.names(), ["maker", "watcher", "watcher", "worker", "worker"]);
    let made = world.jobs().into_iter().find(|job| job.spec.executor.as_deref() == Some("maker"));
    let made = made.expect("it was done");
    let positions = world.given.store.inner.inspect(|tables| {
        let completed = |id: &RecordId| *id == RecordId::from(made.id.clone());
        let at = tables.facts.values().filter(|fact| completed(&fact.stream)).map(|fact| fact.at).max();
        let kinds =
            tables.facts.values().filter(|fact| Some(fact.at) == at).map(|fact| store::fact_kind(&fact.fact));
        kinds.map(str::to_owned).collect::<Vec<_>>()
    });
    assert!(positions.iter().any(|kind| kind == "event.settled/1"), "{positions:?}");
    assert_eq!(run.visits.len(), 3);
}

#[tokio::test]
async fn what_one_commit_starts_queues_in_the_order_in_which_it_was_emitted() {
    let yaml = "
pipelines:
- { name: main, on: go, steps: [{ id: make, uses: maker }, { id: each, uses: worker }] }
- { name: also, on: made, steps: [{ uses: watcher }] }
";
    let world = World::new(yaml, |seen| {
        let made: Vec<_> = (0..8).map(|n| ("made", json!({ "n": n }))).collect();
        let maker = noting("maker", seen, move |_| emitting(&made));
        [maker, noting("worker", seen, |_| done()), noting("watcher", seen, |_| done())]
    });
    let id = world.publish("go", json!({}), None).await;
    world.until(&world.started(&id).await, RunState::Completed).await;
    world.given.settle().await;
    let given_to = |name: &str| {
        let seen = world.seen().into_iter().filter(|(who, _)| who == name);
        seen.map(|(_, given)| given["n"].as_u64().expect("it is numbered")).collect::<Vec<_>>()
    };
    assert_eq!(given_to("worker"), (0..8).collect::<Vec<_>>());
    assert_eq!(given_to("watcher"), (0..8).collect::<Vec<_>>());
}

#[tokio::test]
async fn join_has_the_same_shape_when_a_single_branch_is_left() {
    let yaml = "
pipelines:
- name: fan
  on: go
  steps:
  - split:
    - { id: left, uses: a }
    - { id: right, uses: bad, on_error: continue }
  - { id: join, uses: c }
";
    let world = World::new(yaml, |seen| {
        let data = || json!({ "by": "a" }).to_string().into_bytes();
        let a = move |_: &_| Produced::Completed(Output { data: Some(data()), ..Output::default() });
        [noting("a", seen, a), noting("bad", seen, |_| failed()), noting("c", seen, |_| done())]
    });
    let id = world.publish("go", json!({}), None).await;
    world.until(&world.started(&id).await, RunState::Completed).await;
    let (last, given) = world.seen().pop().expect("it was done");
    assert_eq!((last.as_str(), given), ("c", json!({ "branches": { "left": { "by": "a" } } })));
}

#[tokio::test]
async fn event_that_its_run_does_not_go_on_with_and_nobody_listens_to_has_no_route() {
    let yaml = "
pipelines:
- { name: main, on: go, steps: [{ id: make, uses: maker }, { id: last, uses: ender }] }
";
    let world = World::new(yaml, |seen| {
        let maker = noting("maker", seen, |_| emitting(&[("made", json!({}))]));
        [maker, noting("ender", seen, |_| emitting(&[("ended", json!({}))]))]
    });
    let id = world.publish("go", json!({}), None).await;
    world.until(&world.started(&id).await, RunState::Completed).await;
    world.given.settle().await;
    let views = world.given.store.inner.inspect(|tables| tables.views.clone());
    let status_of = |kind: &str| {
        let mut events = views.values().filter_map(|record| record.as_event());
        events.find(|event| event.said.kind == kind).map(Event::status)
    };
    assert_eq!(status_of("made"), Some(EventStatus::Routed));
    assert_eq!(status_of("ended"), Some(EventStatus::NoRoute));
}

#[tokio::test]
async fn failure_goes_to_its_handler_and_a_called_pipeline_returns() {
    let yaml = "
pipelines:
- name: main
  on: go
  steps:
  - { id: try, uses: bad, on_error: [{ id: mend, uses: mender }] }
- name: outer
  on: call
  steps:
  - { id: sub, call: inner }
  - { id: after, uses: last }
- { name: inner, on: nothing, steps: [{ id: one, uses: mender }] }
";
    let world = World::new(yaml, |seen| {
        [
            noting("bad", seen, |_| failed()),
            noting("mender", seen, |_| done()),
            noting("last", seen, |_| done()),
        ]
    });
    let id = world.publish("go", json!({ "goal": 7 }), None).await;
    world.until(&world.started(&id).await, RunState::Completed).await;
    let (name, told) = world.seen().pop().expect("it was done");
    assert_eq!(
        (name.as_str(), &told["step"], &told["code"], &told["goal"]),
        ("mender", &json!("try"), &json!("boom"), &json!(7))
    );
    assert_eq!(told["error"]["message"], "it does not work");
    let id = world.publish("call", json!({}), None).await;
    world.until(&world.started(&id).await, RunState::Completed).await;
    assert_eq!(world.names(), ["bad", "last", "mender", "mender"]);
}

#[tokio::test]
async fn failed_step_is_retried_and_its_run_goes_on() {
    let yaml = "pipelines: [{ name: p, on: go, steps: [{ id: a, uses: flaky }, { id: b, uses: last }] }]";
    let tries = Arc::new(Mutex::new(0));
    let counted = tries.clone();
    let world = World::new(yaml, |seen| {
        let flaky = noting("flaky", seen, move |_| {
            let mut tries = counted.lock().expect("no holder of the lock panics");
            *tries += 1;
            if *tries == 1 { failed() } else { done() }
        });
        [flaky, noting("last", seen, |_| done())]
    });
    let id = world.publish("go", json!({}), None).await;
    let run_id = world.started(&id).await;
    let run = world.until(&run_id, RunState::Failed).await;
    let job_id = run.visits[0].job_id().expect("it was begun").clone();
    let order = engine::RunOrder { actor: Arc::from("test"), keys: Vec::new() };
    world.given.daemon.run_now(&job_id, domain::job::Trigger::Retry, order).await.expect("it is allowed");
    world.until(&run_id, RunState::Completed).await;
    assert_eq!(world.names(), ["flaky", "flaky", "last"]);
}

#[tokio::test]
async fn run_goes_on_with_the_events_of_a_step_whose_job_was_purged_meanwhile() {
    let yaml = "
pipelines:
- name: p
  on: go
  steps:
  - { id: make, uses: maker }
  - { id: wait, split: [{ id: left, uses: slow }, { id: right, uses: quick }] }
  - { id: join, uses: last }
";
    let gate = Gate::default();
    let door = gate.clone();
    let world = World::new(yaml, |seen| {
        let maker = noting("maker", seen, |_| emitting(&[("made", json!({ "n": 1 }))]));
        let slow = scripted("slow", 8, move |assignment, _| {
            let door = door.clone();
            async move {
                door.pass(&assignment.job.id).await;
                done()
            }
        });
        [maker, slow, noting("quick", seen, |_| done()), noting("last", seen, |_| done())]
    });
    let order = domain::Json::parse(r#"{"order":7}"#).expect("it is JSON");
    let id = world.publish_with("go", json!({}), |new| new.correlation = Some(order)).await;
    let run_id = world.started(&id).await;
    let of =
        |executor: &str| world.jobs().into_iter().find(|job| job.spec.executor.as_deref() == Some(executor));
    world.given.settle().await;
    gate.arrived(&of("slow").expect("it waits").id).await;
    let made = of("maker").expect("it is done");
    world.given.order(&made.id, JobCommand::Purge).await;
    gate.open();
    world.until(&run_id, RunState::Completed).await;
    assert_eq!(world.names(), ["last", "maker", "quick"]);
    let last = of("last").expect("it is done");
    let body =
        last.bodies.iter().find(|body| body.name == domain::BodyName::Context).expect("it was carried to it");
    let context = world.given.store.inner.body(&last.id.clone().into(), *body).await.expect("it can be read");
    let context: serde_json::Value =
        serde_json::from_slice(&context.expect("it is kept")).expect("it is JSON");
    assert_eq!(context["correlation"], json!({ "order": 7 }));
}

#[tokio::test]
async fn cancel_of_a_run_stops_all_that_it_began() {
    let yaml = "pipelines: [{ name: p, on: go, steps: [{ split: [{ id: a, uses: slow }, { id: b, uses: slow }] }, { uses: last }] }]";
    let world = World::new(yaml, |seen| {
        let slow = scripted("slow", 8, |_, mut link| async move {
            link.stopped().await;
            Produced::Stopped
        });
        [slow, noting("last", seen, |_| done())]
    });
    let id = world.publish("go", json!({}), None).await;
    let run_id = world.started(&id).await;
    let jobs: Vec<JobId> = world.run(&run_id).await.open_jobs().map(|(_, job_id)| job_id.clone()).collect();
    assert_eq!(jobs.len(), 2);
    let cancel = RunCommand::RequestCancel { by: None, reason: "enough".to_owned() };
    let order = Order::new(run_id.clone(), cancel, Arc::from("test"));
    world.given.daemon.engine().execute(order).await.expect("it is allowed");
    world.until(&run_id, RunState::Cancelled).await;
    for job in jobs {
        assert_eq!(world.given.state_of(&job).await, JobStateName::Cancelled);
    }
    assert!(world.names().is_empty());
}

/// Waits until there is a permit, and then ends so.
fn gated(name: &str, gate: &Arc<Semaphore>, end: fn() -> Produced) -> (String, Executor) {
    let gate = gate.clone();
    scripted(name, 8, move |_, _| {
        let gate = gate.clone();
        async move {
            gate.acquire().await.expect("it stays open").forget();
            end()
        }
    })
}

#[tokio::test]
async fn siblings_that_end_at_once_are_in_one_commit() {
    let split: Vec<String> = (0..6).map(|n| format!("{{ id: s{n}, uses: gated }}")).collect();
    let split = split.join(", ");
    let yaml = format!("pipelines: [{{ name: p, on: go, steps: [{{ split: [{split}] }}] }}]");
    let gate = Arc::new(Semaphore::new(0));
    let world = World::new(&yaml, |_| [gated("gated", &gate, done)]);
    let run_id = world.started(&world.publish("go", json!({}), None).await).await;
    world.given.settle().await;
    let before = world.given.store.commits();
    world.given.store.be_late();
    gate.add_permits(6);
    world.given.settle().await;
    assert_eq!(world.given.store.commits(), before + 1, "five wait for the first");
    world.given.store.answer_late();
    world.until(&run_id, RunState::Completed).await;
    assert_eq!(world.given.store.commits(), before + 2);
}

#[tokio::test]
async fn refused_report_holds_up_no_sibling() {
    let yaml = "pipelines: [{ name: p, on: go, steps: [{ split: [{ id: a, uses: good }, { id: b, uses: good }, { id: c, uses: bad }] }] }]";
    let gate = Arc::new(Semaphore::new(0));
    let too_long = || Produced::Completed(Output { summary: Some("x".repeat(10_000)), ..Output::default() });
    let world = World::new(yaml, |_| [gated("good", &gate, done), gated("bad", &gate, too_long)]);
    let run_id = world.started(&world.publish("go", json!({}), None).await).await;
    world.given.settle().await;
    world.given.store.be_late();
    gate.add_permits(3);
    world.given.settle().await;
    world.given.store.answer_late();
    let run = world.until(&run_id, RunState::Failed).await;
    let mut ends = Vec::new();
    for job in run.visits.iter().filter_map(|visit| visit.job_id()) {
        ends.push(world.given.state_of(job).await);
    }
    assert_eq!(ends, [JobStateName::Completed, JobStateName::Completed, JobStateName::Failed]);
}

#[tokio::test]
async fn cancel_of_a_wide_run_goes_on_until_every_job_was_asked() {
    let split: Vec<String> = (0..100).map(|n| format!("{{ id: s{n}, uses: slow }}")).collect();
    let split = split.join(", ");
    let yaml = format!("pipelines: [{{ name: p, on: go, steps: [{{ split: [{split}] }}] }}]");
    let world = World::new(&yaml, |_| {
        [scripted("slow", 4, |_, mut link| async move {
            link.stopped().await;
            Produced::Stopped
        })]
    });
    let run_id = world.started(&world.publish("go", json!({}), None).await).await;
    world.given.settle().await;
    assert_eq!(world.run(&run_id).await.open_jobs().count(), 100);
    world.given.store.forget_commits();
    let cancel = RunCommand::RequestCancel { by: None, reason: "enough".to_owned() };
    let order = Order::new(run_id.clone(), cancel, Arc::from("test"));
    world.given.daemon.engine().execute(order).await.expect("it is allowed");
    assert_eq!(world.run(&run_id).await.not_yet_cancelled().count(), 100 - MAX_CANCELLED);
    let run = world.until(&run_id, RunState::Cancelled).await;
    assert_eq!(run.not_yet_cancelled().count(), 0);
    for job in run.visits.iter().filter_map(|visit| visit.job_id()) {
        assert_eq!(world.given.state_of(job).await, JobStateName::Cancelled);
    }
    assert_eq!(world.given.store.largest_commit(), 1 + MAX_CANCELLED);
}

#[tokio::test]
async fn same_key_starts_nothing_while_its_work_waits_runs_or_was_done_within_the_window_and_again_after_a_failure()
 {
    let yaml = "pipelines: [{ name: p, on: go, dedupe_window: 1h, steps: [{ uses: a }] }, { name: q, on: go, steps: [{ uses: a }] }]";
    let fails = Arc::new(Mutex::new(false));
    let told = fails.clone();
    let world = World::new(yaml, |seen| {
        [noting("a", seen, move |_| if *told.lock().expect("no panic") { failed() } else { done() })]
    });
    let first = world.publish("go", json!({}), Some("k")).await;
    let second = world.publish("go", json!({}), Some("k")).await;
    let run_id = world.started(&first).await;
    let event = world.settled(&second).await;
    let of = |event: &Event| {
        let routes = &event.settled.as_ref().expect("it is settled").settlement.routes;
        routes.iter().map(|routed| routed.disposition.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(of(&event), ["duplicate", "duplicate"], "per target");
    world.until(&run_id, RunState::Completed).await;
    world.given.clock.advance_seconds(3_601);
    *fails.lock().expect("no panic") = true;
    let third = world.publish("go", json!({}), Some("k")).await;
    let event = world.settled(&third).await;
    assert_eq!(of(&event), ["started", "duplicate"], "the window of q is a day");
    world.until(&world.started(&third).await, RunState::Failed).await;
    let fourth = world.publish("go", json!({}), Some("k")).await;
    assert_eq!(of(&world.settled(&fourth).await), ["started", "duplicate"], "what failed stands for nothing");
}

#[tokio::test]
async fn event_whose_work_others_start_again_and_again_meanwhile_is_a_duplicate_and_never_invalid() {
    let yaml =
        "pipelines: [{ name: p, on: go, steps: [{ uses: a }] }, { name: q, on: go, steps: [{ uses: a }] }]";
    let world = World::new(yaml, |seen| [noting("a", seen, |_| done())]);
    let first = world.publish("go", json!({}), Some("k")).await;
    world.until(&world.started(&first).await, RunState::Completed).await;
    // It looks for what is there, and what it does not find has begun when it is about to start it: twice.
    world.given.store.overlook_runs(3);
    let second = world.publish("go", json!({}), Some("k")).await;
    let routes = world.settled(&second).await.settled.expect("it is settled").settlement.routes;
    let said: Vec<&str> = routes.iter().map(|routed| routed.disposition.as_str()).collect();
    assert_eq!(said, ["duplicate", "duplicate"]);
}

#[tokio::test]
async fn key_of_a_run_that_is_forgotten_starts_another_while_jobs_of_the_first_are_still_kept() {
    let yaml = "pipelines: [{ name: p, on: go, steps: [{ id: try, uses: bad, on_error: [{ id: mend, uses: good }] }] }]";
    let world =
        World::new(yaml, |seen| [noting("bad", seen, |_| failed()), noting("good", seen, |_| done())]);
    let first = world.publish("go", json!({}), Some("k")).await;
    let run_id = world.started(&first).await;
    world.until(&run_id, RunState::Completed).await;
    // What was completed is kept for a week, and what failed for a month.
    world.given.clock.advance_seconds(8 * 86_400);
    while world.load(run_id.clone()).await.is_some() {
        world.given.settle().await;
    }
    assert_eq!(world.jobs().len(), 1, "the failed job is still there");
    let second = world.publish("go", json!({}), Some("k")).await;
    world.until(&world.started(&second).await, RunState::Completed).await;
    assert_eq!(world.names(), ["bad", "bad", "good", "good"]);
}

#[tokio::test]
async fn chain_of_events_that_is_too_long_fails_its_run_and_says_so() {
    let yaml = "pipelines: [{ name: echo, on: ping, max_depth: 2, steps: [{ uses: again }] }]";
    let told: engine::JsonObject = serde_json::from_str(r#"{"turns":1}"#).expect("it is an object");
    let world = World::new(yaml, |seen| {
        let again = noting("again", seen, move |_| {
            let Produced::Completed(output) = emitting(&[("ping", json!({}))]) else {
                unreachable!("it is completed")
            };
            let update = engine::StateUpdate {
                plugin: "again".to_owned(),
                change: engine::StateChange::Merge(told.clone()),
                facts: Vec::new(),
            };
            Produced::Completed(Output { state: Some(update), ..output })
        });
        [again]
    });
    let id = world.publish("ping", json!({}), None).await;
    world.started(&id).await;
    loop {
        let written = world.given.store.written.notified();
        let failed = world.given.store.inner.inspect(|tables| {
            let mut jobs = tables.views.values().filter_map(|record| record.as_job().cloned());
            jobs.find(|job| job.state_reason.as_deref() == Some("depth_exceeded"))
        });
        if let Some(job) = failed {
            let Some(AttemptLimit::Other(limit)) = &job.limit else { panic!("{:?}", job.limit) };
            assert_eq!((&*limit.name, limit.value), ("max_depth", LimitValue::Count(2)));
            assert!(limit.key.starts_with("max_depth of echo"), "{}", limit.key);
            break;
        }
        written.await;
    }
    world.given.settle().await;
    assert_eq!(world.names().len(), 3, "the first, and two hops");
    let (runs, events) = world.given.store.inner.inspect(|tables| {
        let states = tables.views.values().filter_map(|record| record.as_run()).map(Run::state);
        let settled = tables.views.values().filter_map(|record| record.as_event()?.settled.as_ref());
        let deep = settled.filter(|settled| {
            let deep = |routed: &domain::event::Routed| routed.disposition == Disposition::DepthExceeded(3);
            settled.settlement.routes.iter().any(deep)
        });
        (states.filter(|state| *state == RunState::Failed).count(), deep.count())
    });
    assert_eq!((runs, events), (1, 1), "the run of the last one failed, and its event says why");
    let remembered = world.given.store.inner.plugin_state("again").await.expect("it can be read");
    assert_eq!(remembered.map(|state| state.version), Some(2), "what failed is not remembered");
}

#[tokio::test]
async fn end_of_a_job_starts_what_listens_to_it_and_steps_of_pipelines_say_nothing() {
    let yaml = "pipelines: [{ name: hook, on-hook: job.failed, steps: [{ uses: bad }] }]";
    let world = World::new(yaml, |seen| [noting("bad", seen, |_| failed())]);
    let id = world.given.create(crate::given::job("bad").input(b"{}")).await;
    world.given.until(&id, JobStateName::Failed).await;
    loop {
        let written = world.given.store.written.notified();
        if world.names().len() == 2 {
            break;
        }
        written.await;
    }
    world.given.settle().await;
    let (_, told) = world.seen().pop().expect("it was told");
    assert_eq!((&told["job_id"], &told["status"]), (&json!(id.as_str()), &json!("failed")));
    assert_eq!(world.names().len(), 2, "the hook itself is no reason for another");
}

#[tokio::test]
async fn executor_that_runs_what_its_input_says_is_given_what_the_file_says_and_nothing_of_the_event() {
    struct Shell(Seen);
    impl engine::Specialist for Shell {
        fn produce(
            &self,
            assignment: engine::Assignment,
            _: engine::Link,
        ) -> futures::future::BoxFuture<'_, Produced> {
            let input = serde_json::from_slice(&assignment.input).expect("the input is JSON");
            self.0.lock().expect("no holder of the lock panics").push(("shell".to_owned(), input));
            Box::pin(async { done() })
        }

        fn traits(&self) -> engine::ExecutorTraits {
            engine::ExecutorTraits { runs_its_input: true, ..engine::ExecutorTraits::default() }
        }
    }
    let yaml = r#"pipelines: [{ name: p, on: go, steps: [{ uses: shell, with: { argv: [echo, "{payload.word}"] } }] }]"#;
    let world = World::new(yaml, |seen| {
        let executor = Executor {
            specialist: Arc::new(Shell(seen.clone())),
            concurrency: 1,
            retry: engine::Executors::DEFAULT_RETRY,
            modes: engine::Modes::default(),
        };
        [("shell".to_owned(), executor)]
    });
    let said = json!({ "word": "hello", "argv": ["rm"], "env": { "PATH": "/tmp" } });
    let id = world.publish("go", said, None).await;
    world.until(&world.started(&id).await, RunState::Completed).await;
    assert_eq!(world.seen(), [("shell".to_owned(), json!({ "argv": ["echo", "hello"] }))]);
}

#[tokio::test]
async fn step_that_is_done_again_by_hand_starts_its_children_once() {
    let yaml = "pipelines: [{ name: p, on: go, steps: [{ id: a, uses: a }, { id: b, uses: b }] }]";
    let world = World::new(yaml, |seen| [noting("a", seen, |_| done()), noting("b", seen, |_| done())]);
    let id = world.publish("go", json!({}), None).await;
    let run = world.until(&world.started(&id).await, RunState::Completed).await;
    for visit in &run.visits {
        let job_id = visit.job_id().expect("it was begun").clone();
        let order = Order::new(job_id.clone(), JobCommand::Retire, Arc::from("test"));
        // Whatever is said of its jobs afterwards, the run is over.
        world.given.daemon.engine().execute(order).await.expect("it is over");
        assert!(world.given.is_gone(&job_id).await);
    }
    assert_eq!(world.run(&run.id).await, run);
}
