//! The drill on the real binary: green where nothing is wrong, red for every lie, void where too little happened; and nobody is left behind.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::given::{binary, expect, stderr, stdout, within};
use crate::proof::{MemoryDisk, check_conditions, refused_places};

/// What is over at once, so that the calm is short.
const QUICK: &str = "noop,command,service";
/// So many rounds, however slow they are: the fourth has a backup.
const ROUNDS: [&str; 2] = ["--at-least-rounds", "6"];

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
    let arguments = ["--seconds", "12", "--seed", "1"];
    let told = expect(0, &drill(dir.path(), &[&arguments[..], &ROUNDS].concat()));
    assert!(told.contains("green: nothing was lost"), "{told}");
    let report = report(dir.path());
    assert_eq!((&report["verdict"], &report["seed"]), (&"green".into(), &1.into()));
    assert!(report["figures"]["kills"].as_f64() >= Some(3.0), "{report}");
    assert!(report["figures"]["backups restored"].as_f64() >= Some(1.0), "{report}");
    assert_eq!(report["findings"], serde_json::json!([]));
    check_conditions(&report);
    let again = format!("longhaul drill --seconds 12 --seed 1 --nodes 1 --dir {}", dir.path().display());
    assert_eq!(report["again"], again);
    let page = std::fs::read_to_string(dir.path().join("report.html")).unwrap();
    assert!(page.matches("<svg").count() == 4 && !page.contains("<script"), "four plots and no script");
    assert_eq!(left(dir.path()), 0, "the scratch directory is taken away");
}

#[test]
fn two_nodes_on_a_database_that_are_killed_again_and_again_lose_and_double_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let server = test_postgres::server();
    let arguments = ["--seconds", "15", "--seed", "2", "--nodes", "2", "--database", &server];
    let told = expect(0, &drill(dir.path(), &[&arguments[..], &ROUNDS].concat()));
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
    assert!(
        told.contains("red: ") && told.contains("\nagain with: longhaul drill --seconds 8 --seed 3 "),
        "{told}"
    );
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
fn damaged_log_is_red() {
    check_red("damage-log", "a killed daemon starts again");
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
    let told = expect(5, &drill(dir.path(), &["--seconds", "1", "--seed", "4", "--load", "ask"]));
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
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::KILL] {
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
        if signal == Signal::KILL {
            child.wait().unwrap();
        } else {
            let told = expect(5, &child.wait_with_output().unwrap());
            assert!(told.contains("accepted") && told.contains("\nvoid: interrupted after "), "{told}");
            assert!(told.contains(" of 300 s\n") && !told.contains("too little"), "{told}");
            assert_eq!(left(dir.path()), 0, "{signal:?}");
        }
        within("nobody is left", || (mine() == 0).then_some(()));
    }
}

#[test]
fn terminated_drill_on_a_database_takes_its_schema_away() {
    let server = test_postgres::server();
    for signal in [Signal::TERM, Signal::HUP] {
        let dir = tempfile::tempdir().unwrap();
        let child =
            binary(&["drill", "--seconds", "300", "--load", "noop", "--nodes", "1", "--database", &server])
                .arg("--dir")
                .arg(dir.path())
                .current_dir(dir.path())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
        let pid = Pid::from_child(&child);
        within("daemon and service are there", || (children_in(dir.path()) >= 2).then_some(()));
        kill_process(pid, signal).unwrap();
        expect(5, &child.wait_with_output().unwrap());
        let schemas: i64 = tokio::runtime::Runtime::new().unwrap().block_on(async {
            let client = test_postgres::client(&server).await;
            let mine = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE $1";
            let name = format!("longhaul_drill_{}_%", pid.as_raw_nonzero());
            client.query_one(mine, &[&name]).await.unwrap().get(0)
        });
        assert_eq!((schemas, left(dir.path())), (0, 0), "{signal:?}");
    }
}

/// `nohup` ignores the signal for whatever it starts.
#[test]
fn drill_under_nohup_goes_on_when_its_terminal_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = ["drill", "--seconds", "300", "--load", "noop", "--dir"];
    let program = binary(&arguments).get_program().to_owned();
    let mut child = std::process::Command::new("nohup")
        .arg(program)
        .args(arguments)
        .arg(dir.path())
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    within("daemon and service are there", || (children_in(dir.path()) >= 2).then_some(()));
    kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    assert!(child.try_wait().unwrap().is_none(), "it goes on");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(5));
}

#[test]
fn place_that_cannot_be_used_is_told_before_anything_is_broken() {
    let dir = tempfile::tempdir().unwrap();
    refused_places("drill", dir.path());
}

#[test]
fn drill_that_cannot_be_run_is_neither_red_nor_void() {
    let dir = tempfile::tempdir().unwrap();
    let nobody = drill(dir.path(), &["--seconds", "1", "--database", "postgres://127.0.0.1:1/nothing"]);
    assert_eq!(nobody.status.code(), Some(6), "{}", stdout(&nobody));
    assert!(stderr(&nobody).starts_with("error[database_unreachable]: "), "{}", stderr(&nobody));
    assert!(!dir.path().join("report.json").exists());
    assert_eq!(left(dir.path()), 0);
}

#[test]
fn disk_in_memory_is_told_at_once_and_in_the_report() {
    let disk = MemoryDisk::mount("size=256m");
    let dir = tempfile::tempdir().unwrap();
    let done = binary(&["drill", "--seconds", "1", "--load", "noop", "--report", "report", "--dir"])
        .arg(disk.path())
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert!(stderr(&done).contains("is in memory, where nothing is durable"), "{}", stderr(&done));
    let noted = report(dir.path())["conditions"]["notes"][0].as_str().map(str::to_owned);
    assert!(noted.is_some_and(|note| note.contains("is in memory")));
    assert!(std::fs::read_to_string(dir.path().join("report.html")).unwrap().contains("is in memory"));
}

/// Processes that name this directory.
fn children_in(dir: &Path) -> usize {
    let name = format!("{}/longhaul-drill-", dir.display());
    let processes = std::fs::read_dir("/proc").expect("it is there").flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(&name)).count()
}
