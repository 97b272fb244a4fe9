//! The orphan ledger: what may still run outside is listed until it is known that it does not.

use api::Role;
use serde_json::{Value, json};

use crate::given::{World, working_world};

/// How long work outside lives that belongs to a job.
const A_DAY: u32 = 86_400;

/// The list once it is as long as this, woken by every commit.
async fn orphans(world: &World, count: usize) -> Vec<Value> {
    let mut ledger = world.daemon.ledger();
    loop {
        ledger.borrow_and_update();
        let list = world.get("/orphans").send().await.ok();
        let found = list["orphans"].as_array().expect("a list").clone();
        if found.len() == count {
            return found;
        }
        ledger.changed().await.expect("the daemon lives");
    }
}

/// A job whose work outside outlives what the host granted; its service answers a cancel so.
async fn outlived(world: &World, cancel: Value, circle: Value) -> String {
    let input = json!({ "ends": "never", "cancel": cancel, "secret": "sesame" });
    let id = world.create(json!({ "executor": "defers", "circle": circle, "input": input })).await;
    world.until(&id, "awaiting_external").await;
    id
}

#[tokio::test]
async fn work_that_outlives_its_host_is_listed_with_its_age_and_without_anything_private() {
    let world = working_world().await;
    let id = outlived(&world, json!("refused"), Value::Null).await;
    assert!(orphans(&world, 0).await.is_empty());
    world.clock.advance_seconds(A_DAY);
    world.until(&id, "expired").await;
    orphans(&world, 1).await;
    world.clock.advance_seconds(60);
    // The service was asked to stop, and said no.
    let mut ledger = world.daemon.ledger();
    let orphan = loop {
        ledger.borrow_and_update();
        let orphan = orphans(&world, 1).await.remove(0);
        if orphan["cancel_tries"] == 1 {
            break orphan;
        }
        ledger.changed().await.expect("the daemon lives");
    };
    assert_eq!(orphan["job_id"], id.as_str());
    assert_eq!((&orphan["kind"], &orphan["reason"]), (&json!("defers"), &json!("expired_while_live")));
    assert_eq!((&orphan["age_seconds"], &orphan["handle_known"]), (&json!(60), &json!(true)));
    assert_eq!(orphan["last_cancel_answer"]["answer"], "refused");
    let page = world.get("/orphans").send().await.body;
    assert!(!page.contains("sesame") && !page.contains("private reason"), "{page}");
    let figures = world.get("/metrics").send().await.body;
    assert!(figures.lines().any(|line| line == "longhaul_orphans 1"), "{figures}");
    let why = world.get(&format!("/jobs/{id}/why")).send().await.ok();
    let codes: Vec<&str> =
        why["reasons"].as_array().unwrap().iter().map(|reason| reason["code"].as_str().unwrap()).collect();
    assert!(codes.contains(&"may_run_outside"), "{codes:?}");
}

#[tokio::test]
async fn cancel_is_tried_again_and_an_orphan_that_was_stopped_leaves_the_list() {
    let world = working_world().await;
    let id = outlived(&world, json!("refused_to_the_host"), Value::Null).await;
    world.clock.advance_seconds(A_DAY);
    world.until(&id, "expired").await;
    let mut ledger = world.daemon.ledger();
    let operation = loop {
        ledger.borrow_and_update();
        let orphan = orphans(&world, 1).await.remove(0);
        if orphan["cancel_tries"] == 1 {
            break orphan["operation_id"].as_str().unwrap().to_owned();
        }
        ledger.changed().await.expect("the daemon lives");
    };
    let answer = world.call("POST", &format!("/orphans/{operation}/cancel")).send().await.ok();
    assert!(answer["orphan"]["next_cancel_at"].is_string(), "{answer}");
    orphans(&world, 0).await;
    // Both tries count, and what came of them is told when all is over.
    let told = reason(&world, &id, "cancel_answered").await;
    assert!(told.starts_with("defers was asked "), "{told}");
    // What is stopped stays so, however often it is asked for.
    let again = world.call("POST", &format!("/orphans/{operation}/cancel")).send().await.ok();
    assert_eq!(again["orphan"]["settled"], "stopped");
}

