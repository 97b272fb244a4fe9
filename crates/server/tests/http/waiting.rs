//! A token that is revoked while its request waits gets no answer.

use std::collections::BTreeSet;
use std::time::Duration;

use api::Role;
use domain::Timestamp;
use serde_json::{Value, json};
use server::operations;
use store::{Store as _, Taking};

use crate::given::{Answer, TAKEN, UNDER_WAY, World, working_world, world, world_of_many};

/// A token of a circle: its id and its secret.
async fn token(world: &World) -> (String, String) {
    let body = json!({ "role": Role::Peer.as_str(), "circle": "press", "peer_id": "joan" });
    let made = world.post("/tokens", body).send().await.ok();
    let text = |value: &Value| value.as_str().expect("it is text").to_owned();
    (text(&made["token"]["id"]), text(&made["secret"]))
}

/// Sends a request that waits for a record, revokes its token, and lets it wait no more.
async fn revoked_meanwhile(
    world: &World,
    method: &str,
    path: &str,
    body: Option<Value>,
    job: &str,
) -> Answer {
    let (token_id, secret) = token(world).await;
    let call = world.call(method, path).bearer(&secret).header("prefer", "wait=30");
    let call = match &body {
        Some(body) => call.json(body),
        None => call,
    };
    let waits = async {
        while world.daemon.changes().under_watch().is_empty() {
            tokio::task::yield_now().await;
        }
        world.call("DELETE", &format!("/tokens/{token_id}")).send().await.ok();
        if !job.is_empty() {
            world.patch(job, json!({ "state": "completed" })).send().await.ok();
        }
    };
    let (answer, ()) = tokio::join!(call.send(), waits);
    answer
}

#[tokio::test]
async fn status_that_was_waited_for_is_refused_to_a_revoked_token() {
    let world = working_world().await;
    for path in ["/jobs/ID", "/jobs/ID/status", "/work/ID/status"] {
        let id = world.create(json!({ "circle": "press" })).await;
        let answer = revoked_meanwhile(&world, "GET", &path.replace("ID", &id), None, &id).await;
        answer.problem(401, "unauthenticated");
    }
}

#[tokio::test]
async fn invoke_that_was_waited_for_is_refused_to_a_revoked_token() {
    let world = working_world().await;
    let body = json!({ "input": {}, "timing": { "mode": "sync", "timeout_ms": 300 } });
    let path = "/v1/capabilities/stays/invoke";
    let answer = revoked_meanwhile(&world, "POST", path, Some(body), "").await;
    answer.problem(401, "unauthenticated");
}

#[tokio::test]
async fn claim_that_was_waited_for_is_refused_to_a_revoked_token() {
    let world = working_world().await;
    let (token_id, secret) = token(&world).await;
    let body =
        json!({ "resource_type": "WORKORDER", "owner_id": "joan", "wait_seconds": 1, "lane": "print" });
    let call = world.post("/claims", body).bearer(&secret);
    let waits = async {
        while world.daemon.pulls().count() == 0 {
            tokio::task::yield_now().await;
        }
        world.call("DELETE", &format!("/tokens/{token_id}")).send().await.ok();
    };
    // Nothing comes: the wait ends by itself.
    let (answer, ()) = tokio::join!(call.send(), waits);
    answer.problem(401, "unauthenticated");
}

/// Another node revokes in the store alone: this one still remembers the token.
#[tokio::test]
async fn token_revoked_on_another_node_while_it_waits_gets_no_answer() {
    let world = world_of_many(Duration::from_hours(1)).await;
    let (token_id, secret) = token(&world).await;
    let id = world.create(json!({ "circle": "press" })).await;
    let call = world.get(&format!("/jobs/{id}")).bearer(&secret).header("prefer", "wait=30");
    let waits = async {
        while world.daemon.changes().under_watch().is_empty() {
            tokio::task::yield_now().await;
        }
        let now = world.daemon.engine().clock().now();
        assert_eq!(world.store.revoke_token(&token_id, now).await, Ok(true));
        world.patch(&id, json!({ "state": "completed" })).send().await.ok();
    };
    let (answer, ()) = tokio::join!(call.send(), waits);
    answer.problem(401, "unauthenticated");
}

