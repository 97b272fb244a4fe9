//! What a caller may not see looks like what is not there; only the audit log knows the difference.

use api::Role;
use serde_json::json;

use crate::given::{AuditLog, world};

// conforms: R61 R62 R98
#[tokio::test]
async fn not_yours_reads_like_not_there_on_every_route_and_the_audit_log_tells_them_apart() {
    let log = AuditLog::install();
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
            ("GET", "/asks?job_id=ID", None),
            ("POST", "/claims/WORKORDER/ID/release", Some(json!({ "owner_id": "me", "claim_version": 0 }))),
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
            let detail = one.problem(404, "not_found")["detail"].clone();
            assert_eq!(detail, format!("No work: {hidden}"), "{method} {path}");
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
    let lines = log.lines();
    let has = |verdict: &str, id: &str| {
        lines.iter().any(|line| line.contains(&format!("verdict={verdict:?}")) && line.contains(id))
    };
    assert!(has("not_visible", &hidden), "{lines:?}");
    assert!(has("absent", &absent), "{lines:?}");
    assert!(!has("absent", &hidden) && !has("not_visible", &absent), "{lines:?}");
}

/// Everything that a circle can ask of a peer id, asked where another circle has the id, and asked anew where nobody has it.
// conforms: R96 R98
#[tokio::test]
async fn peer_id_of_another_circle_is_answered_like_a_free_one() {
    let log = AuditLog::install();
    let (shared, free) = (world().await, world().await);
    let bindery = shared.token(Role::Agent, json!({ "circle": "bindery" })).await;
    let others = json!({ "peer_id": "joan", "display_name": "Joan", "labels": ["sew"] });
    shared.post("/peers", others).bearer(&bindery).send().await.ok();
    free.token(Role::Agent, json!({ "circle": "bindery" })).await;
    for more in [json!({ "circle": "press" }), json!({ "circle": "press", "peer_id": "joan" })] {
        let mut answers = Vec::new();
        for world in [&shared, &free] {
            let token = world.token(Role::Agent, more.clone()).await;
            let mut all = Vec::new();
            for (method, path, body) in [
                ("GET", "/peers/joan", None),
                ("GET", "/peers/joan?circle=bindery", None),
                ("GET", "/peers/joan?circle=", None),
                ("DELETE", "/peers/joan", None),
                ("DELETE", "/peers/joan?circle=bindery", None),
                ("POST", "/jobs", Some(json!({ "assigned_peer_id": "joan" }))),
                ("POST", "/asks", Some(json!({ "to_peer": "joan", "text": "matt?" }))),
                ("POST", "/peers", Some(json!({ "peer_id": "joan" }))),
                ("POST", "/peers", Some(json!({ "peer_id": "joan", "labels": ["fold"] }))),
                ("GET", "/peers/joan", None),
                ("GET", "/peers", None),
                ("GET", "/peers/joan?circle=press", None),
                ("DELETE", "/peers/joan", None),
                ("DELETE", "/peers/joan", None),
            ] {
                let call = world.call(method, path).bearer(&token);
                let call = if let Some(body) = &body { call.json(body) } else { call };
                let answer = call.send().await;
                assert!(!answer.body.contains("bindery"), "{method} {path}: {}", answer.body);
                all.push(format!("{method} {path} {} {}", answer.status, answer.body));
            }
            answers.push(all);
        }
        assert_eq!(answers[0], answers[1], "{more}");
        let statuses: Vec<&str> = answers[0].iter().filter_map(|line| line.split(' ').nth(2)).collect();
        let wanted = [
            "404", "404", "404", "404", "404", "404", "404", "200", "200", "200", "200", "200", "200", "404",
        ];
        assert_eq!(statuses, wanted, "{:?}", answers[0]);
    }
    let kept = shared.get("/peers/joan").bearer(&bindery).send().await.ok();
    assert_eq!((&kept["peer"]["labels"], &kept["peer"]["circle"]), (&json!(["sew"]), &json!("bindery")));
    let has = |verdict: &str| log.lines().iter().any(|line| line.contains(verdict) && line.contains("joan"));
    assert!(has("not_visible") && has("absent"), "the audit log tells them apart");
}

// conforms: R96
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
