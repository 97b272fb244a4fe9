//! No descendant outlives its attempt, whatever it does to hide.

use std::time::Duration;

use domain::job::JobStateName;
use serde_json::json;

use crate::given::{Given, PATIENCE};
use crate::lifeline::{Lifeline, fifo};

/// Starts a grandchild in a session of its own that ignores TERM, says so, and holds every descriptor that it got.
const HIDDEN: &str = r#"(setsid sh -c 'trap "" TERM; echo hidden >&9; while :; do sleep 1000; done' &)"#;

fn hasty() -> Given {
    Given::with(|settings| settings.grace = Duration::from_millis(100))
}

// conforms: O9
#[tokio::test]
async fn grandchild_that_keeps_the_output_open_ends_with_the_command_that_left_it() {
    let given = Given::new();
    let mut lifeline = Lifeline::in_dir(given.dir());
    fifo(given.dir(), "ready");
    let hidden = r#"(setsid sh -c 'trap "" TERM; echo > ready; while :; do sleep 1000; done' &)"#;
    let ended = given.run_script(&lifeline.script(&format!("{hidden}; read ready < ready; echo 7"))).await;
    assert_eq!(ended.assert_completed().data, json!(7));
    lifeline.ended().await;
}

#[tokio::test]
async fn cancelled_command_that_ignores_term_is_killed_with_all_that_it_started() {
    let given = hasty();
    let mut lifeline = Lifeline::in_dir(given.dir());
    let script = format!(r#"trap "" TERM; {HIDDEN}; while :; do sleep 1000; done"#);
    let id = given.start_script(&lifeline.script(&script)).await;
    assert_eq!(lifeline.said().await, "hidden");
    given.cancel(&id).await;
    let ended = given.ended(&id).await;
    assert_eq!(ended.job.state.name(), JobStateName::Cancelled);
    lifeline.ended().await;
}

#[tokio::test]
async fn term_reaches_the_whole_tree_and_leaves_it_time_to_end_well() {
    let given = Given::new();
    let mut lifeline = Lifeline::in_dir(given.dir());
    let polite =
        |name| format!("trap \"echo {name} >&9; exit 0\" TERM; echo up >&9; while :; do sleep 0.01; done");
    let [left, inner, top] = ["left", "inner", "top"].map(polite);
    let script = format!("(setsid sh -c '{left}' &)\nsetsid sh -c '{inner}' &\n{top}");
    let id = given.start_script(&lifeline.script(&script)).await;
    for _ in 0..3 {
        assert_eq!(lifeline.said().await, "up");
    }
    given.cancel(&id).await;
    let mut said = lifeline.ended().await;
    said.sort();
    assert_eq!(said, ["inner", "left", "top"]);
    assert_eq!(given.ended(&id).await.job.state.name(), JobStateName::Cancelled);
}

#[tokio::test]
async fn command_that_stands_still_is_woken_to_end_well() {
    let given = Given::new();
    let mut lifeline = Lifeline::in_dir(given.dir());
    let script = "trap 'echo bye >&9; exit 0' TERM; echo $$ >&9; kill -STOP $$; sleep 1000";
    let id = given.start_script(&lifeline.script(script)).await;
    let stat = format!("/proc/{}/stat", lifeline.said().await);
    let stopped = async {
        while !std::fs::read_to_string(&stat).unwrap().contains(") T ") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, stopped).await.expect("it stops itself");
    given.cancel(&id).await;
    assert_eq!(lifeline.ended().await, ["bye"]);
    assert_eq!(given.ended(&id).await.job.state.name(), JobStateName::Cancelled);
}

#[tokio::test]
async fn grandchild_without_any_mark_of_ours_ends_too() {
    let given = Given::new();
    let mut lifeline = Lifeline::in_dir(given.dir());
    fifo(given.dir(), "ready");
    let hidden = r#"(env -i PATH="$PATH" setsid setsid sh -c 'trap "" TERM; echo > ready; sleep 1000' &)"#;
    given.run_script(&lifeline.script(&format!("{hidden}; read ready < ready"))).await.assert_completed();
    lifeline.ended().await;
}

/// Each one forks, leaves its session and is gone before anybody can look at it.
#[tokio::test]
async fn chain_of_processes_that_never_stand_still_is_caught() {
    let given = hasty();
    let mut lifeline = Lifeline::in_dir(given.dir());
    let perl = r#"$SIG{TERM} = "IGNORE"; while (1) { $n++; my $p = fork; exit 0 if $p; POSIX::setsid(); system("echo up >&9") if $n == 20; }"#;
    let script = lifeline.script(&format!("perl -MPOSIX -e '{perl}'; sleep 1000"));
    let id = given.start_script(&script).await;
    assert_eq!(lifeline.said().await, "up");
    given.cancel(&id).await;
    lifeline.ended().await;
    assert_eq!(given.ended(&id).await.job.state.name(), JobStateName::Cancelled);
}

/// Three hundred that ignore TERM, each of which forks a new one whenever it loses one.
#[tokio::test]
async fn crowd_that_replaces_its_dead_is_ended() {
    let given = hasty();
    let mut lifeline = Lifeline::in_dir(given.dir());
    let perl = r#"$SIG{TERM} = "IGNORE"; for (1..15) { if (!fork) { for (1..20) { if (!fork) { sleep 1000 while 1 } }
        system("echo up >&9"); while (1) { wait; if (!fork) { sleep 1000 while 1 } } } } sleep 1000 while 1"#;
    let id = given.start_script(&lifeline.script(&format!("exec perl -e '{perl}'"))).await;
    for _ in 0..15 {
        assert_eq!(lifeline.said().await, "up");
    }
    given.cancel(&id).await;
    lifeline.ended().await;
    assert_eq!(given.ended(&id).await.job.state.name(), JobStateName::Cancelled);
}

