//! Somebody is killed with -9: the daemon, the supervisor, or both.

use std::env;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use executors::process::sweep_leftovers;
use rustix::process::{Pid, Signal, kill_process};

use crate::given::{Given, data_dir};
use crate::lifeline::Lifeline;

/// Tells the test binary that it is the daemon to be killed, and in which directory.
const ROLE: &str = "LONGHAUL_TEST_DAEMON";
/// Two that lost their parent, of which one left the session, and the command itself; all ignore TERM.
const TREE: &str = r#"trap "" TERM
    (setsid sh -c 'echo up >&9; while :; do sleep 1000; done' &)
    (sh -c 'echo up >&9; while :; do sleep 1000; done' &)
    echo $PPID >&9
    while :; do sleep 1000; done"#;

fn short_grace(dir: &Path) -> Given {
    Given::at(dir, |settings| settings.grace = Duration::from_millis(100))
}

/// Runs the tree of processes under a daemon that is a child of this test.
struct KilledDaemon {
    child: Child,
    lifeline: Lifeline,
    supervisor: Pid,
}

/// In the child: a daemon with one job that never ends.
async fn be_the_daemon(dir: PathBuf) {
    let script = fs::read_to_string(dir.join("script")).expect("it was written");
    let given = short_grace(&dir);
    given.start_script(&script).await;
    std::future::pending::<()>().await;
}

impl KilledDaemon {
    async fn start(test: &str, dir: &Path) -> Self {
        let mut lifeline = Lifeline::in_dir(dir);
        fs::write(dir.join("script"), lifeline.script(TREE)).expect("the directory is writable");
        let child = Command::new(env::current_exe().expect("a test has a binary"))
            .args([test, "--exact", "--nocapture"])
            .env(ROLE, dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("it runs");
        let supervisor = tree_is_up(&mut lifeline, 3).await;
        Self { child, lifeline, supervisor }
    }

    fn kill(&mut self) {
        self.child.kill().expect("it lives");
        self.child.wait().expect("it is ours");
    }
}

/// Waits for all of them, and says who supervises them.
async fn tree_is_up(lifeline: &mut Lifeline, count: usize) -> Pid {
    let mut supervisor = None;
    for _ in 0..count {
        supervisor = supervisor.or(lifeline.said().await.parse().ok());
    }
    supervisor.and_then(Pid::from_raw).expect("the command told its parent")
}

#[tokio::test]
async fn killed_daemon_leaves_nothing_running() {
    if let Some(dir) = env::var_os(ROLE) {
        return be_the_daemon(dir.into()).await;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut daemon = KilledDaemon::start("deaths::killed_daemon_leaves_nothing_running", dir.path()).await;
    daemon.kill();
    daemon.lifeline.ended().await;
}

#[tokio::test]
async fn killed_supervisor_leaves_nothing_running_and_the_attempt_may_be_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let given = short_grace(dir.path());
    let mut lifeline = Lifeline::in_dir(given.dir());
    let id = given.start_script(&lifeline.script(TREE)).await;
    let supervisor = tree_is_up(&mut lifeline, 3).await;
    kill_process(supervisor, Signal::KILL).unwrap();
    given.ended(&id).await.assert_failed("supervisor_lost");
    lifeline.ended().await;
}

/// As when the system stops everything at once.
#[tokio::test]
async fn supervisor_that_is_told_to_terminate_ends_its_tree_first() {
    let dir = tempfile::tempdir().unwrap();
    let given = short_grace(dir.path());
    let mut lifeline = Lifeline::in_dir(given.dir());
    let id = given.start_script(&lifeline.script(TREE)).await;
    let supervisor = tree_is_up(&mut lifeline, 3).await;
    kill_process(supervisor, Signal::TERM).unwrap();
    given.ended(&id).await.assert_failed("killed_by_signal");
    lifeline.ended().await;
}

/// Without our marks it is found because it did not leave the supervisor's session.
#[tokio::test]
async fn killed_supervisor_leaves_no_process_without_marks_either() {
    let dir = tempfile::tempdir().unwrap();
    let given = short_grace(dir.path());
    let mut lifeline = Lifeline::in_dir(given.dir());
    let unmarked = r#"(env -i PATH="$PATH" sh -c 'echo up >&9; while :; do sleep 1000; done' &)"#;
    let id = given.start_script(&lifeline.script(&format!("{unmarked}\n{TREE}"))).await;
    let supervisor = tree_is_up(&mut lifeline, 4).await;
    kill_process(supervisor, Signal::KILL).unwrap();
    given.ended(&id).await.assert_failed("supervisor_lost");
    lifeline.ended().await;
}

#[tokio::test]
async fn what_nobody_supervises_any_more_is_found_at_the_next_start_and_nothing_else() {
    const THIS: &str = "deaths::what_nobody_supervises_any_more_is_found_at_the_next_start_and_nothing_else";
    if let Some(dir) = env::var_os(ROLE) {
        return be_the_daemon(dir.into()).await;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut stranger = Command::new("sleep")
        .arg("1000")
        .env("LONGHAUL_DAEMON_ID", "0123456789abcdef0123456789abcdef")
        .env("LONGHAUL_ATTEMPT_ID", "attempt-of-another-daemon")
        .process_group(0)
        .spawn()
        .unwrap();
    let mut daemon = KilledDaemon::start(THIS, dir.path()).await;
    // It cannot end its tree when the daemon is killed, because it stands still.
    kill_process(daemon.supervisor, Signal::STOP).unwrap();
    daemon.kill();
    kill_process(daemon.supervisor, Signal::KILL).unwrap();
    assert!(daemon.lifeline.is_held(), "VOID: nothing was left to be found");
    assert!(sweep_leftovers(&data_dir(dir.path())) >= 3);
    daemon.lifeline.ended().await;
    assert_eq!(sweep_leftovers(&data_dir(dir.path())), 0);
    assert_eq!(stranger.try_wait().unwrap(), None, "another daemon's process was ended");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}
