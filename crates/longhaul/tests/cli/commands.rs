//! `longhaul run`: any command as a durable job.

use crate::given::{Daemon, ended, expect, longhaul, stderr, until};

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
    assert!(stderr(&run).contains("exited with 7: no paper"), "{}", stderr(&run));
    let list = crate::given::json(dir.path(), &["jobs", "list"]);
    assert_eq!(list["work"][0]["title"], "fails");
    assert_eq!(list["work"][0]["state"], "failed");
    assert_eq!(list["work"][0]["runner"]["attempt_count"], 1);
}

#[test]
fn command_that_is_not_there_is_1() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    expect(1, &longhaul(dir.path(), &["run", "--", "no-such-program"]));
}

#[test]
fn command_that_takes_too_long_is_ended_and_1() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    let run = longhaul(dir.path(), &["run", "--timeout", "1s", "--", "sleep", "1000"]);
    expect(1, &run);
    assert!(stderr(&run).contains("time limit"), "{}", stderr(&run));
}

#[test]
fn detached_command_goes_on_by_itself_and_tells_its_progress() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    let script = format!(
        "{} progress --phase half '{{\"done\":1,\"of\":2}}'; sleep 3; echo done",
        env!("CARGO_BIN_EXE_longhaul")
    );
    let run = longhaul(dir.path(), &["run", "--detach", "--", "sh", "-c", &script]);
    let id = expect(0, &run).trim().to_owned();
    let status = until(dir.path(), &id, "running");
    assert_eq!(
        (&status["progress"]["of"], &status["phase"]),
        (&serde_json::json!(2), &serde_json::json!("half"))
    );
    assert_eq!(ended(dir.path(), &id, "completed")["data"]["stdout_tail"], "done\n");
}
