//! Whose word ends work: every route that takes a report on an attempt, beside every caller and every kind of attempt.

use api::Role;
use serde_json::{Value, json};
use server::{Verb, attempt_alias, routes};

use crate::given::{Answer, World, working_world};

/// Who reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    Holder,
    /// Another token that speaks for the holder's peer.
    HoldersOtherToken,
    OtherWorker,
    OtherCircle,
    Agent,
    Viewer,
    Operator,
    Admin,
}

const CALLERS: [Caller; 8] = [
    Caller::Holder,
    Caller::HoldersOtherToken,
    Caller::OtherWorker,
    Caller::OtherCircle,
    Caller::Agent,
    Caller::Viewer,
    Caller::Operator,
    Caller::Admin,
];

/// What is reported on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A worker pulled it.
    Pulled,
    /// A worker pulled it and asked for input.
    PulledAndWaiting,
    /// The daemon runs it.
    Daemons,
    /// The daemon runs it, and an operator has to approve it.
    Gate,
    /// An executor of the daemon passed it on to someone who knows its id: the id is all that its holder has.
    PassedOn,
}

const KINDS: [Kind; 5] = [Kind::Pulled, Kind::PulledAndWaiting, Kind::Daemons, Kind::Gate, Kind::PassedOn];

/// What a cell of the walk comes to.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Accepted,
    Refused(u16, &'static str),
}

/// Every cell, decided: no default.
fn expected(kind: Kind, caller: Caller, told: &Told) -> Outcome {
    const NOT_YOURS: Outcome = Outcome::Refused(403, "attempt_not_yours");
    match (caller, kind) {
        (Caller::OtherCircle, _) => Outcome::Refused(404, "not_found"),
        (Caller::Viewer, _) => Outcome::Refused(403, "forbidden"),
        (_, Kind::PassedOn) => Outcome::Accepted,
        (Caller::OtherWorker | Caller::Agent | Caller::Operator | Caller::Admin, _)
        | (Caller::Holder | Caller::HoldersOtherToken, Kind::Daemons | Kind::Gate) => NOT_YOURS,
        (Caller::Holder | Caller::HoldersOtherToken, Kind::Pulled) => Outcome::Accepted,
        (Caller::Holder | Caller::HoldersOtherToken, Kind::PulledAndWaiting) => match told.leaves_the_wait {
            None => Outcome::Accepted,
            Some(code) => Outcome::Refused(409, code),
        },
    }
}

/// One report: its route and its body without the attempt.
struct Told {
    operation: &'static str,
    body: Value,
    /// The refusal if the job waits for an answer and this would take its place.
    leaves_the_wait: Option<&'static str>,
}

/// Every report that there is.
fn reports() -> Vec<Told> {
    let told = |operation, body, leaves_the_wait| Told { operation, body, leaves_the_wait };
    let gate = Some("answer_required");
    let mut reports = vec![
        told("heartbeat_job", json!({}), None),
        told("heartbeat_job", json!({ "progress_note": "half of it" }), None),
        told("complete_job", json!({ "result": "forged" }), gate),
        told("fail_job", json!({ "retryable": false }), gate),
        told("ask_input", json!({ "question": "may I?" }), None),
        told("defer_job", json!({ "executor": "defers", "id": "7" }), Some("transition_refused")),
        told("update_job", json!({ "state": "awaiting_input" }), None),
    ];
    for state in ["running", "blocked", "completed", "failed", "cancelled"] {
        reports.push(told("update_job", json!({ "state": state }), gate));
    }
    reports
}

struct Cast {
    world: World,
    tokens: Vec<(Caller, String)>,
}

