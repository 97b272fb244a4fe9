//! Ductile's face: plugins and pipelines as its clients start them, jobs as they read them.

use std::time::Duration;

use api::Role;
use serde_json::{Value, json};
use server::ServerLimits;

use crate::given::{Answer, World, working_world, working_world_with, world};

const TWO_STEPS: &str = "
pipelines:
- name: two
  on: e
  execution_mode: synchronous
  steps: [{ id: first, uses: echo }, { id: second, uses: echo }]
- { name: bad, on: e, execution_mode: synchronous, steps: [{ id: ok, uses: echo }, { id: not, uses: fails }] }
- { name: slow, on: e, execution_mode: synchronous, timeout: 1s, steps: [{ id: long, uses: stays }] }
- { name: skipped, on: e, steps: [{ uses: echo, if: { path: payload.x, op: exists } }] }
";

#[track_caller]
fn error(answer: &Answer, status: u16) -> String {
    assert_eq!(answer.status, status, "{}", answer.body);
    assert_eq!(answer.headers["content-type"], "application/json");
    let value = answer.value();
    assert_eq!(value.as_object().map(serde_json::Map::len), Some(1), "{value}");
    value["error"].as_str().expect("it is a text").to_owned()
}

#[track_caller]
fn accepted(answer: &Answer) -> Value {
    assert_eq!(answer.status, 202, "{}", answer.body);
    answer.value()
}

fn text(value: &Value) -> &str {
    value.as_str().expect("it is a text")
}

async fn no_jobs(world: &World) {
    assert_eq!(world.get("/jobs").send().await.ok()["work"], json!([]));
}

#[tokio::test]
async fn plugin_is_asked_and_its_job_is_read_in_ductiles_words() {
    let world = working_world().await;
    let body = json!({ "payload": { "station": "north", "n": 12_345_678_901_234_567_890_u64 } });
    let triggered = accepted(&world.post("/plugin/echo/poll", body.clone()).send().await);
    let id = text(&triggered["job_id"]);
    assert_eq!(triggered, json!({ "job_id": id, "status": "queued", "plugin": "echo", "command": "poll" }));
    world.until(id, "completed").await;
    let job = world.get(&format!("/job/{id}")).send().await.ok();
    assert_eq!((&job["status"], &job["attempt"]), (&json!("succeeded"), &json!(1)));
    assert_eq!((&job["plugin"], &job["command"]), (&json!("echo"), &json!("poll")));
    assert_eq!(job["result"], json!({ "command": "poll", "payload": body["payload"] }));
    assert!(job["started_at"].is_string() && job["completed_at"].is_string(), "{job}");
}

#[tokio::test]
async fn what_handle_is_given_is_an_event_of_the_callers_making() {
    let world = working_world().await;
    let triggered =
        accepted(&world.post("/plugin/echo/handle", json!({ "payload": { "a": 1 } })).send().await);
    world.until(text(&triggered["job_id"]), "completed").await;
    let job = world.get(&format!("/job/{}", text(&triggered["job_id"]))).send().await.ok();
    let event = json!({ "type": "api.trigger", "payload": { "a": 1 } });
    assert_eq!(job["result"], json!({ "command": "handle", "event": event }));
}

#[tokio::test]
async fn body_without_a_payload_is_refused_and_never_taken_for_an_empty_one() {
    let world = world().await;
    world.pipelines(TWO_STEPS);
    for path in ["/plugin/echo/poll", "/pipeline/two"] {
        for body in [json!({ "station": "north" }), json!({}), json!({ "payload": 1 }), json!([])] {
            let told = error(&world.post(path, body).send().await, 400);
            assert!(told.contains("{\"payload\": {...}}"), "{told}");
        }
        error(&world.call("POST", path).text("{").send().await, 400);
    }
    no_jobs(&world).await;
}

#[tokio::test]
async fn plugin_or_command_that_is_not_there_is_told_with_those_that_are() {
    let world = world().await;
    let payload = || json!({ "payload": {} });
    let told = error(&world.post("/plugin/ecko/poll", payload()).send().await, 400);
    assert!(told.contains("\"echo\"") && told.ends_with("there are echo, fails, stays"), "{told}");
    let told = error(&world.post("/plugin/echo/pol", payload()).send().await, 400);
    assert!(told.ends_with("it has poll, handle"), "{told}");
    error(&world.post("/plugin/ghost/poll", payload()).send().await, 400);
    no_jobs(&world).await;
}

