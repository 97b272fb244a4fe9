//! Steps of the wall clock under the real binary: a glitch changes nothing, a step that lasts is adopted and takes nothing from whoever is
//! alive, and a store from the future is set right.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use slow_service::Options;

use crate::given::{
    Daemon, binary, create, ended, expect, json as json_of, longhaul, show, until, verify, within,
};
use crate::jumps::Wall;
use crate::outside::Outside;

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;
/// Jobs that a worker holds, and operations that go on outside, while the clock jumps.
const HELD: usize = 20;
const OUTSIDE: usize = 50;
/// A step is adopted soon.
const SOON: &str = "clock: { adopt_after: 2s }\nlease: { seconds: 30, renew_every_seconds: 10 }\n\
     policy:\n  kind_overrides: { slow-service: { max_ttl_seconds: 900 } }\n";

/// Asks over HTTP as the administrator: the status, and the answer.
pub fn send(dir: &Path, daemon: &Daemon, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let token = std::fs::read_to_string(dir.join("admin.token")).expect("the daemon has made it");
    let request = ureq::http::Request::builder()
        .method(method)
        .uri(format!("{}{path}", daemon.url))
        .header("authorization", format!("Bearer {}", token.trim()))
        .header("content-type", "application/json");
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut answer = agent.run(request.body(body).expect("it is a request")).expect("the daemon answers");
    let text = answer.body_mut().read_to_string().expect("it is text");
    (answer.status().as_u16(), serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

fn clock(dir: &Path) -> Value {
    json_of(dir, &["clock"])
}

fn facts(dir: &Path, kind: &str) -> usize {
    let printed = expect(0, &longhaul(dir, &["export", "facts"]));
    let facts = printed.lines().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON"));
    facts.filter(|fact| fact["kind"] == kind).count()
}

fn in_real_time(seconds: i64) -> String {
    (jiff::Timestamp::now() + jiff::SignedDuration::from_secs(seconds)).to_string()
}

/// A job that is due in so many seconds, with a deadline.
fn create_by(dir: &Path, due_in: i64, deadline_in: i64) -> String {
    let (due, deadline) = (in_real_time(due_in), in_real_time(deadline_in));
    create(dir, &["deadline", "--executor", "noop", "--due-at", &due, "--deadline-at", &deadline])
}

#[test]
fn glitch_of_three_days_starts_and_expires_nothing() {
    let (dir, wall) = (tempfile::tempdir().unwrap(), Wall::new());
    let daemon = wall.daemon(dir.path());
    let tomorrow = create(dir.path(), &["tomorrow", "--executor", "noop", "--due-at", &in_real_time(DAY)]);
    let deadline = create_by(dir.path(), HOUR, DAY);
    wall.set(3 * DAY);
    within("the step is seen", || (clock(dir.path())["step_seconds"].as_i64()? > 2 * DAY).then_some(()));
    let (status, ready) = send(dir.path(), &daemon, "GET", "/readyz", &Value::Null);
    let detail = ready["detail"].as_str().unwrap_or_default();
    assert!(status == 200 && detail.contains("ahead of the store's time"), "{ready}");
    let (_, metrics) = send(dir.path(), &daemon, "GET", "/metrics", &Value::Null);
    let gauge = format!("longhaul_clock_step_seconds {}", 3 * DAY);
    assert!(metrics.as_str().is_some_and(|page| page.contains(&gauge)), "{metrics}");
    let why = expect(0, &longhaul(dir.path(), &["jobs", "why", &tomorrow, "--json"]));
    assert!(why.contains("clock_step"), "{why}");
    let nodes = json_of(dir.path(), &["nodes"]);
    assert!(nodes["nodes"][0]["clock_step_seconds"].as_i64().is_some_and(|off| off > 2 * DAY), "{nodes}");
    // Started again while the clock is wrong.
    daemon.kill();
    let daemon = wall.daemon(dir.path());
    assert!(clock(dir.path())["step_seconds"].as_i64().is_some_and(|off| off > 2 * DAY));
    wall.set(0);
    within("it is right again", || (clock(dir.path())["step_seconds"] == 0).then_some(()));
    create_by(dir.path(), 60, HOUR);
    for id in [&tomorrow, &deadline] {
        assert_eq!(show(dir.path(), id)["state"], "queued");
    }
    assert!(daemon.log().contains("is right again"), "{}", daemon.log());
    drop(daemon);
    verify(dir.path());
}

#[test]
fn adopted_step_of_an_hour_takes_no_lease_and_no_life() {
    let (dir, wall) = (tempfile::tempdir().unwrap(), Wall::with(SOON));
    let outside = Outside::start_with(dir.path(), Options::default());
    let daemon = wall.daemon_with(dir.path(), &outside.connector);
    let input = r#"{"seconds": 600, "steps": 2, "result": {}}"#;
    let outside_ids: Vec<String> = (0..OUTSIDE)
        .map(|_| create(dir.path(), &["print it", "--executor", "slow-service", "--input", input]))
        .collect();
    for id in &outside_ids {
        until(dir.path(), id, "awaiting_external");
    }
    expect(0, &longhaul(dir.path(), &["peers", "register", "--id", "joan"]));
    let mut held = Vec::new();
    for _ in 0..HELD {
        create(dir.path(), &["by hand", "--assigned-peer", "joan"]);
        let pull = json!({ "peer_id": "joan", "wait_seconds": 5 });
        let handed = send(dir.path(), &daemon, "POST", "/jobs/next", &pull).1["job"].clone();
        held.push((handed["job_id"].as_str().unwrap().to_owned(), handed["attempt_id"].clone()));
    }
    let beat = |id: &str, attempt: &Value| {
        let path = format!("/jobs/{id}/heartbeat");
        send(dir.path(), &daemon, "POST", &path, &json!({ "attempt_id": attempt })).0
    };
    wall.set(HOUR);
    let began = Instant::now();
    let mut adopted = false;
    while !adopted || began.elapsed() < Duration::from_secs(12) {
        for (id, attempt) in &held {
            assert_eq!(beat(id, attempt), 200, "{}", daemon.log());
        }
        adopted |= clock(dir.path())["steps_adopted"] == 1;
        assert!(began.elapsed() < Duration::from_mins(1), "the step was not adopted: {}", daemon.log());
        // A worker that heartbeats every few seconds.
        std::thread::park_timeout(Duration::from_secs(2));
    }
    for (id, attempt) in &held {
        let path = format!("/jobs/{id}/complete");
        let done = send(dir.path(), &daemon, "POST", &path, &json!({ "attempt_id": attempt }));
        assert_eq!(done.0, 200, "{done:?}");
        let job = show(dir.path(), id);
        let (state, attempts) = (&job["state"], &job["runner"]["attempt_count"]);
        assert_eq!((state, attempts), (&json!("completed"), &json!(1)), "{job}");
    }
    for id in &outside_ids {
        assert_eq!(show(dir.path(), id)["state"], "awaiting_external");
    }
    assert_eq!((facts(dir.path(), "operation.expired/1"), facts(dir.path(), "job.requeued/1")), (0, 0));
    assert!(facts(dir.path(), "operation.timers_moved/1") > 0, "their lives were moved");
    drop(daemon);
    outside.stop();
    verify(dir.path());
}

#[test]
fn store_that_is_ahead_is_set_right_and_goes_on() {
    let (dir, wall) = (tempfile::tempdir().unwrap(), Wall::with("clock: { adopt_after: 1h }\n"));
    wall.set(3 * DAY);
    let daemon = wall.daemon(dir.path());
    let before = create(dir.path(), &["before", "--executor", "slow", "--input", r#"{"seconds":8}"#]);
    until(dir.path(), &before, "running");
    wall.set(0);
    within("the step is seen", || (clock(dir.path())["step_seconds"].as_i64()? < -2 * DAY).then_some(()));
    let early = create(dir.path(), &["early", "--executor", "noop", "--due-at", &in_real_time(4 * DAY)]);
    assert_ne!(longhaul(dir.path(), &["clock", "set-right"]).status.code(), Some(0), "not without a yes");
    let told = expect(0, &longhaul(dir.path(), &["clock", "set-right", "--yes"]));
    assert!(told.contains("store time jumped by -259200 s"), "{told}");
    let shown = clock(dir.path());
    assert_eq!((&shown["step_seconds"], &shown["steps_adopted"]), (&json!(0), &json!(1)), "{shown}");
    let step = &shown["steps"][0];
    let by = step["adopted_by"].as_str().unwrap();
    assert!(by != "clock" && step["seconds"].as_i64().is_some_and(|by| (by + 3 * DAY).abs() < 60), "{shown}");
    let times = ["from", "to"].map(|at| step[at].as_str().unwrap().parse::<jiff::Timestamp>().unwrap());
    let jumped = times[1].duration_since(times[0]).as_secs_f64().round();
    assert_eq!(step["seconds"].as_f64(), Some(jumped), "{shown}");
    let (_, over_http) = send(dir.path(), &daemon, "GET", "/clock", &Value::Null);
    assert_eq!(over_http["steps"], shown["steps"]);
    let told = expect(0, &longhaul(dir.path(), &["clock"]));
    let adopted = told.lines().find(|line| line.starts_with("Adopted ")).unwrap_or_default();
    assert!(adopted.contains("-259200 s") && adopted.contains(by), "{told}");
    // What ran goes on and ends, what is new is done, a time of day stays what it is.
    ended(dir.path(), &before, "completed");
    let after = create(dir.path(), &["after", "--executor", "noop"]);
    ended(dir.path(), &after, "completed");
    let done = show(dir.path(), &after);
    let created: jiff::Timestamp = done["created_at"].as_str().unwrap().parse().unwrap();
    assert!(created < jiff::Timestamp::now() + jiff::SignedDuration::from_secs(60), "{done}");
    assert_eq!(show(dir.path(), &early)["state"], "queued");
    assert!(facts(dir.path(), "job.timers_moved/1") > 0);
    daemon.kill();
    let daemon = wall.daemon(dir.path());
    let log = daemon.log();
    let known = clock(dir.path());
    assert_eq!(known["step_seconds"], 0, "a restart does not go back to the future: {log}");
    assert_eq!(known["steps"], shown["steps"], "and knows who set it right");
    drop(daemon);
    verify(dir.path());
}

#[test]
fn restored_store_knows_the_steps_of_its_clock() {
    let (dir, wall) = (tempfile::tempdir().unwrap(), Wall::with("clock: { adopt_after: 1h }\n"));
    let daemon = wall.daemon(dir.path());
    wall.set(3 * DAY);
    within("the step is seen", || (clock(dir.path())["step_seconds"].as_i64()? > 2 * DAY).then_some(()));
    expect(0, &longhaul(dir.path(), &["clock", "set-right", "--yes"]));
    let steps = clock(dir.path())["steps"].clone();
    assert_eq!(steps.as_array().map(Vec::len), Some(1), "{steps}");
    assert_ne!(steps[0]["adopted_by"], "clock");
    drop(daemon);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let schema = runtime.block_on(test_postgres::Schema::new());
    let database = ["--database", schema.address.as_str()];
    let backups = tempfile::tempdir().unwrap();
    let mut taken_from = (dir, &[][..]);
    // Into a file, into a database, and out of it.
    for (number, target) in [&[][..], &database, &[]].into_iter().enumerate() {
        let backup = backups.path().join(number.to_string());
        let run = |verb: &str, dir: &Path, store: &[&str]| {
            let place = [verb, backup.to_str().unwrap(), "--data-dir", dir.to_str().unwrap()];
            expect(0, &binary(&[&place, store].concat()).output().unwrap());
        };
        run("backup", taken_from.0.path(), taken_from.1);
        let restored = tempfile::tempdir().unwrap();
        run("restore", restored.path(), target);
        let daemon = Daemon::start_with(restored.path(), target);
        assert_eq!(clock(restored.path())["steps"], steps, "{target:?}");
        drop(daemon);
        taken_from = (restored, target);
    }
}
