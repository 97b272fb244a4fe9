//! Giving work to a service: what its answers mean, and what a crash or silence around it leads to.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use domain::job::{JobState, JobStateName};
use domain::operation::{Cancelability, OrphanReason};
use serde_json::json;

use crate::service::{Reply, Service, reply};
use crate::world::World;

/// A connector to this service, with these lines under `submit`.
pub fn connector(service: &Service, submit: &str) -> String {
    connector_to(service.address, submit)
}

fn connector_to(address: SocketAddr, submit: &str) -> String {
    format!(
        r#"
name: render
execution_mode_support: either
allow: ["{address}"]
secrets: {{ token: {{ env: RENDER_TOKEN }} }}
policy: {{ max_ttl_seconds: 86400 }}
limits: {{ response_bytes: 4096 }}
submit:
  url: http://{address}/renders
  headers: {{ Authorization: "Bearer ${{secrets.token}}" }}
  body: {{ scene: "${{input.scene}}", title: "${{job.title}}" }}
  timeout_ms: 500
{submit}
status:
  url: http://{address}/renders/${{operation.remote_id}}
  headers: {{ Authorization: "Bearer ${{secrets.token}}" }}
  timeout_ms: 500
cancel:
  method: DELETE
  url: http://{address}/renders/${{operation.remote_id}}
  headers: {{ Authorization: "Bearer ${{secrets.token}}" }}
  confirmed: [204]
  timeout_ms: 500
read:
  id: answer.body.id
  status: answer.body.state
  progress: answer.body.percent
  progress_text: answer.body.stage
  result: answer.body.output
  error: answer.body.message
states: {{ queued: pending, rendering: running, done: completed, broken: failed, stopped: cancelled, slow: timed-out }}
"#,
    )
}

const INPUT: &str = r#"{"scene":"forest"}"#;

/// Waits until the job waits for another attempt after so many.
async fn queued_after(world: &World, id: &domain::JobId, attempts: u32) {
    let so = |world: &World| {
        let job = world.job(id);
        job.attempt_count == attempts && job.state.name() == JobStateName::Queued
    };
    world.until(so).await;
}

// conforms: O39
#[tokio::test]
async fn work_is_given_to_the_service_under_the_key_of_its_operation_and_polled_to_its_result() {
    let polls = Arc::new(AtomicUsize::new(0));
    let service = Service::start(move |asked| match (asked.method.as_str(), polls.load(Ordering::SeqCst)) {
        ("POST", _) => {
            reply(202, json!({ "id": "r-1", "state": "queued", "until": 600 })).with("Retry-After", 7)
        }
        (_, poll) => {
            polls.fetch_add(1, Ordering::SeqCst);
            let (state, percent) = [("queued", 0), ("rendering", 40), ("done", 100)][poll];
            reply(
                200,
                json!({ "state": state, "percent": percent, "stage": "trees", "output": { "frames": 9 } }),
            )
        }
    });
    let reads = "  result: answer.body.output\n";
    let connector = connector(&service, "  idempotent: true");
    let world = World::new(&connector.replace(reads, &format!("{reads}  fail_after: answer.body.until\n")));
    let id = world.create(INPUT, 3).await;
    world.until_state(&id, JobStateName::AwaitingExternal).await;
    let operation = world.operation(&id);
    assert_eq!(operation.interval_seconds, 7);
    assert_eq!(operation.expires_at, operation.dispatched_at.plus_seconds(600), "less than what is granted");
    assert_eq!(operation.cancelability, Cancelability::Cancelable);
    let submitted = &service.asked()[0];
    assert_eq!(submitted.header("idempotency-key").as_deref(), Some(operation.id.as_str()));
    assert_eq!(submitted.json(), json!({ "scene": "forest", "title": "a job" }));
    world.next_poll(&id).await;
    let running = world.next_poll(&id).await;
    assert_eq!(running.progress.unwrap().as_str(), r#"{"percent":40}"#);
    assert_eq!(running.progress_hint.as_deref(), Some("trees"));
    world.next_poll(&id).await;
    let done = world.until_state(&id, JobStateName::Completed).await;
    assert_eq!(world.result(&done), json!({ "frames": 9 }));
    assert_eq!(service.asked_for("POST", "/renders").len(), 1);
    assert_eq!(service.asked_for("GET", "/renders/r-1").len(), 3);
}

#[tokio::test]
async fn a_service_that_is_done_at_once_completes_the_job_at_once() {
    let service = Service::start(|_| reply(200, json!({ "id": "r", "state": "done", "output": 5 })));
    let world = World::new(&connector(&service, "  idempotent: false"));
    let id = world.create(INPUT, 1).await;
    let done = world.until_state(&id, JobStateName::Completed).await;
    assert_eq!(world.result(&done), json!(5));
}

// conforms: O26 O27
#[tokio::test]
async fn busy_never_means_accepted_and_is_tried_again() {
    for status in [429, 503] {
        let asked = AtomicUsize::new(0);
        let service = Service::start(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
            // Whatever the body says.
            0 => reply(status, json!({ "id": "r", "state": "queued" })).with("Retry-After", 1),
            _ => reply(202, json!({ "id": "r", "state": "queued" })),
        });
        let world = World::new(&connector(&service, "  idempotent: false"));
        let id = world.create(INPUT, 2).await;
        queued_after(&world, &id, 1).await;
        world.clock.advance_seconds(60);
        let accepted = world.until_state(&id, JobStateName::AwaitingExternal).await;
        assert_eq!(accepted.attempt_count, 2);
    }
}