impl Cast {
    async fn new() -> Self {
        let world = working_world().await;
        let mut tokens = Vec::new();
        for caller in CALLERS {
            let (role, more) = match caller {
                Caller::Holder | Caller::HoldersOtherToken => {
                    (Role::Peer, json!({ "circle": "press", "peer_id": "joan" }))
                }
                Caller::OtherWorker => (Role::Peer, json!({ "circle": "press", "peer_id": "jim" })),
                Caller::OtherCircle => (Role::Peer, json!({ "circle": "bindery", "peer_id": "joan" })),
                Caller::Agent => (Role::Agent, json!({ "circle": "press" })),
                Caller::Viewer => (Role::Viewer, json!({})),
                Caller::Operator => (Role::Operator, json!({})),
                Caller::Admin => (Role::Admin, json!({})),
            };
            tokens.push((caller, world.token(role, more).await));
        }
        Self { world, tokens }
    }

    fn token(&self, caller: Caller) -> &str {
        &self.tokens.iter().find(|(one, _)| *one == caller).expect("everyone has one").1
    }

    /// A job with an attempt of this kind: its id and the attempt's.
    async fn attempt(&self, kind: Kind) -> (String, String) {
        let world = &self.world;
        let id = match kind {
            Kind::Pulled | Kind::PulledAndWaiting => {
                let id = world.create(json!({ "circle": "press" })).await;
                let pull = world.post("/jobs/next", json!({ "anything": true }));
                let handed = pull.bearer(self.token(Caller::Holder)).send().await.ok();
                assert_eq!(handed["job"]["job_id"], id.as_str());
                if kind == Kind::PulledAndWaiting {
                    let ask = json!({ "attempt_id": world.attempt_of(&id).await, "question": "glossy?" });
                    world
                        .post(&format!("/jobs/{id}/ask"), ask)
                        .bearer(self.token(Caller::Holder))
                        .send()
                        .await
                        .ok();
                }
                id
            }
            Kind::Daemons => {
                let id = world.create(json!({ "circle": "press", "executor": "stays" })).await;
                world.until(&id, "dispatching").await;
                id
            }
            Kind::PassedOn => {
                let id = world.create(json!({ "circle": "press", "executor": "hands_over" })).await;
                world.until(&id, "delivered").await;
                id
            }
            Kind::Gate => {
                let id = world.create(json!({ "circle": "press", "executor": "asks_operators" })).await;
                world.until(&id, "awaiting_input").await;
                id
            }
        };
        let attempt = world.attempt_of(&id).await;
        (id, attempt)
    }

    /// What a report could have changed.
    async fn told(&self, id: &str) -> Vec<Value> {
        let status = self.world.status(id).await;
        ["state", "state_reason", "phase", "progress_events", "result_summary", "cancel_requested"]
            .map(|key| status[key].clone())
            .into()
    }

    async fn tell(&self, caller: Caller, told: &Told, id: &str, attempt: &str) -> Answer {
        let route =
            routes().iter().find(|route| route.operation.name == told.operation).expect("it has a route");
        let method = if route.verb == Verb::Patch { "PATCH" } else { "POST" };
        let mut body = told.body.clone();
        body["attempt_id"] = json!(attempt);
        let call = self.world.call(method, &route.path.replace("{id}", id)).bearer(self.token(caller));
        call.json(&body).send().await
    }
}

#[tokio::test]
async fn every_report_is_taken_from_the_attempts_holder_alone() {
    let cast = Cast::new().await;
    for kind in KINDS {
        let mut at = None;
        for caller in CALLERS {
            for told in reports() {
                let (id, attempt) = match at.take() {
                    Some(before) => before,
                    None => cast.attempt(kind).await,
                };
                let before = cast.told(&id).await;
                let answer = cast.tell(caller, &told, &id, &attempt).await;
                let cell = format!("{kind:?} {caller:?} {:?} {}", told.operation, told.body);
                match expected(kind, caller, &told) {
                    Outcome::Accepted => assert_eq!(answer.status, 200, "{cell}: {}", answer.body),
                    Outcome::Refused(status, code) => {
                        assert_eq!(answer.status, status, "{cell}: {}", answer.body);
                        answer.problem(status, code);
                        assert_eq!(cast.told(&id).await, before, "{cell} left a trace");
                        at = Some((id, attempt));
                    }
                }
            }
        }
    }
}