#[tokio::test]
async fn same_key_starts_one_job_and_another_request_under_it_is_a_conflict() {
    let world = world().await;
    let ask = |path: &str, n: u32| world.post(path, json!({ "payload": { "n": n } })).key("k");
    let first = ask("/plugin/echo/poll", 1).send().await;
    let again = ask("/plugin/echo/poll", 1).send().await;
    assert_eq!((first.status, &first.body), (again.status, &again.body));
    assert_eq!(first.status, 202);
    error(&ask("/plugin/echo/poll", 2).send().await, 409);
    error(&ask("/plugin/echo/handle", 1).send().await, 409);
    assert_eq!(world.get("/jobs").send().await.ok()["work"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn failure_is_shown_with_its_reason() {
    let world = working_world().await;
    let triggered = accepted(&world.post("/plugin/fails/poll", json!({ "payload": {} })).send().await);
    let id = text(&triggered["job_id"]);
    world.until(id, "failed").await;
    let job = world.get(&format!("/job/{id}")).send().await.ok();
    assert_eq!((&job["status"], &job["error"]), (&json!("failed"), &json!("there is no paper")));
    let tree = world.get(&format!("/job/{id}/tree")).send().await.ok();
    assert_eq!((&tree[0]["job_id"], &tree[0]["last_error"]), (&json!(id), &json!("there is no paper")));
}

#[tokio::test]
async fn job_that_is_not_there_or_not_ones_own_is_404() {
    let world = world().await;
    let theirs = world.create(json!({ "circle": "bindery" })).await;
    let press = world.token(Role::Agent, json!({ "circle": "press" })).await;
    for path in [format!("/job/{theirs}"), format!("/job/{theirs}/tree")] {
        let not_yours = error(&world.get(&path).bearer(&press).send().await, 404);
        assert_eq!(not_yours, format!("No work: {theirs}"));
    }
    for id in ["work-0", "run-0", "event-0", "x"] {
        error(&world.get(&format!("/job/{id}")).send().await, 404);
        error(&world.get(&format!("/job/{id}/tree")).send().await, 404);
    }
}

#[tokio::test]
async fn plugins_are_listed_and_shown_with_whole_schemas() {
    let world = world().await;
    let listed = world.get("/plugins").send().await.ok();
    let names: Vec<_> = listed["plugins"].as_array().unwrap().iter().map(|one| text(&one["name"])).collect();
    assert_eq!(names, ["echo", "fails", "stays"]);
    assert_eq!(listed["plugins"][0]["commands"], json!(["poll", "handle"]));
    let echo = world.get("/plugin/echo").send().await.ok();
    let schema = json!({ "type": "object", "properties": { "station": { "type": "string" } } });
    assert_eq!(echo["commands"][0], json!({ "name": "poll", "type": "read", "input_schema": schema }));
    error(&world.get("/plugin/nobody").send().await, 404);
}

#[tokio::test]
async fn all_that_can_be_started_is_listed_with_where_and_a_plugin_is_told_as_openapi() {
    let world = world().await;
    world.pipelines(TWO_STEPS);
    let skills = world.get("/skills").send().await.ok()["skills"].as_array().unwrap().clone();
    let of = |name: &str| skills.iter().find(|skill| skill["name"] == name).cloned().unwrap_or_default();
    let schema = json!({ "type": "object", "properties": { "station": { "type": "string" } } });
    assert_eq!(
        of("plugin.echo.poll"),
        json!({
            "name": "plugin.echo.poll", "kind": "plugin", "endpoint": "/plugin/echo/poll", "tier": "READ",
            "input_schema": schema,
        })
    );
    assert_eq!(
        (&of("plugin.echo.handle")["tier"], &of("pipeline.two")["tier"]),
        (&json!("WRITE"), &json!("WRITE"))
    );
    for skill in &skills {
        // Nobody works here: what is synchronous is not waited for.
        let path = format!("{}?async=true", text(&skill["endpoint"]));
        accepted(&world.post(&path, json!({ "payload": {} })).send().await);
    }
    let document = world.get("/plugin/echo/openapi.json").send().await.ok();
    assert_eq!(document["openapi"], "3.1.0");
    let asked = &document["paths"]["/plugin/echo/poll"]["post"]["requestBody"]["content"]["application/json"];
    assert_eq!(asked["schema"]["properties"]["payload"], schema);
    error(&world.get("/plugin/nobody/openapi.json").send().await, 404);
}

#[tokio::test]
async fn breaker_of_a_plugin_is_shown_and_reset_by_whoever_manages_nodes() {
    let world = world().await;
    let off = json!({ "state": "off" });
    let closed = json!({ "state": "closed", "failures": 0, "threshold": 3 });
    let listed = world.get("/plugins").send().await.ok();
    assert_eq!((&listed["plugins"][0]["breaker"], &listed["plugins"][1]["breaker"]), (&off, &closed));
    assert_eq!(world.get("/plugin/fails").send().await.ok()["breaker"], closed);
    let reset = world.call("POST", "/plugin/fails/breaker/reset").send().await.ok();
    assert_eq!(reset, json!({ "plugin": "fails", "breaker": closed }));
    let unknown = world.call("POST", "/plugin/failz/breaker/reset").send().await;
    let told = unknown.problem(404, "not_found")["detail"].to_string();
    assert!(told.contains("fails"), "{told}");
}

#[tokio::test]
async fn plugin_that_has_not_run_remembers_nothing_and_one_that_is_not_there_is_404() {
    let world = world().await;
    let nothing = json!({ "plugin": "echo", "version": 0, "state": {}, "fact_count": 0, "facts": [] });
    assert_eq!(world.get("/plugin/echo/state").send().await.ok(), nothing);
    let unknown = world.get("/plugin/failz/state").send().await;
    assert!(unknown.problem(404, "not_found")["detail"].to_string().contains("fails"));
    world.get("/plugin/echo/state?after=x").send().await.problem(422, "invalid_cursor");
}

#[tokio::test]
async fn whoever_starts_a_synchronous_pipeline_is_answered_with_its_end_and_its_jobs() {
    let world = working_world().await;
    world.pipelines(TWO_STEPS);
    let ended = world.post("/pipeline/two", json!({ "payload": { "a": 1 } })).send().await.ok();
    assert_eq!(ended["status"], "succeeded", "{ended}");
    let tree = ended["tree"].as_array().unwrap();
    assert_eq!(tree.len(), 2, "{ended}");
    assert_eq!((&tree[0]["job_id"], &tree[0]["parent_job_id"]), (&ended["job_id"], &Value::Null));
    assert_eq!(tree[1]["parent_job_id"], ended["job_id"]);
    assert_eq!(ended["result"], tree[1]["result"]);
    for id in [&ended["run_id"], &ended["job_id"], &tree[1]["job_id"]] {
        assert_eq!(world.get(&format!("/job/{}/tree", text(id))).send().await.ok(), ended["tree"]);
    }
    let run = world.get(&format!("/job/{}", text(&ended["run_id"]))).send().await.ok();
    assert_eq!((&run["status"], &run["command"]), (&json!("succeeded"), &json!("two")));
}

#[tokio::test]
async fn pipeline_of_which_a_step_fails_is_answered_with_that_steps_status() {
    let world = working_world().await;
    world.pipelines(TWO_STEPS);
    let ended = world.post("/pipeline/bad", json!({ "payload": {} })).send().await.ok();
    assert_eq!(ended["status"], "failed", "{ended}");
    assert_eq!(ended["tree"][1]["last_error"], "there is no paper");
}

#[tokio::test]
async fn pipeline_that_takes_too_long_goes_on_and_its_caller_is_told_so() {
    let world = working_world().await;
    world.pipelines(TWO_STEPS);
    let late = accepted(&world.post("/pipeline/slow", json!({ "payload": {} })).send().await);
    assert_eq!((&late["status"], &late["timeout_exceeded"]), (&json!("running"), &json!(true)));
    let job = world.get(&format!("/job/{}", text(&late["job_id"]))).send().await.ok();
    assert_eq!(job["status"], "running");
}

#[tokio::test]
async fn pipeline_is_not_waited_for_by_who_would_rather_not_and_a_key_names_one_run() {
    let world = world().await;
    world.pipelines(TWO_STEPS);
    let ask = |n: u32| world.post("/pipeline/two?async=true", json!({ "payload": { "n": n } })).key("k");
    let first = ask(1).send().await;
    let started = accepted(&first);
    assert_eq!((&started["plugin"], &started["command"]), (&json!("pipeline"), &json!("two")));
    let job = world.get(&format!("/job/{}", text(&started["job_id"]))).send().await.ok();
    assert_eq!((&job["status"], &job["plugin"]), (&json!("queued"), &json!("echo")));
    assert_eq!(ask(1).send().await.body, first.body);
    error(&ask(2).send().await, 409);
    assert_eq!(world.get("/jobs").send().await.ok()["work"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn pipeline_without_a_first_job_is_known_by_its_run_and_one_that_is_not_there_is_404() {
    let world = world().await;
    world.pipelines(TWO_STEPS);
    let started = accepted(&world.post("/pipeline/skipped", json!({ "payload": {} })).send().await);
    assert_eq!(started["job_id"], started["run_id"]);
    let path = format!("/job/{}", text(&started["job_id"]));
    assert_eq!(world.get(&path).send().await.ok()["status"], "succeeded");
    assert_eq!(world.get(&format!("{path}/tree")).send().await.ok(), json!([]));
    let told = error(&world.post("/pipeline/tow", json!({ "payload": {} })).send().await, 404);
    assert!(told.contains("did you mean \"two\"?"), "{told}");
}

#[tokio::test]
async fn whoever_finds_no_place_to_wait_is_sent_away_before_anything_is_written() {
    let world = working_world_with(ServerLimits { requests: 1, ..ServerLimits::default() }).await;
    world.pipelines(&TWO_STEPS.replace("timeout: 1s", "timeout: 60s"));
    let body = || json!({ "payload": {} });
    let mut ledger = world.daemon.ledger();
    let first = world.post("/pipeline/slow", body()).send();
    let second = async {
        // The first one waits once its job is there.
        ledger.changed().await.expect("the daemon lives");
        loop {
            let answer = world.post("/pipeline/slow", body()).send().await;
            let told = error(&answer, 503);
            if told.contains("wait at once") {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        answer = first => panic!("it does not end: {}", answer.body),
        () = second => {}
        () = tokio::time::sleep(Duration::from_secs(50)) => panic!("nobody was sent away"),
    }
    let jobs = loop {
        let answer = world.get("/jobs").send().await;
        if answer.status == 200 {
            break answer.ok()["work"].clone();
        }
    };
    assert_eq!(jobs.as_array().map(Vec::len), Some(1), "{jobs}");
}