// conforms: O57
#[tokio::test]
async fn executors_time_limit_ends_the_tree_and_fails_the_attempt() {
    let given = Given::with(|settings| {
        settings.grace = Duration::from_millis(100);
        settings.time_limit = Some(Duration::from_secs(3));
    });
    // Its supervisor is kept for the next one: to start one is then no part of the time that is limited.
    given.run_script("true").await;
    let mut lifeline = Lifeline::in_dir(given.dir());
    let id = given.start_script(&lifeline.script(&format!("{HIDDEN}; echo late >&2; sleep 1000"))).await;
    let ended = given.ended(&id).await;
    ended.assert_failed("timed_out");
    assert!(ended.message().ends_with("time limit: late"), "{}", ended.message());
    lifeline.ended().await;
}

#[tokio::test]
async fn jobs_own_time_limit_ends_the_tree_too() {
    let given = hasty();
    let mut lifeline = Lifeline::in_dir(given.dir());
    let id =
        given.start_with_timeout(&lifeline.script(&format!("echo working; {HIDDEN}; sleep 1000")), 30).await;
    assert_eq!(lifeline.said().await, "hidden");
    given.clock.advance_seconds(30);
    let ended = given.ended(&id).await;
    ended.assert_failed("timed_out");
    assert_eq!(ended.artifact("stdout")["bytes"], 8);
    assert_eq!(ended.error["details"]["stdout_tail"], "working\n");
    lifeline.ended().await;
}

#[tokio::test]
async fn stranger_who_holds_the_pipes_does_not_keep_the_attempt() {
    let given = Given::new();
    let mut lifeline = Lifeline::in_dir(given.dir());
    let gate = fifo(given.dir(), "gate");
    let id = given.start_script(&lifeline.script("echo said; echo $$ >&9; read go < gate")).await;
    let command = lifeline.said().await;
    let hold = |descriptor: u8| {
        let mut options = std::fs::OpenOptions::new();
        options.read(descriptor == 0).write(descriptor != 0).open(format!("/proc/{command}/fd/{descriptor}"))
    };
    let held = [0, 1, 2, 3].map(|descriptor| hold(descriptor).expect("it is a pipe of this user"));
    std::fs::write(gate, "go\n").unwrap();
    let ended = given.ended(&id).await;
    assert_eq!(ended.assert_completed().data["stdout_tail"], "said\n");
    drop(held);
}
