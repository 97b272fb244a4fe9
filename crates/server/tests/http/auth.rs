//! Tokens and who holds them.

use api::Role;
use serde_json::json;

use crate::given::world;

#[tokio::test]
async fn without_a_token_or_with_a_wrong_one_nobody_is_let_in() {
    let world = world().await;
    for call in [
        world.get("/jobs").anonymous(),
        world.get("/jobs").bearer("wrong"),
        world.get("/jobs").header("authorization", "Basic abc"),
        world.get("/jobs").header("authorization", "Bearer"),
        world.get("/jobs").bearer(&"x".repeat(1_000)),
        world.post("/jobs", json!({})).anonymous(),
    ] {
        let answer = call.send().await;
        answer.problem(401, "unauthenticated");
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
    }
    assert_eq!(world.get("/jobs").send().await.ok()["work"], json!([]));
}

#[tokio::test]
async fn secret_is_shown_once_and_kept_only_as_its_digest() {
    let world = world().await;
    let made =
        world.post("/tokens", json!({ "name": "n", "role": "viewer", "scopes": ["exec"] })).send().await.ok();
    let secret = made["secret"].as_str().unwrap();
    assert_eq!(secret.len(), 3 + 64, "256 bits in hex");
    world.get("/jobs").bearer(secret).send().await.ok();
    let list = world.get("/tokens").send().await;
    let tokens = list.ok()["tokens"].clone();
    assert_eq!(tokens.as_array().unwrap().len(), 2);
    assert_eq!(tokens[1], made["token"]);
    assert!(!list.body.contains(secret) && !list.body.contains("sha256"));
    drop(world.daemon.clone());
    for file in std::fs::read_dir(world.directory.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap_or_default();
        assert!(
            !bytes.windows(secret.len()).any(|part| part == secret.as_bytes()),
            "the secret is on the disk"
        );
    }
}

#[tokio::test]
async fn revoked_token_is_out_at_once() {
    let world = world().await;
    let made = world.post("/tokens", json!({ "role": "viewer" })).send().await.ok();
    let (id, secret) = (made["token"]["id"].as_str().unwrap(), made["secret"].as_str().unwrap());
    world.get("/jobs").bearer(secret).send().await.ok();
    world.get("/jobs").bearer(secret).send().await.ok();
    let revoked = world.call("DELETE", &format!("/tokens/{id}")).send().await.ok();
    assert_eq!(revoked, json!({ "id": id, "revoked": true }));
    world.get("/jobs").bearer(secret).send().await.problem(401, "unauthenticated");
    world.call("DELETE", "/tokens/token-0").send().await.problem(404, "not_found");
    assert!(world.get("/tokens").send().await.ok()["tokens"][1]["revoked_at"].is_string());
}

#[tokio::test]
async fn tokens_that_make_no_sense_are_refused() {
    let world = world().await;
    for (body, loc) in [
        (json!({ "role": "king" }), json!(["body", "role"])),
        (json!({}), json!(["body", "role"])),
        (json!({ "role": "peer" }), json!(["body", "circle"])),
        (json!({ "role": "agent", "circle": "" }), json!(["body", "circle"])),
        (json!({ "role": "viewer", "peer_id": "" }), json!(["body", "peer_id"])),
        (json!({ "role": "viewer", "admin": true }), json!(["body", "admin"])),
    ] {
        let problem = world.post("/tokens", body).send().await.problem(422, "invalid_request");
        assert_eq!(problem["errors"][0]["loc"], loc);
    }
    let body = json!({ "role": "viewer", "name": "x".repeat(300) });
    world.post("/tokens", body).send().await.problem(422, "too_large");
    let keyed = world.post("/tokens", json!({ "role": "viewer" })).key("k");
    keyed.send().await.problem(422, "invalid_idempotency_key");
}

#[tokio::test]
async fn every_change_says_who_made_it_and_never_the_secret() {
    let world = world().await;
    let made = world.post("/tokens", json!({ "role": "operator" })).send().await.ok();
    let operator = made["secret"].as_str().unwrap();
    let peer = world.token(Role::Peer, json!({ "circle": "press", "peer_id": "printer-1" })).await;
    let created =
        world.post("/jobs", json!({ "created_by_peer_id": "forged" })).bearer(&peer).send().await.ok();
    assert_eq!(created["status"]["created_by_peer_id"], "printer-1", "the token knows better");
    let id = created["job_id"].as_str().unwrap();
    world.patch(id, json!({ "state": "running" })).bearer(operator).send().await.ok();
    let cancel = json!({ "requested_by_peer_id": "forged" });
    world.post(&format!("/jobs/{id}/cancel"), cancel).bearer(&peer).send().await.ok();
    assert_eq!(world.status(id).await["cancel_requested_by_peer_id"], "printer-1");
    let facts = world.get(&format!("/jobs/{id}/facts")).send().await;
    let actors: Vec<String> = facts.ok()["facts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|fact| fact["actor"].as_str().unwrap().to_owned())
        .collect();
    let operator_id = format!("token:{}", made["token"]["id"].as_str().unwrap());
    assert_eq!(actors, ["peer:printer-1", operator_id.as_str(), "peer:printer-1"]);
    assert!(!facts.body.contains(operator) && !facts.body.contains(&peer));
}

#[tokio::test]
async fn commands_are_only_for_tokens_with_the_scope() {
    let world = world().await;
    let without = world.token(Role::Admin, json!({})).await;
    let with = world.token(Role::Operator, json!({ "scopes": ["exec"] })).await;
    let command = json!({ "executor": "command" });
    world.post("/jobs", command.clone()).bearer(&without).send().await.problem(403, "scope_required");
    let batch = json!({ "jobs": [command, {}] });
    let answer = world.post("/jobs/batch", batch).bearer(&without).send().await.ok();
    assert_eq!(answer["results"][0]["problem"]["code"], "scope_required");
    assert_eq!(answer["accepted"], 1);
    let made = world.post("/jobs", command).bearer(&with).send().await.ok();
    let path = format!("/jobs/{}/run", made["job_id"].as_str().unwrap());
    world.call("POST", &path).bearer(&without).send().await.problem(403, "scope_required");
    world.call("POST", &path).bearer(&with).send().await.ok();
}

#[tokio::test]
async fn scope_that_does_not_exist_is_refused_with_those_that_do() {
    let world = world().await;
    let body = json!({ "role": "viewer", "scopes": ["exec", "exce"] });
    let problem = world.post("/tokens", body).send().await.problem(422, "invalid_request");
    assert_eq!(problem["errors"][0]["loc"], json!(["body", "scopes", "1"]));
    let told = problem["detail"].as_str().unwrap();
    assert!(told.contains("\"exce\"") && told.ends_with("known scopes: exec"), "{told}");
    assert_eq!(world.get("/tokens").send().await.ok()["tokens"].as_array().unwrap().len(), 1);
}