/// A request that waits, and what ends its wait.
struct Waiting {
    method: &'static str,
    path: String,
    body: Option<Value>,
    waits_for: WaitsFor,
    /// What is sent so that it waits no longer.
    then: (&'static str, String, Value),
}

/// How the test knows that a request waits.
enum WaitsFor {
    Record,
    Work,
    Service,
    /// Nothing shows it.
    Unseen,
}

const PIPELINES: &str = "
pipelines:
- { name: long, on: never, steps: [{ id: one, uses: stays }] }
- { name: awaited, on: never, execution_mode: synchronous, timeout: 50s, steps: [{ id: one, uses: stays }] }
";

/// How the audience of a wait is told why it gets no answer.
const REVOKED_MEANWHILE: &str = "the token was revoked while it waited";

fn text(value: &Value) -> String {
    value.as_str().expect("it is text").to_owned()
}

impl World {
    /// Lets the service take what is on its way to it.
    async fn taken_by_service(&self) {
        UNDER_WAY.acquire().await.expect("it is never closed").forget();
        TAKEN.add_permits(1);
    }

    /// A job whose service has failed, and takes it slowly when it is tried again.
    async fn failed_at_its_service(&self, job: &str) {
        self.taken_by_service().await;
        self.until(job, "awaiting_external").await;
        let outside = self.status(job).await["runner"]["outside"].clone();
        let due_at: jiff::Timestamp = text(&outside["next_poll_at"]).parse().expect("it is a time");
        self.clock.set(Timestamp::from_micros(due_at.as_microsecond()));
        self.until(job, "failed").await;
    }

    /// A handle on work outside, taken in the circle: the id of its operation and that of its job.
    async fn handle(&self, executor: &str, input: Value) -> (String, String) {
        let ada = self.token(Role::Operator, json!({ "circle": "press" })).await;
        let body = json!({ "input": input, "timing": { "mode": "async" } });
        let path = format!("/v1/capabilities/{executor}/invoke");
        let handle = self.post(&path, body).bearer(&ada).send().await.value();
        (text(&handle["operation/id"]), text(&handle["audit/outcome-ref"]))
    }

    /// The only job that there is, once it is there.
    async fn only_job(&self) -> String {
        loop {
            let list = self.get("/jobs").send().await.ok();
            match list["work"].as_array().expect("it is a list").first() {
                Some(job) => return text(&job["job_id"]),
                None => tokio::task::yield_now().await,
            }
        }
    }

