//! `/runs`: where a run is, how it is stopped, and how it goes on after a failure.

use api::Role;
use serde_json::{Value, json};

use crate::given::{World, working_world, world};

const YAML: &str = "
pipelines:
- { name: fine, on: fine, steps: [{ id: one, uses: echo }, { id: two, uses: echo }] }
- { name: broken, on: broken, steps: [{ split: [{ id: bad, uses: fails }, { id: good, uses: echo }] }] }
- { name: mended, on: mended, steps: [{ id: bad, uses: fails, on_error: [{ id: mend, uses: echo }] }, { id: stuck, uses: hands_over }] }
- { name: stuck, on: stuck, steps: [{ id: stuck, uses: hands_over }] }
";

impl World {
    /// Starts a pipeline by its name and gives the run.
    async fn begun(&self, pipeline: &str) -> String {
        let answer = self.post(&format!("/pipelines/{pipeline}/runs"), json!({})).send().await;
        answer.value()["run_id"].as_str().expect("it has one").to_owned()
    }

    /// The run once it is as wanted, woken by every commit.
    pub async fn run_until(&self, id: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut ledger = self.daemon.ledger();
        loop {
            ledger.borrow_and_update();
            let run = self.get(&format!("/runs/{id}")).send().await.ok()["run"].clone();
            if wanted(&run) {
                return run;
            }
            ledger.changed().await.expect("the daemon lives");
        }
    }
}

#[tokio::test]
async fn run_shows_where_it_has_been_and_its_jobs_name_it_as_their_source() {
    let world = working_world().await;
    world.pipelines(YAML);
    let id = world.begun("fine").await;
    let run = world.run_until(&id, |run| run["state"] == "completed").await;
    let visits = run["visits"].as_array().expect("a list");
    let seen: Vec<(&str, &str)> = visits
        .iter()
        .map(|visit| (visit["step"].as_str().expect("text"), visit["state"].as_str().expect("text")))
        .collect();
    assert_eq!(seen, [("one", "completed"), ("two", "completed")]);
    assert_eq!((&visits[1]["cause"]["kind"], &visits[1]["cause"]["visit"]), (&json!("after"), &json!(0)));
    let job = world.status(visits[0]["job_id"].as_str().expect("it was a job")).await;
    assert_eq!((&job["source_kind"], &job["source_id"]), (&json!("pipeline"), &json!(id)));
    let listed = world.get("/runs?status=completed&pipeline=fine").send().await.ok();
    assert_eq!(listed["runs"][0]["run_id"], json!(id));
    world.post(&format!("/runs/{id}/retry"), json!({})).send().await.problem(409, "nothing_to_retry");
}

#[tokio::test]
async fn retry_does_only_the_steps_again_that_failed() {
    let world = working_world().await;
    world.pipelines(YAML);
    let id = world.begun("broken").await;
    let run = world.run_until(&id, |run| run["state"] == "failed").await;
    let bad = run["visits"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|visit| visit["step"] == "bad")
        .expect("it is there");
    assert!(run["reason"].as_str().expect("text").starts_with("bad: "), "{run}");
    let retried = world.post(&format!("/runs/{id}/retry"), json!({})).send().await.ok();
    assert_eq!(retried["retried"], json!([bad["job_id"]]));
    let job = bad["job_id"].as_str().expect("text");
    let tried = world.until(job, "failed").await;
    assert_eq!(tried["runner"]["attempt_count"].as_u64(), Some(2), "{tried}");
}

#[tokio::test]
async fn step_whose_failure_was_handled_is_not_done_again() {
    let world = working_world().await;
    world.pipelines(YAML);
    let id = world.begun("mended").await;
    world.run_until(&id, |run| run["visits"].as_array().expect("a list").len() == 2).await;
    world.post(&format!("/runs/{id}/retry"), json!({})).send().await.problem(409, "step_moved_on");
}

