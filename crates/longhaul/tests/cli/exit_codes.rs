//! Exit codes and last words that scripts may rely on.

use crate::given::{Daemon, create, ended, expect, longhaul, show, stderr, stdout};

#[test]
fn daemon_that_cannot_be_reached_is_3() {
    let dir = tempfile::tempdir().unwrap();
    let nowhere = longhaul(dir.path(), &["jobs", "list"]);
    expect(3, &nowhere);
    assert!(stderr(&nowhere).contains("start one with `longhaul serve"), "{}", stderr(&nowhere));
    Daemon::start(dir.path()).kill();
    let killed = longhaul(dir.path(), &["jobs", "list"]);
    expect(3, &killed);
    assert!(stderr(&killed).contains("may have been killed"), "{}", stderr(&killed));
}

#[test]
fn job_that_is_not_there_is_4_for_every_verb() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    for arguments in [
        &["jobs", "show"][..],
        &["jobs", "run"],
        &["jobs", "retry"],
        &["jobs", "cancel"],
        &["jobs", "result"],
        &["jobs", "wait"],
        &["jobs", "watch"],
        &["jobs", "why"],
        &["jobs", "facts"],
        &["jobs", "logs"],
        &["jobs", "update", "--state", "running"],
        &["jobs", "answer", "--text", "yes"],
        &["purge"],
    ] {
        for id in ["work-00000000000000000000000000000000", "no/such job?"] {
            let output = longhaul(dir.path(), &[arguments, &[id]].concat());
            expect(4, &output);
            assert!(stderr(&output).contains(&format!("No job: {id}")), "{arguments:?}: {}", stderr(&output));
        }
    }
}

#[test]
fn wrong_usage_is_2_and_asks_nobody() {
    let dir = tempfile::tempdir().unwrap();
    for arguments in [
        &["jobs", "create"][..],
        &["jobs", "create", "t", "--input", "{not json"],
        &["jobs", "create", "t", "--due-at", "soon"],
        &["jobs", "create", "t", "--due-at", "1h", "--cron", "* * * * *"],
        &["jobs", "create", "t", "--prompt-file", "/no/such/file"],
        &["jobs", "update", "work-1"],
        &["jobs", "list", "--url", "https://example.org"],
        &["nonsense"],
    ] {
        expect(2, &longhaul(dir.path(), arguments));
    }
}

#[test]
fn wait_whose_time_is_over_is_124_and_the_job_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start_with(dir.path(), &["--no-dispatch"]);
    let id = create(dir.path(), &["queued", "--executor", "noop"]);
    let waited = longhaul(dir.path(), &["jobs", "wait", &id, "--timeout", "1s"]);
    expect(124, &waited);
    expect(0, &longhaul(dir.path(), &["jobs", "run", &id]));
    ended(dir.path(), &id, "completed");
}

#[test]
fn every_end_but_completed_is_1() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    let fails =
        create(dir.path(), &["fails", "--executor", "slow", "--input", r#"{"seconds":0,"fail":"no paper"}"#]);
    let error = ended(dir.path(), &fails, "failed")["error"].clone();
    assert_eq!(error["message"], "no paper");
    let expires = create(dir.path(), &["expires", "--executor", "slow", "--deadline-at", "1s"]);
    ended(dir.path(), &expires, "expired");
    let nobody = create(dir.path(), &["nobody"]);
    expect(1, &longhaul(dir.path(), &["jobs", "run", &nobody]));
    ended(dir.path(), &nobody, "unavailable");
}

#[test]
fn run_that_nothing_here_can_do_is_1_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start_with(dir.path(), &["--no-dispatch"]);
    let nobody = create(dir.path(), &["nobody"]);
    for arguments in [&["jobs", "run", &nobody][..], &["jobs", "run", &nobody, "--json"]] {
        let run = longhaul(dir.path(), arguments);
        let told = expect(1, &run);
        assert!(told.contains("unavailable"), "the status is told all the same: {told}");
        let why = stderr(&run);
        for part in ["Failed to run job: nothing here can do it: the job names no", "(missing_target)", "why"]
        {
            assert!(why.contains(part), "{part}: {why}");
        }
    }
    // What can be done is 0, also when it fails later.
    let fails =
        create(dir.path(), &["fails", "--executor", "slow", "--input", r#"{"seconds":0,"fail":"no paper"}"#]);
    expect(0, &longhaul(dir.path(), &["jobs", "run", &fails]));
    ended(dir.path(), &fails, "failed");
    expect(0, &longhaul(dir.path(), &["jobs", "retry", &fails]));
    expect(0, &longhaul(dir.path(), &["jobs", "retry", &nobody]));
    assert_eq!(show(dir.path(), &nobody)["state"], "queued", "it waits for whoever pulls next");
}

#[test]
fn refusal_is_1_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    let id = create(dir.path(), &["done", "--executor", "noop"]);
    ended(dir.path(), &id, "completed");
    let refused = longhaul(dir.path(), &["jobs", "run", &id]);
    expect(1, &refused);
    assert!(stderr(&refused).contains("Failed to run job: "), "{}", stderr(&refused));
    let refused = longhaul(dir.path(), &["jobs", "list", "--state", "sleeping"]);
    expect(1, &refused);
    assert!(stderr(&refused).contains("Failed to list job: state must be one of"), "{}", stderr(&refused));
    let not_ready = create(dir.path(), &["open"]);
    let output = longhaul(dir.path(), &["jobs", "result", &not_ready]);
    expect(1, &output);
    assert!(stdout(&output).starts_with("Not ready: job "), "{}", stdout(&output));
}
