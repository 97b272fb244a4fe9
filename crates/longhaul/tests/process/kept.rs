//! A supervisor has one command after the other, and nothing of one comes to the next.

use domain::job::JobStateName;
use executors::process::Limits;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::given::{Given, PATIENCE};
use crate::lifeline::Lifeline;

/// The supervisor of a script that does nothing else.
async fn supervisor(given: &Given) -> Pid {
    let told = given.run_script("echo $PPID").await;
    let id = told.assert_completed().data.as_i64().and_then(|id| i32::try_from(id).ok());
    id.and_then(Pid::from_raw).expect("it is a process")
}

#[tokio::test]
async fn supervisor_whose_command_is_over_has_the_next_one() {
    let given = Given::new();
    let first = supervisor(&given).await;
    given.run_script("exit 3").await.assert_failed("exit_nonzero");
    given.run(&json!({ "argv": ["/no/such/program"] })).await.assert_failed("program_not_found");
    assert_eq!(supervisor(&given).await, first);
}

#[tokio::test]
async fn two_commands_at_once_have_two_supervisors() {
    let given = Given::new();
    let mut lifeline = Lifeline::in_dir(given.dir());
    let id = given.start_script(&lifeline.script("echo $PPID >&9; while :; do sleep 1000; done")).await;
    let first = lifeline.said().await;
    assert_ne!(supervisor(&given).await.to_string(), first);
    given.cancel(&id).await;
    lifeline.ended().await;
}

#[tokio::test]
async fn supervisor_that_was_told_to_stop_has_no_other_command() {
    let given = Given::new();
    let mut lifeline = Lifeline::in_dir(given.dir());
    let id = given.start_script(&lifeline.script("echo $PPID >&9; while :; do sleep 0.01; done")).await;
    let first = lifeline.said().await;
    given.cancel(&id).await;
    assert_eq!(given.ended(&id).await.job.state.name(), JobStateName::Cancelled);
    assert_ne!(supervisor(&given).await.to_string(), first);
}

#[tokio::test]
async fn supervisor_with_limits_of_its_own_has_no_other_command() {
    let given =
        Given::with(|settings| settings.limits = Limits { cpu_seconds: Some(77), ..Limits::default() });
    assert_ne!(supervisor(&given).await, supervisor(&given).await);
}

#[tokio::test]
async fn supervisor_that_was_killed_while_it_waited_is_not_missed() {
    let given = Given::new();
    let first = supervisor(&given).await;
    kill_process(first, Signal::KILL).unwrap();
    is_gone(first).await;
    assert_ne!(supervisor(&given).await, first);
}

#[tokio::test]
async fn supervisor_that_waits_ends_when_it_is_told_to_and_when_its_daemon_is_gone() {
    let given = Given::new();
    let told = supervisor(&given).await;
    kill_process(told, Signal::TERM).unwrap();
    is_gone(told).await;
    let left = supervisor(&given).await;
    drop(given);
    is_gone(left).await;
}

/// Over, whether somebody has asked for its end or not.
async fn is_gone(process: Pid) {
    let stat = format!("/proc/{process}/stat");
    let wait = async {
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("it ends");
}

/// What a command sees of the one before it must be nothing: the same variables, descriptors and directory as if it were the first.
#[tokio::test]
async fn nothing_of_a_command_comes_to_the_next_under_its_supervisor() {
    let given = Given::new();
    let show = "env | cut -d= -f1 | grep -v '^_$' | sort; ls /proc/self/fd; pwd; umask; echo $LONGHAUL_PROGRESS_FD; echo $PPID";
    let first = given.run_script(show).await.assert_completed().data["stdout_tail"].clone();
    std::fs::create_dir(given.dir().join("below")).unwrap();
    let other = json!({
        "argv": ["sh", "-c", "exec 7>out; umask 000; trap '' HUP; cd /; sh -c 'kill -STOP $$' & exit 0"],
        "cwd": "below",
        "env": { "SECRET": "hidden" },
    });
    given.run(&other).await.assert_completed();
    let again = given.run_script(show).await.assert_completed().data["stdout_tail"].clone();
    assert_eq!(again, first);
    assert!(first.as_str().is_some_and(|text| !text.contains("SECRET")), "{first}");
}

#[tokio::test]
async fn words_longer_than_a_socket_holds_reach_the_command() {
    let given = Given::new();
    let word = "x".repeat(120_000);
    let mut argv = vec!["sh", "-c", "echo $# ${#5}", "sh"];
    argv.extend([word.as_str(); 6]);
    let ended = given.run(&json!({ "argv": argv })).await;
    assert_eq!(ended.assert_completed().data["stdout_tail"], "6 120000\n");
}

#[tokio::test]
async fn words_too_long_for_the_system_are_a_mistake_of_the_job() {
    let given = Given::new();
    given.run(&json!({ "argv": ["true", "x".repeat(200_000)] })).await.assert_failed("invalid_input");
}