#[tokio::test]
async fn a_refusal_is_final_and_says_what_the_service_said() {
    let service = Service::start(|_| reply(422, json!({ "message": "no such scene" })));
    let world = World::new(&connector(&service, "  idempotent: true"));
    let id = world.create(INPUT, 3).await;
    let failed = world.until_state(&id, JobStateName::Failed).await;
    assert_eq!(failed.state_reason.as_deref(), Some("submit_refused"));
    assert_eq!(world.error(&failed)["message"], "no such scene");
    assert_eq!(service.asked().len(), 1);
}

#[tokio::test]
async fn a_submit_that_may_have_arrived_is_never_made_twice_unless_the_service_knows_the_key() {
    type Manner = fn() -> Reply;
    let manners: [Manner; 4] =
        [|| reply(500, "boom"), || Reply::Hang, || reply(202, "not json"), || reply(200, "x".repeat(5_000))];
    for manner in manners {
        let service = Service::start(move |_| manner());
        let world = World::new(&connector(&service, "  idempotent: false"));
        let id = world.create(INPUT, 3).await;
        let failed = world.until_state(&id, JobStateName::Failed).await;
        assert_eq!(failed.state_reason.as_deref(), Some("submit_outcome_unknown"));
        assert_eq!(world.operation(&id).orphan(), Some(OrphanReason::SubmitOutcomeUnknown));
        assert_eq!(service.asked().len(), 1);
    }
}

// conforms: O76
#[tokio::test]
async fn silence_after_an_idempotent_submit_is_asked_again_under_the_same_key() {
    let asked = AtomicUsize::new(0);
    let service = Service::start(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::Hang,
        1 => reply(409, json!({ "message": "still at it" })),
        _ => reply(202, json!({ "id": "r-1", "state": "queued" })),
    });
    let world = World::new(&connector(&service, "  idempotent: true"));
    let id = world.create(INPUT, 3).await;
    for attempt in [1, 2] {
        queued_after(&world, &id, attempt).await;
        world.clock.advance_seconds(60);
    }
    world.until_state(&id, JobStateName::AwaitingExternal).await;
    let keys: Vec<_> = service.asked().iter().map(|one| one.header("idempotency-key").unwrap()).collect();
    assert_eq!(keys.len(), 3);
    assert!(keys.iter().all(|key| *key == world.operation(&id).id.as_str()), "{keys:?}");
}

#[tokio::test]
async fn a_target_that_nobody_allowed_is_not_reached_and_not_tried_again() {
    let service = Service::start(|_| reply(202, json!({ "id": "r" })));
    let yaml =
        connector(&service, "  idempotent: true").replace(&format!("allow: [\"{}\"]", service.address), "");
    let world = World::new(&yaml);
    let id = world.create(INPUT, 3).await;
    let failed = world.until_state(&id, JobStateName::Failed).await;
    assert_eq!(failed.state_reason.as_deref(), Some("refused_address"));
    assert!(service.asked().is_empty());
}

#[tokio::test]
async fn a_service_that_is_away_for_three_minutes_gets_the_work_when_it_is_back_by_default() {
    let address = Service::no_address();
    let yaml = connector_to(address, "  idempotent: false");
    let world = World::new(&yaml);
    let retry = world.daemon.executors().find(None, "render").unwrap().retry;
    let id = world.create_with("render", INPUT, retry).await;
    let back_at = world.job(&id).created_at.plus_seconds(180);
    let mut back = None;
    for attempt in 1..retry.max_attempts {
        queued_after(&world, &id, attempt).await;
        let job = world.job(&id);
        let JobState::Queued { due_at } = job.state else { unreachable!("it was queued just now") };
        assert_eq!(
            job.attempts.last().unwrap().end.as_ref().unwrap().reason.as_deref(),
            Some("connect_failed")
        );
        if due_at >= back_at {
            back =
                Some(Service::start_at(address, |_| reply(202, json!({ "id": "r-1", "state": "queued" }))));
        }
        world.clock.set(due_at);
        if back.is_some() {
            break;
        }
    }
    world.until_state(&id, JobStateName::AwaitingExternal).await;
    assert_eq!(back.unwrap().asked_for("POST", "/renders").len(), 1, "it was given the work once");
}

