//! What people see of work outside: in `show`, in `why`, and as it goes on in `watch`.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::given::{Daemon, binary, create, ended, expect, longhaul};
use crate::outside::Outside;

#[test]
fn progress_of_work_outside_is_watched_as_it_comes_and_shown_with_its_next_question() {
    let dir = tempfile::tempdir().unwrap();
    let outside = Outside::start(dir.path());
    let daemon = outside.daemon(dir.path());
    let input = r#"{"seconds": 10, "steps": 10, "result": {"pages": 12}}"#;
    let id = create(dir.path(), &["print it", "--executor", "slow-service", "--input", input]);
    let mut watch = binary(&["jobs", "watch", &id, "--json"])
        .env("LONGHAUL_DATA_DIR", dir.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let lines = BufReader::new(watch.stdout.take().expect("it is ours")).lines();
    let mut polls = Vec::new();
    let mut shown = false;
    for line in lines {
        let status: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let outside = &status["runner"]["outside"];
        let Some(times) = outside["polls"].as_u64() else { continue };
        if polls.last() != Some(&times) {
            polls.push(times);
        }
        if times > 0 && !shown {
            shown = true;
            assert!(status["progress"].as_object().is_some_and(|progress| !progress.is_empty()), "{status}");
            let text = expect(0, &longhaul(dir.path(), &["jobs", "show", &id]));
            for said in ["  outside: ", " at slow-service (op-", ", asked ", "given up at "] {
                assert!(text.contains(said), "{said}: {text}");
            }
            let why = expect(0, &longhaul(dir.path(), &["jobs", "why", &id]));
            assert!(why.contains("awaiting_external: it waits for slow-service"), "{why}");
        }
    }
    watch.wait().expect("it is ours");
    assert!(polls.len() >= 3 && polls.is_sorted(), "every question was seen as it was asked: {polls:?}");
    ended(dir.path(), &id, "completed");
    drop(daemon);
    outside.stop();
}

#[test]
fn service_that_is_away_is_told_with_its_last_error() {
    let dir = tempfile::tempdir().unwrap();
    let outside = Outside::start(dir.path());
    let daemon = outside.daemon(dir.path());
    let id =
        create(dir.path(), &["print it", "--executor", "slow-service", "--input", r#"{"seconds": 600}"#]);
    crate::given::until(dir.path(), &id, "awaiting_external");
    outside.stop();
    loop {
        let status = crate::given::show(dir.path(), &id);
        if status["runner"]["outside"]["last_error"]["code"] == "connect_failed" {
            break;
        }
        std::thread::yield_now();
    }
    let text = expect(0, &longhaul(dir.path(), &["jobs", "show", &id]));
    assert!(text.contains("  last error: connect_failed: ") && text.contains(" in a row)"), "{text}");
    let why = expect(0, &longhaul(dir.path(), &["jobs", "why", &id]));
    assert!(why.contains("without a usable status: connect_failed"), "{why}");
    drop(daemon);
}

#[test]
fn executor_of_a_circle_does_the_circle_s_jobs_and_nobody_else_s() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("longhaul.yaml");
    let executor = |circle: &str, word: &str| {
        format!("  - {{ name: says, {circle}kind: process, argv: [sh, -c, 'echo {word}'] }}\n")
    };
    let text = format!("executors:\n{}{}", executor("", "common"), executor("circle: acme, ", "acme"));
    std::fs::write(&config, text).unwrap();
    let config = config.to_str().unwrap().to_owned();
    expect(0, &longhaul(dir.path(), &["config", "check", &config]));
    let daemon = Daemon::verb(dir.path(), &["serve", "--listen", "127.0.0.1:0", "--config", &config]);
    for (circle, word) in [(None, "common"), (Some("acme"), "acme"), (Some("umbrella"), "common")] {
        let arguments = [
            &["say it", "--executor", "says"][..],
            &circle.map_or(vec![], |circle| vec!["--circle", circle]),
        ];
        let id = create(dir.path(), &arguments.concat());
        let result = ended(dir.path(), &id, "completed");
        assert!(result.to_string().contains(word), "{circle:?}: {result}");
    }
    drop(daemon);
}
