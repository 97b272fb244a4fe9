//! `/pipelines`: what is there, started by name, and read anew.

use serde_json::json;

use crate::given::{working_world, world};

const YAML: &str = "
pipelines:
- { name: alert, on: tide, if: { path: payload.level, op: gte, value: 9 }, steps: [{ id: one, uses: echo, on_error: [{ id: mend, uses: echo }] }, { id: two, uses: echo }] }
- { name: stuck, on: never, steps: [{ id: wait, uses: hands_over }] }
";

#[tokio::test]
async fn pipeline_is_shown_with_its_trigger_steps_and_graph() {
    let world = world().await;
    world.pipelines(YAML);
    let list = world.get("/pipelines").send().await.ok();
    assert_eq!(
        (&list["pipelines"][0]["name"], &list["pipelines"][0]["trigger"]),
        (&json!("alert"), &json!("on tide"))
    );
    let shown = world.get("/pipelines/alert").send().await.ok()["pipeline"].clone();
    assert_eq!((&shown["steps"][0]["step"], &shown["steps"][0]["executor"]), (&json!("one"), &json!("echo")));
    assert_eq!((&shown["steps"][0]["next"], &shown["steps"][0]["on_error"]), (&json!("two"), &json!("mend")));
    assert!(shown["graph"].as_str().expect("text").starts_with("alert: on tide"), "{shown}");
    world.get("/pipelines/none").send().await.problem(404, "not_found");
}

#[tokio::test]
async fn pipeline_started_by_name_is_waited_for_whatever_its_condition_and_once_per_key() {
    let world = working_world().await;
    world.pipelines(YAML);
    let sent = json!({ "payload": { "level": 1 }, "wait_seconds": 60 });
    let first = world.post("/pipelines/alert/runs", sent.clone()).key("k").send().await.ok();
    assert_eq!((&first["timeout_exceeded"], &first["run"]["state"]), (&json!(false), &json!("completed")));
    let again = world.post("/pipelines/alert/runs", sent.clone()).key("k").send().await.ok();
    assert_eq!((&again["run_id"], &again["event_id"]), (&first["run_id"], &first["event_id"]));
    world
        .post("/pipelines/alert/runs", json!({}))
        .key("k")
        .send()
        .await
        .problem(409, "idempotency_key_reused");
    let runs = world.get("/runs?pipeline=alert").send().await.ok();
    assert_eq!(runs["runs"].as_array().expect("a list").len(), 1);
    let event = world.event(first["event_id"].as_str().expect("text")).await;
    assert_eq!((&event["origin"]["kind"], &event["origin"]["pipeline"]), (&json!("asked"), &json!("alert")));
    world.post("/pipelines/none/runs", sent).send().await.problem(404, "not_found");
}

#[tokio::test]
async fn who_does_not_wait_long_enough_is_told_so_and_the_run_goes_on() {
    let world = working_world().await;
    world.pipelines(YAML);
    let at_once = world.post("/pipelines/stuck/runs", json!({})).send().await;
    assert_eq!((at_once.status, &at_once.value()["run"]), (202, &json!(null)), "{}", at_once.body);
    let waited = world.post("/pipelines/stuck/runs", json!({ "wait_seconds": 1 })).send().await;
    assert_eq!((waited.status, &waited.value()["timeout_exceeded"]), (202, &json!(true)), "{}", waited.body);
    assert_eq!(waited.value()["run"]["state"], "running");
}

#[tokio::test]
async fn without_files_there_is_nothing_to_read_anew() {
    let world = world().await;
    world.call("POST", "/pipelines/reload").send().await.problem(409, "refused");
}