/// Submits in a process that dies before the answer comes, and returns what is left.
fn die_waiting(
    service: &Service,
    yaml: &str,
) -> (domain::JobId, Arc<store::MemoryStore>, Arc<engine::ManualClock>) {
    std::thread::scope(|scope| {
        let process = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let world = World::new(yaml);
                let id = world.create(INPUT, 3).await;
                service.until_asked(1).await;
                (id, world.store.clone(), world.clock.clone())
            })
        });
        process.join().unwrap()
    })
}

#[tokio::test]
async fn after_a_crash_before_the_answer_the_service_hears_the_same_key_and_starts_the_work_once() {
    let started = Arc::new(std::sync::Mutex::new(std::collections::BTreeSet::new()));
    let seen = started.clone();
    let first = AtomicUsize::new(0);
    let service = Service::start(move |asked| {
        seen.lock().unwrap().insert(asked.header("idempotency-key").unwrap());
        if first.fetch_add(1, Ordering::SeqCst) == 0 {
            return Reply::Hang;
        }
        reply(202, json!({ "id": "r-1", "state": "queued" }))
    });
    let yaml = connector(&service, "  idempotent: true").replace("timeout_ms: 500", "timeout_ms: 60000");
    let (id, store, clock) = die_waiting(&service, &yaml);
    clock.advance_seconds(61);
    let world = World::on(store, clock, &yaml);
    world.until_state(&id, JobStateName::Queued).await;
    world.clock.advance_seconds(60);
    world.until_state(&id, JobStateName::AwaitingExternal).await;
    assert_eq!(service.asked().len(), 2);
    assert_eq!(started.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn after_a_crash_a_service_that_can_be_asked_is_asked_before_anything_is_submitted_again() {
    let first = AtomicUsize::new(0);
    let service = Service::start(move |asked| match asked.method.as_str() {
        "POST" if first.fetch_add(1, Ordering::SeqCst) == 0 => Reply::Hang,
        "POST" => reply(202, json!({ "id": "r-2", "state": "queued" })),
        _ => reply(200, json!({ "id": "r-1", "state": "rendering" })),
    });
    let yaml = connector(&service, "  idempotent: false").replace("timeout_ms: 500", "timeout_ms: 60000")
        + &format!("lookup: {{ url: \"http://{}/find/${{operation.id}}\" }}\n", service.address);
    let (id, store, clock) = die_waiting(&service, &yaml);
    clock.advance_seconds(61);
    let world = World::on(store, clock, &yaml);
    world.until_state(&id, JobStateName::Queued).await;
    world.clock.advance_seconds(60);
    world.until_state(&id, JobStateName::AwaitingExternal).await;
    assert_eq!(service.asked_for("POST", "/renders").len(), 1);
    assert_eq!(service.asked_for("GET", &format!("/find/{}", world.operation(&id).id)).len(), 1);
}

#[tokio::test]
async fn a_crash_around_a_submit_that_may_not_be_repeated_leaves_an_orphan_and_one_start() {
    let service = Service::start(|_| Reply::Hang);
    let yaml = connector(&service, "  idempotent: false").replace("timeout_ms: 500", "timeout_ms: 60000");
    let (id, store, clock) = die_waiting(&service, &yaml);
    clock.advance_seconds(61);
    let world = World::on(store, clock, &yaml);
    world.until_state(&id, JobStateName::Failed).await;
    assert_eq!(world.operation(&id).orphan(), Some(OrphanReason::SubmitOutcomeUnknown));
    assert_eq!(service.asked().len(), 1);
}

#[tokio::test]
async fn a_sync_answer_with_a_state_that_nobody_explained_is_no_success() {
    let service = Service::start(|_| reply(200, json!({ "state": "sort of" })));
    let yaml = format!(
        "name: render\nallow: [\"{0}\"]\nsubmit: {{ url: \"http://{0}/\", idempotent: false }}\n\
         read: {{ status: answer.body.state }}\nstates: {{ done: completed }}\n",
        service.address
    );
    let world = World::new(&yaml);
    let id = world.create(INPUT, 3).await;
    let failed = world.until_state(&id, JobStateName::Failed).await;
    assert_eq!(world.error(&failed)["code"], "status-payload-invalid");
}

#[tokio::test]
async fn work_that_is_done_at_once_has_its_result_fetched_where_the_file_says() {
    let service = Service::start(|asked| match asked.path.as_str() {
        "/renders" => reply(200, json!({ "id": "r-1", "state": "done" })),
        "/files/r-1" => reply(200, json!({ "frames": 9 })),
        _ => reply(200, json!({ "id": "r-1", "state": "done" })),
    });
    let yaml = connector(&service, "  idempotent: true").replace("  result: answer.body.output\n", "")
        + &format!("result: {{ url: \"http://{}/files/${{operation.remote_id}}\" }}\n", service.address);
    let world = World::new(&yaml);
    let id = world.create(INPUT, 1).await;
    world.until_state(&id, JobStateName::AwaitingExternal).await;
    world.next_poll(&id).await;
    let done = world.until_state(&id, JobStateName::Completed).await;
    assert_eq!(world.result(&done), json!({ "frames": 9 }));
}

// conforms: O12
#[tokio::test]
async fn a_sync_only_service_that_goes_on_with_the_work_breaks_its_contract_and_is_not_forgotten() {
    let service = Service::start(|_| reply(202, json!({ "state": "rendering" })));
    let yaml = format!(
        "name: render\nallow: [\"{0}\"]\nsubmit: {{ url: \"http://{0}/\", idempotent: false }}\n\
         read: {{ status: answer.body.state }}\nstates: {{ rendering: running, done: completed }}\n",
        service.address
    );
    let world = World::new(&yaml);
    let id = world.create(INPUT, 3).await;
    let failed = world.until_state(&id, JobStateName::Failed).await;
    assert_eq!(world.error(&failed)["code"], "deferred_by_sync_only");
    assert_eq!(world.operation(&id).orphan(), Some(OrphanReason::SubmitOutcomeUnknown));
}

// conforms: O26 O27 O36
#[tokio::test]
async fn a_service_that_has_no_time_says_when_and_is_heard_within_the_host_s_bounds() {
    // What the job's own policy waits at least and at most before a second attempt.
    let own = (15, 30);
    for (status, retry_after, (least, most)) in [
        (429, Some("120"), (120, 132)),
        (503, Some("120"), (120, 132)),
        (503, Some("1"), own),
        (429, Some("0"), own),
        (429, Some("99999999999"), (300, 300)),
        (503, Some("Fri, 31 Dec 9999 23:59:59 GMT"), (300, 300)),
        (429, Some("-5"), own),
        (503, Some("soon"), own),
        (429, None, own),
    ] {
        let service = Service::start(move |_| {
            let busy = reply(status, json!({ "message": "too much to do" }));
            retry_after.map_or_else(|| reply(status, "{}"), |after| busy.with("Retry-After", after))
        });
        let world = World::new(&connector(&service, "  idempotent: false"));
        let id = world.create(INPUT, 2).await;
        queued_after(&world, &id, 1).await;
        let domain::job::JobState::Queued { due_at } = world.job(&id).state else {
            unreachable!("it is queued")
        };
        let waits = (due_at.micros() - world.now().micros()) / 1_000_000;
        assert!((least..=most).contains(&waits), "{status} {retry_after:?}: {waits}");
        // It never meant that the service took it.
        assert_eq!(world.job(&id).intent, None);
        assert_eq!(service.asked().len(), 1);
        world.clock.set(due_at.plus_micros(-1));
        tokio::task::yield_now().await;
        assert_eq!(service.asked().len(), 1);
        world.clock.set(due_at);
        service.until_asked(2).await;
    }
}

#[tokio::test]
async fn a_service_that_has_no_time_for_a_repeated_submit_is_waited_for_as_well() {
    let asked = AtomicUsize::new(0);
    let service = Service::start(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => reply(500, "upside down"),
        1 => reply(429, "{}").with("Retry-After", 200),
        _ => reply(202, json!({ "id": "r-1", "state": "queued" })),
    });
    let world = World::new(&connector(&service, "  idempotent: true"));
    let id = world.create(INPUT, 3).await;
    queued_after(&world, &id, 1).await;
    let due_at = |world: &World| {
        let domain::job::JobState::Queued { due_at } = world.job(&id).state else {
            unreachable!("it is queued")
        };
        due_at
    };
    world.clock.set(due_at(&world));
    queued_after(&world, &id, 2).await;
    let waits = (due_at(&world).micros() - world.now().micros()) / 1_000_000;
    assert!((200..=220).contains(&waits), "{waits}");
    assert!(world.job(&id).intent.is_some(), "what the first one started is still asked for under its key");
    world.clock.set(due_at(&world));
    world.until_state(&id, JobStateName::AwaitingExternal).await;
    let keys: Vec<_> = service.asked().iter().map(|one| one.header("idempotency-key").unwrap()).collect();
    assert!(keys.len() == 3 && keys.iter().all(|key| *key == keys[0]), "{keys:?}");
}
