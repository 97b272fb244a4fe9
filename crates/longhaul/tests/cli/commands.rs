//! `longhaul run`: any command as a durable job.

use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::given::{
    Daemon, binary, ended, expect, longhaul, stderr, stdout, until, until_told, verify, within,
};
use crate::peers::send;

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
fn command_posted_over_http_that_fails_is_not_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    let input = json!({ "argv": ["sh", "-c", "echo once >> runs; exit 1"], "cwd": dir.path() });
    let order = json!({ "title": "fails", "executor": "command", "input": input });
    let made = send(dir.path(), &daemon, "POST", "/jobs", &order);
    let id = made["job_id"].as_str().unwrap_or_else(|| panic!("{made}"));
    let over = ended(dir.path(), id, "failed");
    assert_eq!(over["error"]["code"], "exit_nonzero", "{over}");
    assert_eq!(crate::given::show(dir.path(), id)["runner"]["attempt_count"], 1);
    assert_eq!(std::fs::read_to_string(dir.path().join("runs")).unwrap(), "once\n");
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
    let told = stderr(&ended);
    assert!(told.contains("unavailable: the daemon of node "), "{told}");
    assert!(told.contains("; it was last heard of at 20"), "{told}");
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

// conforms: O9 O57
#[test]
fn invoked_command_ends_with_its_time_limit() {
    let (dir, effects) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let config = dir.path().join("longhaul.yaml");
    std::fs::write(&config, "policy: { defaults: { invoke_timeout_ms: 1500 } }\n").unwrap();
    let daemon = Daemon::start_with(dir.path(), &["--config", config.to_str().expect("it is text")]);
    // Its own limit, or the host's where it states none.
    for (name, timing) in [("own", json!({ "timeout_ms": 1_000 })), ("host", json!({}))] {
        let file = effects.path().join(name);
        let argv = json!(["sh", "-c", "echo $$ > $0; exec sleep 1000", file]);
        let body = json!({ "input": { "argv": argv }, "timing": timing });
        let over = send(dir.path(), &daemon, "POST", "/v1/capabilities/command/invoke", &body);
        assert_eq!((&over["status"], &over["error"]["code"]), (&json!("failed"), &json!("action-timeout")));
        let process = std::fs::read_to_string(&file).expect("it had begun");
        let process = Path::new("/proc").join(process.trim());
        within("the command has ended", || (!process.exists()).then_some(()));
        until(dir.path(), over["outcome/id"].as_str().unwrap(), "cancelled");
    }
}

/// A command that has begun, followed in the foreground: whoever follows it, and its id.
fn followed(dir: &Path, arguments: &[&str]) -> (Child, String) {
    let command = ["--", "sh", "-c", "echo up; exec sleep 1000"];
    let mut run = following(dir, &[&["run"], arguments, &command].concat());
    let mut printed = BufReader::new(run.stdout.take().expect("it is ours")).lines();
    assert_eq!(printed.next().expect("it prints").expect("it is text"), "up");
    let mut first = String::new();
    // Byte by byte: nothing of what follows may stay in a buffer.
    let told = run.stderr.as_mut().expect("it is ours");
    while !first.ends_with('\n') {
        let mut byte = [0];
        told.read_exact(&mut byte).expect("it tells its id");
        first.push(char::from(byte[0]));
    }
    let id = first.trim().strip_prefix("longhaul: job ").expect("its id comes first").to_owned();
    (run, id)
}

/// What Ctrl-C sends.
fn interrupt(run: &Child) {
    let pid = i32::try_from(run.id()).ok().and_then(Pid::from_raw).expect("it is a process");
    kill_process(pid, Signal::INT).expect("it lives");
}

#[test]
fn interrupted_run_leaves_its_job_running_and_is_130() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    let (run, id) = followed(dir.path(), &[]);
    interrupt(&run);
    let left = run.wait_with_output().unwrap();
    expect(130, &left);
    let told = format!(
        "longhaul: job {id} goes on; `longhaul jobs logs {id} --follow` shows its output, \
         `longhaul jobs cancel {id}` stops it\n"
    );
    assert!(stderr(&left).ends_with(&told), "{}", stderr(&left));
    let status = until(dir.path(), &id, "running");
    assert_eq!(status["cancel_requested"], json!(false), "{status}");
    // The verb that it names stops it.
    expect(0, &longhaul(dir.path(), &["jobs", "cancel", &id]));
    ended(dir.path(), &id, "cancelled");
}

#[test]
fn interrupt_cancels_the_job_of_a_run_that_asks_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    let (mut run, id) = followed(dir.path(), &["--cancel-on-interrupt"]);
    interrupt(&run);
    within("the command was cancelled", || run.try_wait().unwrap());
    let over = run.wait_with_output().unwrap();
    expect(1, &over);
    let told = format!("longhaul: asking to stop job {id}; Ctrl-C again leaves it\n");
    assert!(stderr(&over).contains(&told), "{}", stderr(&over));
    assert!(!stderr(&over).contains("goes on"), "{}", stderr(&over));
    ended(dir.path(), &id, "cancelled");
}
