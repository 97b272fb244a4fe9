//! What a caller may not see looks like what is not there; only the audit log knows the difference.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use api::Role;
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::given::world;

// conforms: R61 R62
#[tokio::test]
async fn not_yours_reads_like_not_there_on_every_route_and_the_audit_log_tells_them_apart() {
    let log = Log::default();
    tracing::subscriber::set_global_default(log.clone()).expect("each test is its own process");
    let world = world().await;
    let hidden = world.create(json!({ "circle": "bindery" })).await;
    let absent = format!("work-{}", "0".repeat(32));
    assert_eq!(hidden.len(), absent.len());
    for role in [Role::Admin, Role::Operator, Role::Peer, Role::Agent, Role::Viewer] {
        let token = world.token(role, json!({ "circle": "press", "peer_id": "me" })).await;
        for (method, path, body) in [
            ("GET", "/jobs/ID", None),
            ("GET", "/work/ID/status", None),
            ("GET", "/jobs/ID/result", None),
            ("GET", "/jobs/ID/artifacts/stdout", None),
            ("GET", "/jobs/ID/facts", None),
            ("GET", "/jobs/ID/why", None),
            ("PATCH", "/jobs/ID", Some(json!({ "state": "running" }))),
            ("POST", "/jobs/ID/run", Some(json!({}))),
            ("POST", "/jobs/ID/retry", Some(json!({}))),
            ("POST", "/jobs/ID/cancel", Some(json!({}))),
            ("POST", "/jobs/ID/answer", Some(json!({ "answer": 1 }))),
            ("POST", "/jobs/ID/purge", Some(json!({}))),
        ] {
            let ask = async |id: &str| {
                let call = world.call(method, &path.replace("ID", id)).bearer(&token);
                let call = match &body {
                    Some(body) => call.json(body),
                    None => call,
                };
                call.send().await
            };
            let (one, other) = (ask(&hidden).await, ask(&absent).await);
            if one.status == 403 {
                continue; // the role may not ask at all
            }
            one.problem(404, "not_found");
            assert_eq!(one.body.replace(&hidden, &absent), other.body, "{role:?} {method} {path}");
            let heads = |answer: &crate::given::Answer| {
                let mut headers = answer.headers.clone();
                headers.remove("date");
                headers
            };
            assert_eq!(heads(&one), heads(&other));
        }
    }
    assert_eq!(world.status(&hidden).await["state"], "queued");
    let lines = log.0.lock().unwrap().clone();
    let has = |verdict: &str, id: &str| {
        lines.iter().any(|line| line.contains(&format!("verdict={verdict:?}")) && line.contains(id))
    };
    assert!(has("not_visible", &hidden), "{lines:?}");
    assert!(has("absent", &absent), "{lines:?}");
    assert!(!has("absent", &hidden) && !has("not_visible", &absent), "{lines:?}");
}

#[tokio::test]
async fn lists_and_creates_stay_within_the_circle() {
    let world = world().await;
    world.create(json!({ "circle": "bindery" })).await;
    world.create(json!({})).await;
    let mine = world.create(json!({ "circle": "press" })).await;
    let token = world.token(Role::Peer, json!({ "circle": "press" })).await;
    for query in ["", "?circle=press", "?view=summary"] {
        let list = world.get(&format!("/jobs{query}")).bearer(&token).send().await.ok();
        assert_eq!(list["work"].as_array().unwrap().len(), 1, "{query}");
        assert_eq!(list["work"][0]["job_id"], mine.as_str());
    }
    let list = world.get("/jobs?circle=bindery").bearer(&token).send().await.ok();
    assert_eq!(list["work"], json!([]));
    let created = world.post("/jobs", json!({})).bearer(&token).send().await.ok();
    assert_eq!(created["status"]["circle"], "press");
    let foreign = json!({ "circle": "bindery" });
    world.post("/jobs", foreign.clone()).bearer(&token).send().await.problem(403, "circle_forbidden");
    let batch = json!({ "jobs": [foreign] });
    let answer = world.post("/jobs/batch", batch).bearer(&token).send().await.ok();
    assert_eq!(answer["results"][0]["status"], 403);
}

/// The lines of the audit log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 = format!("{}{field}={value:?} ", self.0);
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "audit"
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().expect("no holder of the lock panics").push(line.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}
