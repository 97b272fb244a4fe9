//! `longhaul run`: any command as a durable job.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use crate::given::{Daemon, binary, ended, expect, longhaul, stderr, stdout, until, until_told, verify};

#[test]
fn command_runs_here_and_its_output_is_printed() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    let run = longhaul(dir.path(), &["run", "--env", "COLOUR=blue", "--", "sh", "-c", "echo $COLOUR; pwd"]);
    let here = std::env::current_dir().unwrap();
    assert_eq!(expect(0, &run), format!("blue\n{}\n", here.display()));
}

#[test]
fn output_that_is_json_is_the_result() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    let run = longhaul(dir.path(), &["run", "--", "echo", r#"{"n": 18446744073709551615}"#]);
    assert_eq!(expect(0, &run), "{\"n\": 18446744073709551615}\n");
}

#[test]
fn command_that_fails_is_1_with_its_last_words_and_is_not_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    let run =
        longhaul(dir.path(), &["run", "--title", "fails", "--", "sh", "-c", "echo no paper >&2; exit 7"]);
    expect(1, &run);
    let told = stderr(&run);
    assert!(told.contains("no paper\n") && told.contains("failed: the command exited with 7\n"), "{told}");
    let list = crate::given::json(dir.path(), &["jobs", "list"]);
    assert_eq!(list["work"][0]["title"], "fails");
    assert_eq!(list["work"][0]["state"], "failed");
    assert_eq!(list["work"][0]["runner"]["attempt_count"], 1);
}

#[test]
fn command_that_is_not_there_is_1() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    let run = longhaul(dir.path(), &["run", "--", "no-such-program"]);
    expect(1, &run);
    assert!(stderr(&run).contains("\"no-such-program\" could not be started: "), "{}", stderr(&run));
}

#[test]
fn command_that_takes_too_long_is_ended_and_1() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    let run = longhaul(dir.path(), &["run", "--timeout", "1s", "--", "sleep", "1000"]);
    expect(1, &run);
    assert!(stderr(&run).contains("time limit"), "{}", stderr(&run));
    let list = crate::given::json(dir.path(), &["jobs", "list"]);
    assert_eq!(list["work"][0]["runner"]["attempt_count"], 1, "its time is over for good");
}

#[test]
fn command_that_fails_is_tried_again_as_often_as_asked() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    let script = "echo $LONGHAUL_ATTEMPT_NUMBER; test $LONGHAUL_ATTEMPT_NUMBER = 2";
    let run = longhaul(dir.path(), &["run", "--retry", "1", "--", "sh", "-c", script]);
    assert_eq!(expect(0, &run), "1\n2\n");
    assert!(stderr(&run).contains("attempt 2, after exit_nonzero"), "{}", stderr(&run));
}

/// Nobody had to ask for it: that is what `run` is for.
#[test]
fn command_whose_daemon_is_killed_runs_again_and_finishes_before_the_eyes_of_whoever_follows_it() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    let script = "echo attempt $LONGHAUL_ATTEMPT_NUMBER; test $LONGHAUL_ATTEMPT_NUMBER = 2 || sleep 1000";
    let mut run = following(dir.path(), &["run", "--", "sh", "-c", script]);
    let mut lines = BufReader::new(run.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "attempt 1");
    daemon.kill();
    let _daemon = Daemon::start(dir.path());
    assert_eq!(lines.next().unwrap().unwrap(), "attempt 2");
    assert!(lines.next().is_none());
    let ended = run.wait_with_output().unwrap();
    expect(0, &ended);
    assert!(stderr(&ended).contains("attempt 2, after lease_lost"), "{}", stderr(&ended));
    verify(dir.path());
}

#[test]
fn command_that_must_not_run_twice_does_not_and_the_reason_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    let mut run = following(
        dir.path(),
        &["run", "--max-attempts", "1", "--", "sh", "-c", "echo once >> runs; echo up; sleep 1000"],
    );
    let mut lines = BufReader::new(run.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "up");
    daemon.kill();
    let _daemon = Daemon::start(dir.path());
    let ended = run.wait_with_output().unwrap();
    expect(1, &ended);
    let told = "unavailable: runner_interrupted: the daemon ended while it ran";
    assert!(stderr(&ended).contains(told), "{}", stderr(&ended));
    assert_eq!(std::fs::read_to_string(dir.path().join("runs")).unwrap(), "once\n");
}

/// The command goes on only when its first line was seen.
#[test]
fn output_is_printed_while_the_command_runs() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    let script = "echo first; while ! test -e go; do sleep 0.05; done; echo last";
    let mut run = following(dir.path(), &["run", "--", "sh", "-c", script]);
    let mut lines = BufReader::new(run.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "first");
    std::fs::write(dir.path().join("go"), "").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "last");
    expect(0, &run.wait_with_output().unwrap());
}