#[test]
fn every_route_that_takes_an_attempt_is_walked() {
    let document = server::document();
    let schemas = &document["components"]["schemas"];
    let takes_attempt = |operation: &Value| {
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        let named = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next());
        let schema = named.map_or(schema, |name| &schemas[name]);
        schema["properties"].get("attempt_id").is_some()
    };
    let mut found = 0;
    for route in routes() {
        let verb = format!("{:?}", route.verb).to_lowercase();
        if takes_attempt(&document["paths"][route.path][verb.as_str()]) {
            found += 1;
            assert!(reports().iter().any(|told| told.operation == route.operation.name), "{}", route.path);
        }
    }
    assert!(found >= 6, "{found}");
}

#[tokio::test]
async fn attempt_id_is_shown_to_its_worker_alone() {
    let cast = Cast::new().await;
    for kind in KINDS {
        let (id, attempt) = cast.attempt(kind).await;
        let alias = attempt_alias(&attempt);
        for caller in CALLERS {
            let is_holder = matches!(caller, Caller::Holder | Caller::HoldersOtherToken);
            let shown = is_holder && matches!(kind, Kind::Pulled | Kind::PulledAndWaiting);
            for path in [
                "/jobs/ID",
                "/jobs/ID/status",
                "/work/ID/status",
                "/jobs/ID/result",
                "/jobs/ID/facts",
                "/jobs/ID/why",
                "/jobs",
                "/asks?job_id=ID",
                "/v1/deferred-operations",
                "/orphans",
            ] {
                let call = cast.world.get(&path.replace("ID", &id)).bearer(cast.token(caller));
                let body = call.send().await.body;
                let cell = format!("{kind:?} {caller:?} {path}");
                let hex = attempt.strip_prefix("attempt-").expect("it begins so");
                assert!(shown || !body.contains(hex), "{cell}: {body}");
                if caller != Caller::OtherCircle && path == "/jobs/ID" {
                    assert_eq!(body.contains(&alias), !shown, "{cell}: {body}");
                }
            }
        }
        let by_alias = Told { operation: "complete_job", body: json!({}), leaves_the_wait: None };
        for caller in [Caller::Agent, Caller::Admin] {
            cast.tell(caller, &by_alias, &id, &alias).await.problem(403, "attempt_not_yours");
        }
    }
}

#[tokio::test]
async fn queued_work_of_an_executor_takes_no_report() {
    let cast = Cast::new().await;
    let later = json!({ "circle": "press", "executor": "asks_operators", "due_at": "2027-01-01T00:00:00Z" });
    let id = cast.world.create(later).await;
    for state in ["running", "completed", "failed"] {
        let report = cast.world.patch(&id, json!({ "state": state })).bearer(cast.token(Caller::Agent));
        report.send().await.problem(403, "attempt_not_yours");
    }
    assert_eq!(cast.world.status(&id).await["state"], "queued");
}

#[tokio::test]
async fn operator_ends_work_by_cancel_and_answer_not_by_report() {
    let cast = Cast::new().await;
    let (id, _) = cast.attempt(Kind::Gate).await;
    let answer = json!({ "answer": { "approved": true } });
    let path = format!("/jobs/{id}/answer");
    let by_agent = cast.world.post(&path, answer.clone()).bearer(cast.token(Caller::Agent));
    by_agent.send().await.problem(403, "forbidden");
    cast.world.post(&path, answer).bearer(cast.token(Caller::Operator)).send().await.ok();
    cast.world.until(&id, "completed").await;
    let (id, _) = cast.attempt(Kind::Daemons).await;
    let cancel = cast.world.post(&format!("/jobs/{id}/cancel"), json!({}));
    cancel.bearer(cast.token(Caller::Operator)).send().await.ok();
    cast.world.until(&id, "cancelled").await;
}