#[tokio::test]
async fn cancel_stops_all_that_a_run_began_and_another_circle_sees_nothing_of_it() {
    let world = working_world().await;
    world.pipelines(YAML);
    let press = world.token(Role::Peer, json!({ "circle": "press" })).await;
    let kitchen = world.token(Role::Peer, json!({ "circle": "kitchen" })).await;
    let begun = world.post("/pipelines/stuck/runs", json!({})).bearer(&press).send().await.value();
    let id = begun["run_id"].as_str().expect("it has one");
    let path = format!("/runs/{id}");
    for call in [
        world.get(&path),
        world.post(&format!("{path}/cancel"), json!({})),
        world.post(&format!("{path}/retry"), json!({})),
    ] {
        call.bearer(&kitchen).send().await.problem(404, "not_found");
    }
    assert_eq!(world.get("/runs").bearer(&kitchen).send().await.ok()["runs"], json!([]));
    let cancel =
        || world.post(&format!("{path}/cancel"), json!({ "reason": "enough" })).bearer(&press).key("c");
    let first = cancel().send().await;
    assert_eq!(
        (&first.ok()["run"]["reason"], &first.ok()["run"]["circle"]),
        (&json!("enough"), &json!("press"))
    );
    assert_eq!(cancel().send().await.body, first.body);
    let long = json!({ "reason": "x".repeat(100_000) });
    assert_eq!(world.post(&format!("{path}/cancel"), long).send().await.status, 413);
}

#[tokio::test]
async fn late_cancel_of_a_run_is_kept_and_it_is_not_retried() {
    let world = working_world().await;
    world.pipelines("pipelines:\n  - { name: broken, on: tide.changed, steps: [{ uses: fails }] }\n");
    let id = world.begun("broken").await;
    world.run_until(&id, |run| run["state"] == "failed").await;
    let cancel = || world.post(&format!("/runs/{id}/cancel"), json!({ "reason": "enough" })).send();
    assert_eq!(cancel().await.ok()["run"]["state"], "failed");
    cancel().await.ok();
    let retry = world.post(&format!("/runs/{id}/retry"), json!({})).send().await;
    retry.problem(409, "step_moved_on");
}

/// A commit asks few of them, and the worker that would ask the rest does nothing on a drained node.
#[tokio::test]
async fn cancel_of_a_wide_run_asks_every_job_on_a_drained_node() {
    const STEPS: usize = 40;
    let steps: Vec<String> = (0..STEPS).map(|n| format!("{{ id: s{n}, uses: hands_over }}")).collect();
    let world = working_world().await;
    world.pipelines(&format!(
        "pipelines: [{{ name: wide, on: wide, steps: [{{ split: [{}] }}] }}]",
        steps.join(", ")
    ));
    let id = world.begun("wide").await;
    let jobs = |run: &Value| -> Vec<String> {
        let visits = run["visits"].as_array().expect("a list").iter();
        visits.filter_map(|visit| visit["job_id"].as_str().map(str::to_owned)).collect()
    };
    let run = world.run_until(&id, |run| jobs(run).len() == STEPS).await;
    world.daemon.tell(store::Taking::Drains);
    world.post(&format!("/runs/{id}/cancel"), json!({})).send().await.ok();
    for job in jobs(&run) {
        let status = world.status(&job).await;
        assert!(status["cancel_requested"] == true || status["state"] == "cancelled", "{status}");
    }
}

#[tokio::test]
async fn job_of_a_step_links_to_its_event_and_its_run() {
    let world = working_world().await;
    world.pipelines(YAML);
    let id = world.begun("fine").await;
    let run = world.run_until(&id, |run| run["state"] == "completed").await;
    let event = run["event_id"].as_str().expect("an event started it");
    for visit in run["visits"].as_array().expect("a list") {
        let job = world.status(visit["job_id"].as_str().expect("it was a job")).await;
        assert_eq!(job["links"]["runs"], json!([id]), "{job}");
        assert_eq!(job["links"]["events"], json!([event]), "{job}");
        assert!(job["links"].get("session").is_none(), "it has no session: {job}");
    }
}

#[tokio::test]
async fn job_of_a_session_links_to_it() {
    let world = world().await;
    let id = world.create(json!({ "repowire_session_id": "session-7" })).await;
    let job = world.status(&id).await;
    assert_eq!(job["links"], json!({ "session": "session-7" }));
    let own = json!({ "repowire_session_id": "session-7", "provenance": { "links": { "session": "mine" } } });
    let id = world.create(own).await;
    assert_eq!(world.status(&id).await["links"], json!({ "session": "mine" }), "its creator's word stays");
}
