//! The drill on the real binary: green where nothing is wrong, red for every lie, void where too little happened; and nobody is left behind.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::given::{binary, expect, stdout, within};

/// What is over at once, so that the calm is short.
const QUICK: &str = "noop,command,service";

fn drill(dir: &Path, arguments: &[&str]) -> Output {
    let fixed = ["drill", "--report", "report", "--dir"];
    binary(&fixed).arg(dir).args(arguments).current_dir(dir).output().expect("the binary runs")
}

fn report(dir: &Path) -> Value {
    let text = std::fs::read_to_string(dir.join("report.json")).expect("it is there");
    serde_json::from_str(&text).expect("it is JSON")
}

/// The scratch directories that are left.
fn left(dir: &Path) -> usize {
    let entries = std::fs::read_dir(dir).expect("it is there").flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("longhaul-drill-")).count()
}

#[test]
fn daemon_on_a_file_that_is_killed_again_and_again_loses_and_doubles_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let told = expect(0, &drill(dir.path(), &["--seconds", "12", "--seed", "1"]));
    assert!(told.contains("green: nothing was lost"), "{told}");
    let report = report(dir.path());
    assert_eq!((&report["verdict"], &report["seed"]), (&"green".into(), &1.into()));
    assert!(report["figures"]["kills"].as_f64() >= Some(3.0), "{report}");
    assert!(report["figures"]["backups restored"].as_f64() >= Some(1.0), "{report}");
    assert_eq!(report["findings"], serde_json::json!([]));
    let page = std::fs::read_to_string(dir.path().join("report.html")).unwrap();
    assert!(page.matches("<svg").count() == 4 && !page.contains("<script"), "four plots and no script");
    assert_eq!(left(dir.path()), 0, "the scratch directory is taken away");
}

#[test]
fn two_nodes_on_a_database_that_are_killed_again_and_again_lose_and_double_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let server = test_postgres::server();
    let arguments = ["--seconds", "15", "--seed", "2", "--nodes", "2", "--database", &server];
    let told = expect(0, &drill(dir.path(), &arguments));
    assert!(told.contains("green: nothing was lost") && told.contains("sessions ended"), "{told}");
    let report = report(dir.path());
    assert_eq!(report["store"], "PostgreSQL");
    assert!(report["figures"]["backups restored"].as_f64() >= Some(1.0), "{report}");
    assert_eq!(left(dir.path()), 0);
}

/// A run with this lie in it is red, by this rule, and everything is kept.
#[track_caller]
fn check_red(plant: &str, rule: &str) {
    let dir = tempfile::tempdir().expect("there is room");
    let arguments = ["--seconds", "8", "--seed", "3", "--load", QUICK, "--plant", plant];
    let told = expect(1, &drill(dir.path(), &arguments));
    assert!(told.contains("red: ") && told.contains("--seed 3"), "{told}");
    let report = report(dir.path());
    let found = report["findings"].as_array().expect("it is a list");
    let found = found.iter().any(|one| one["rule"] == rule);
    assert!(found, "{plant}: {told}");
    assert_eq!(left(dir.path()), 1, "the scratch directory is kept");
}

#[test]
fn job_that_is_lost_is_red() {
    check_red("lose-job", "every acknowledged key is there");
}

#[test]
fn result_that_changes_is_red() {
    check_red("change-result", "views equal replay");
}

#[test]
fn view_that_differs_is_red() {
    check_red("change-view", "views equal replay");
}

#[test]
fn second_job_under_a_key_is_red() {
    check_red("double-job", "at most one job per key");
}

#[test]
fn another_id_in_an_answer_is_red() {
    check_red("other-answer", "one key has one answer");
}

#[test]
fn accepted_start_too_many_is_red() {
    check_red("second-start", "at most one accepted start per operation");
}

#[test]
fn job_that_never_ends_is_red_and_says_why() {
    check_red("never-ends", "nothing is open after calm");
}

#[test]
fn backup_that_lacks_what_was_acknowledged_last_is_red() {
    check_red("stale-backup", "a backup holds all that was acknowledged before it");
}

#[test]
fn drill_in_which_too_little_happens_is_void_and_not_green() {
    let dir = tempfile::tempdir().unwrap();
    let told = expect(2, &drill(dir.path(), &["--seconds", "1", "--seed", "4", "--load", "noop"]));
    assert!(told.contains("void: ") && told.contains("too few: "), "{told}");
    assert_eq!(report(dir.path())["verdict"], "void");
}

#[test]
fn more_nodes_than_a_file_can_have_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refused = drill(dir.path(), &["--nodes", "2"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stdout(&refused));
}

#[test]
fn interrupted_drill_says_what_it_has_and_a_killed_one_leaves_nobody_behind() {
    for signal in [Signal::INT, Signal::KILL] {
        let dir = tempfile::tempdir().unwrap();
        let mut child = binary(&["drill", "--seconds", "300", "--load", "noop,slow", "--dir"])
            .arg(dir.path())
            .current_dir(dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mine = || children_in(dir.path());
        within("daemon and service are there", || (mine() >= 2).then_some(()));
        std::thread::sleep(Duration::from_secs(1));
        kill_process(Pid::from_child(&child), signal).unwrap();
        if signal == Signal::INT {
            let output = child.wait_with_output().unwrap();
            assert!(expect(2, &output).contains("accepted"));
        } else {
            child.wait().unwrap();
        }
        within("nobody is left", || (mine() == 0).then_some(()));
    }
}

/// Processes that name this directory.
fn children_in(dir: &Path) -> usize {
    let name = format!("{}/longhaul-drill-", dir.display());
    let processes = std::fs::read_dir("/proc").expect("it is there").flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(&name)).count()
}