#[test]
fn output_of_a_stopped_command_is_listed_and_read_by_whoever_sees_the_job() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    let script = "echo said; echo complained >&2; sleep 1000";
    let id = expect(0, &longhaul(dir.path(), &["run", "--detach", "--", "sh", "-c", script]));
    let id = id.trim();
    let mut logs = following(dir.path(), &["jobs", "logs", "--follow", id]);
    let mut lines = BufReader::new(logs.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "said");
    until(dir.path(), id, "running");
    expect(0, &longhaul(dir.path(), &["jobs", "cancel", id]));
    let result = ended(dir.path(), id, "cancelled");
    assert!(lines.next().is_none());
    assert_eq!(logs.wait().unwrap().code(), Some(0));
    let names: Vec<&str> =
        result["artifacts"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["stdout", "stderr"]);
    assert_eq!(result["error"]["details"]["stderr_tail"], "complained\n");
    assert_eq!(expect(0, &longhaul(dir.path(), &["jobs", "logs", id])), "said\n");
    assert_eq!(expect(0, &longhaul(dir.path(), &["jobs", "logs", "--stderr", id])), "complained\n");
    // Somebody else's token does not see the job, and so not its output either.
    let token = ["token", "create", "--role", "agent", "--circle", "elsewhere"];
    let secret = expect(0, &longhaul(dir.path(), &token));
    let stranger = longhaul(dir.path(), &["jobs", "logs", id, "--token", secret.trim()]);
    expect(4, &stranger);
    // What was purged is gone.
    expect(0, &longhaul(dir.path(), &["purge", id]));
    while !expect(0, &longhaul(dir.path(), &["jobs", "logs", id])).is_empty() {}
}

#[test]
fn output_that_is_gone_or_changed_is_told_and_does_not_look_like_none() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    let id = expect(0, &longhaul(dir.path(), &["run", "--detach", "--", "echo", "precious"]));
    let id = id.trim();
    let result = ended(dir.path(), id, "completed");
    let kept = dir.path().join("artifacts").join(result["artifacts"][0]["path"].as_str().unwrap());
    let logs = || longhaul(dir.path(), &["jobs", "logs", id]);
    assert_eq!(expect(0, &logs()), "precious\n");
    std::fs::write(&kept, "previous\n").unwrap();
    let changed = logs();
    assert_eq!(expect(1, &changed), "previous\n");
    assert!(stderr(&changed).contains("9 bytes of stdout were recorded, and what is here is not the same"));
    std::fs::remove_file(&kept).unwrap();
    let gone = logs();
    expect(1, &gone);
    assert!(stderr(&gone).contains("9 bytes of stdout were recorded, and nothing of it is here"));
}

/// Arguments may be secrets; a title outlives the purge.
#[test]
fn nothing_of_a_command_line_but_the_programs_name_is_left_by_a_purge() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    let run = longhaul(dir.path(), &["run", "--env", "A=hunter2", "--", "/bin/echo", "--password=hunter2"]);
    assert_eq!(expect(0, &run), "--password=hunter2\n");
    let job = crate::given::json(dir.path(), &["jobs", "list"])["work"][0].clone();
    assert_eq!(job["title"], "echo");
    let id = job["job_id"].as_str().unwrap();
    expect(0, &longhaul(dir.path(), &["purge", id]));
    for left in [
        longhaul(dir.path(), &["jobs", "show", "--json", id]),
        longhaul(dir.path(), &["jobs", "facts", id]),
        longhaul(dir.path(), &["export", "facts"]),
    ] {
        assert!(!expect(0, &left).contains("hunter2"), "{}", stdout(&left));
    }
}

/// The command line, followed by the test.
fn following(dir: &Path, arguments: &[&str]) -> Child {
    binary(arguments)
        .env("LONGHAUL_DATA_DIR", dir)
        .current_dir(dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs")
}

#[test]
fn detached_command_goes_on_by_itself_and_tells_its_progress() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    let go = dir.path().join("go");
    let script = format!(
        "{} progress --phase half '{{\"done\":1,\"of\":2}}'; while ! test -e '{}'; do sleep 0.05; done; echo done",
        env!("CARGO_BIN_EXE_longhaul"),
        go.display()
    );
    // Progress that never comes is not waited for without end.
    let run = longhaul(dir.path(), &["run", "--detach", "--timeout", "1m", "--", "sh", "-c", &script]);
    let id = expect(0, &run).trim().to_owned();
    let status = until_told(dir.path(), &id, "half done", |status| status["phase"] == "half");
    assert_eq!(
        (&status["state"], &status["progress"]["of"]),
        (&serde_json::json!("running"), &serde_json::json!(2))
    );
    std::fs::write(&go, "").unwrap();
    assert_eq!(ended(dir.path(), &id, "completed")["data"]["stdout_tail"], "done\n");
}