    async fn waits(&self, waits_for: &WaitsFor) {
        let seen = || match waits_for {
            WaitsFor::Record => !self.daemon.changes().under_watch().is_empty(),
            WaitsFor::Work => self.daemon.pulls().count() > 0,
            WaitsFor::Service | WaitsFor::Unseen => true,
        };
        if matches!(waits_for, WaitsFor::Service) {
            UNDER_WAY.acquire().await.expect("it is never closed").forget();
        }
        while !seen() {
            tokio::task::yield_now().await;
        }
    }
}

fn slow(ends: &str) -> Value {
    json!({ "slowly": true, "ends": ends })
}

/// Each operation whose answer comes after a wait, made to wait.
async fn waiting(world: &World, operation: &str) -> Waiting {
    let cancel = |job: &str| ("POST", format!("/jobs/{job}/cancel"), json!({}));
    let service = ("POST", String::new(), json!({}));
    let far = json!({ "circle": "press", "executor": "submits", "input": slow("never"), "due_at": "2026-06-01T00:00:00Z" });
    let mut waits_for = WaitsFor::Record;
    let (method, path, body, then) = match operation {
        "read_status" => {
            let id = world.create(json!({ "circle": "press" })).await;
            ("GET", format!("/jobs/{id}"), None, cancel(&id))
        }
        "read_deferred_status" => {
            let (handle, job) = world.handle("stays_either", json!({})).await;
            ("GET", format!("/v1/deferred-operations/{handle}/status"), None, cancel(&job))
        }
        "run_job" => {
            waits_for = WaitsFor::Service;
            let id = world.create(far).await;
            ("POST", format!("/jobs/{id}/run"), Some(json!({})), service)
        }
        "retry_job" => {
            waits_for = WaitsFor::Service;
            let failing = json!({ "circle": "press", "executor": "submits", "input": slow("failed") });
            let id = world.create(failing).await;
            world.failed_at_its_service(&id).await;
            ("POST", format!("/jobs/{id}/retry"), Some(json!({})), service)
        }
        "retry_deferred_operation" => {
            waits_for = WaitsFor::Service;
            let (handle, job) = world.handle("submits", slow("failed")).await;
            world.failed_at_its_service(&job).await;
            ("POST", format!("/v1/deferred-operations/{handle}/retry"), None, service)
        }
        "invoke_capability" => {
            let body = json!({ "input": {}, "timing": { "mode": "sync" } });
            ("POST", "/v1/capabilities/stays/invoke".to_owned(), Some(body), cancel("ONLY"))
        }
        "invoke_host_capability" => {
            ("POST", "/v1/host/capabilities/stays".to_owned(), Some(json!({})), cancel("ONLY"))
        }
        "start_pipeline" => {
            let body = json!({ "wait_seconds": 50 });
            ("POST", "/pipelines/long/runs".to_owned(), Some(body), cancel("ONLY"))
        }
        "trigger_pipeline" => {
            ("POST", "/pipeline/awaited".to_owned(), Some(json!({ "payload": {} })), cancel("ONLY"))
        }
        "list_pending_asks" => {
            waits_for = WaitsFor::Unseen;
            let joan = json!({ "peer_id": "joan", "circle": "press" });
            world.post("/peers", joan).send().await.ok();
            let ask = json!({ "to_peer": "joan", "text": "matt?", "circle": "press" });
            ("GET", "/asks/pending?wait_seconds=50".to_owned(), None, ("POST", "/asks".to_owned(), ask))
        }
        "wait_ask" => {
            waits_for = WaitsFor::Unseen;
            let ada = json!({ "peer_id": "ada", "circle": "press" });
            world.post("/peers", ada).send().await.ok();
            let ask = json!({ "to_peer": "ada", "from_peer": "joan", "text": "matt?", "circle": "press" });
            let id = text(&world.post("/asks", ask).send().await.ok()["correlation_id"]);
            let body = json!({ "peer_id": "joan", "timeout_seconds": 50 });
            let then = ("POST", format!("/asks/{id}/ack"), json!({}));
            ("POST", format!("/asks/{id}/wait"), Some(body), then)
        }
        "acquire_claim of a job" => {
            let id = world.create(json!({ "circle": "press" })).await;
            let claim = |owner: &str| json!({ "resource_type": "WORKORDER", "resource_id": id, "owner_id": owner, "wait_seconds": 50 });
            let held = world.post("/claims", claim("ada")).send().await.ok()["claim"].clone();
            let fence = json!({ "owner_id": "ada", "claim_version": held["claim_version"] });
            let then = ("POST", format!("/claims/WORKORDER/{id}/release"), fence);
            ("POST", "/claims".to_owned(), Some(claim("joan")), then)
        }
        "acquire_claim of an event by its id" => {
            let event = json!({ "type": "tide", "circle": "press" });
            let id = text(&world.post("/events", event).send().await.value()["event_id"]);
            let claim = |owner: &str| json!({ "resource_type": "EVENT", "resource_id": id, "owner_id": owner, "wait_seconds": 50 });
            let held = world.post("/claims", claim("ada")).send().await.ok()["claim"].clone();
            let fence = json!({ "owner_id": "ada", "claim_version": held["claim_version"] });
            let then = ("POST", format!("/claims/EVENT/{id}/release"), fence);
            ("POST", "/claims".to_owned(), Some(claim("joan")), then)
        }
        "acquire_claim of an event" | "acquire_claim of an event of a type" => {
            let mut claim = json!({ "resource_type": "EVENT", "owner_id": "joan", "wait_seconds": 50 });
            waits_for = WaitsFor::Unseen;
            if operation.ends_with("of a type") {
                waits_for = WaitsFor::Work;
                claim["event_types"] = json!(["tide"]);
                // A node that takes nothing hands nothing out: the wait ends by itself.
                claim["wait_seconds"] = json!(1);
            }
            let event = json!({ "type": "tide", "circle": "press" });
            ("POST", "/claims".to_owned(), Some(claim), ("POST", "/events".to_owned(), event))
        }
        other => panic!("nothing here makes {other} wait"),
    };
    Waiting { method, path, body, waits_for, then }
}

/// What a request is answered whose token is revoked while it waits. `turns` are given to a wait that nothing shows.
async fn answer_to_revoked(world: &World, waiting: Waiting, turns: usize) -> Answer {
    let (token_id, secret) = token(world).await;
    let call = world.call(waiting.method, &waiting.path).bearer(&secret).header("prefer", "wait=50");
    let call = match &waiting.body {
        Some(body) => call.json(body),
        None => call,
    };
    let answer = call.send();
    tokio::pin!(answer);
    let waits = async {
        world.waits(&waiting.waits_for).await;
        if matches!(waiting.waits_for, WaitsFor::Unseen) {
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
        }
    };
    tokio::select! {
        answer = &mut answer => panic!("{} does not wait: {} {}", waiting.path, answer.status, answer.body),
        () = waits => {}
    }
    world.call("DELETE", &format!("/tokens/{token_id}")).send().await.ok();
    if matches!(waiting.waits_for, WaitsFor::Service) {
        TAKEN.add_permits(1);
    } else {
        let (method, path, body) = waiting.then;
        let path = if path.contains("ONLY") { path.replace("ONLY", &world.only_job().await) } else { path };
        let ended = world.call(method, &path).json(&body).send().await;
        assert!(ended.status < 300, "{path}: {}", ended.body);
    }
    answer.await
}

#[tokio::test]
async fn token_revoked_meanwhile_gets_no_answer_from_any_wait() {
    let claims = [
        "acquire_claim of a job",
        "acquire_claim of an event",
        "acquire_claim of an event by its id",
        "acquire_claim of an event of a type",
    ];
    let waits = operations().filter(|operation| operation.answers_after_a_wait());
    let names: BTreeSet<&str> = waits.map(|operation| operation.name).collect();
    assert_eq!(names.len(), 11);
    for operation in names.into_iter().chain(claims) {
        // A wait that nothing shows may be revoked before it began: then it is tried once more, and later.
        for turns in (0..).map(|tries| 1 << tries) {
            let nothing_is_taken = operation.starts_with("acquire_claim");
            let world = if nothing_is_taken { world().await } else { working_world().await };
            if operation.contains("event") {
                // Nobody else settles the event.
                world.daemon.tell(Taking::Drains);
            }
            world.pipelines(PIPELINES);
            let waiting = waiting(&world, operation).await;
            let is_unseen = matches!(waiting.waits_for, WaitsFor::Unseen);
            let answer = answer_to_revoked(&world, waiting, turns).await;
            assert_eq!(answer.status, 401, "{operation}: {}", answer.body);
            if answer.body.contains(REVOKED_MEANWHILE) {
                break;
            }
            assert!(is_unseen && turns < 1 << 20, "{operation}: {}", answer.body);
        }
    }
}
