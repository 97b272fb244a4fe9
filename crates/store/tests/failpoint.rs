//! A process ends itself where its environment says, in builds with the feature `failpoints`.
#![cfg(feature = "failpoints")]

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

const CHILD: &str = "FAILPOINT_TEST_CHILD";
const SIGABRT: i32 = 6;
const ROUNDS: usize = 5;

#[test]
fn process_ends_itself_at_the_point_that_was_chosen_and_at_the_time_that_was_chosen() {
    if std::env::var_os(CHILD).is_some() {
        for _ in 0..ROUNDS {
            store::failpoint("commit.before");
            println!("written");
            store::failpoint("commit.after");
        }
        return;
    }
    assert_eq!(ends("commit.before=3"), (Some(SIGABRT), 2));
    assert_eq!(ends("commit.after=3"), (Some(SIGABRT), 3));
    assert_eq!(ends("commit.after=6"), (None, ROUNDS));
    assert_eq!(ends("answer.before=1"), (None, ROUNDS));
    assert_eq!(ends("nonsense"), (None, ROUNDS));
}

/// The signal that ended a process for which this was chosen, and how much it had written by then.
fn ends(chosen: &str) -> (Option<i32>, usize) {
    let this = "process_ends_itself_at_the_point_that_was_chosen_and_at_the_time_that_was_chosen";
    let output = Command::new(std::env::current_exe().expect("it has a path"))
        .args(["--exact", this, "--nocapture"])
        .env(CHILD, "1")
        .env("LONGHAUL_FAILPOINT", chosen)
        .output()
        .expect("it runs");
    let written =
        String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.contains("written")).count();
    (output.status.signal(), written)
}
