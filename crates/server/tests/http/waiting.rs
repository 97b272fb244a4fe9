//! A token that is revoked while its request waits gets no answer.

use api::Role;
use serde_json::{Value, json};

use crate::given::{Answer, World, working_world};

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