/// What `why` says of the job under this code.
async fn reason(world: &World, id: &str, code: &str) -> String {
    let why = world.get(&format!("/jobs/{id}/why")).send().await.ok();
    let mut reasons = why["reasons"].as_array().into_iter().flatten();
    let reason = reasons.find(|reason| reason["code"] == code);
    let detail = reason.and_then(|reason| reason["detail"].as_str());
    detail.unwrap_or_else(|| panic!("no {code}: {why}")).to_owned()
}

#[tokio::test]
async fn orphan_that_somebody_has_looked_after_leaves_the_list_and_keeps_who() {
    let world = working_world().await;
    let id = outlived(&world, Value::Null, Value::Null).await;
    let open = world.store_operation(&id).await;
    let path = format!("/orphans/{open}/settle");
    world.post(&path, json!({ "note": "looked" })).send().await.problem(409, "refused");
    world.clock.advance_seconds(A_DAY);
    let orphan = orphans(&world, 1).await.remove(0);
    assert_eq!(orphan["cancel_unavailable_reason"], "the press has no brake");
    world.call("POST", &format!("/orphans/{open}/cancel")).send().await.problem(409, "refused");
    // What cannot work is not proposed.
    let told = reason(&world, &id, "may_run_outside").await;
    assert!(told.contains("it cannot be asked to stop (the press has no brake)"), "{told}");
    assert!(told.contains("orphans settle") && !told.contains("orphans cancel"), "{told}");
    let nonsense = world.call("POST", "/orphans/op-nonsense/cancel").send().await.problem(404, "not_found");
    assert_eq!(nonsense["detail"], "No operation: op-nonsense");
    world.post(&path, json!({})).send().await.problem(422, "invalid_request");
    let settled = world.post(&path, json!({ "note": "the press is cold" })).send().await.ok();
    assert_eq!(settled["orphan"]["settled"], "by_hand");
    assert_eq!(settled["orphan"]["settled_note"], "the press is cold");
    let told = reason(&world, &id, "settled_by_hand").await;
    assert!(told.ends_with("who has looked: the press is cold"), "{told}");
    orphans(&world, 0).await;
    world.post(&path, json!({ "note": "still cold" })).send().await.ok();
    // Nothing would be asked any more: nobody is told that it is.
    world.call("POST", &format!("/orphans/{open}/cancel")).send().await.problem(409, "refused");
}

#[tokio::test]
async fn orphans_of_another_circle_are_not_there() {
    let world = working_world().await;
    let id = outlived(&world, Value::Null, json!("press")).await;
    let operation = world.store_operation(&id).await;
    world.clock.advance_seconds(A_DAY);
    orphans(&world, 1).await;
    let peer = world.token(Role::Peer, json!({ "circle": "bindery" })).await;
    let operator = world.token(Role::Operator, json!({ "circle": "bindery" })).await;
    let mine = world.token(Role::Peer, json!({ "circle": "press" })).await;
    for (token, count) in [(&peer, 0), (&operator, 0), (&mine, 1)] {
        let list = world.get("/orphans").bearer(token).send().await.ok();
        assert_eq!(list["orphans"].as_array().unwrap().len(), count);
    }
    let (cancel, settle) = (format!("/orphans/{operation}/cancel"), format!("/orphans/{operation}/settle"));
    world.call("POST", &cancel).bearer(&peer).send().await.problem(404, "not_found");
    world.post(&settle, json!({ "note": "x" })).bearer(&operator).send().await.problem(404, "not_found");
    world.post("/orphans/work-0/settle", json!({ "note": "x" })).send().await.problem(404, "not_found");
}

#[tokio::test]
async fn ledger_is_read_page_by_page() {
    let world = working_world().await;
    for _ in 0..3 {
        outlived(&world, Value::Null, Value::Null).await;
    }
    world.clock.advance_seconds(A_DAY);
    let all = orphans(&world, 3).await;
    let mut paged = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = world.get(&format!("/orphans?limit=2{cursor}")).send().await.ok();
        paged.extend(page["orphans"].as_array().unwrap().clone());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(paged, all);
    world.get("/orphans?cursor=7.work-1").send().await.problem(422, "invalid_cursor");
}
