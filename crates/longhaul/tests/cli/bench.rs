//! The bench on the real binary: tables, a report, bounds that count; and nobody and nothing is left behind. How fast it is, is not asked.

use std::path::Path;
use std::process::{Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::given::{binary, expect, stderr, stdout, within};
use crate::proof::{MemoryDisk, check_conditions, refused_places};

const LEVELS: [&str; 8] =
    ["store", "http", "executors", "operations", "pipelines", "growth", "idle", "start"];

/// So many of one kind of work leave something in a store, which grows by whole pages.
const LEAVE_SOMETHING: u64 = 10;

/// A run to its end, and the number of its process.
fn bench(dir: &Path, arguments: &[&str]) -> (Output, u32) {
    let fixed = ["bench", "--report", "report", "--dir"];
    let mut command = binary(&fixed);
    command.arg(dir).args(arguments).current_dir(dir);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    let id = child.id();
    (child.wait_with_output().expect("it is ours"), id)
}

fn report(dir: &Path) -> Value {
    let text = std::fs::read_to_string(dir.join("report.json")).expect("it is there");
    serde_json::from_str(&text).expect("it is JSON")
}

/// The scratch directories that are left.
fn left(dir: &Path) -> usize {
    let entries = std::fs::read_dir(dir).expect("it is there").flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("longhaul-bench-")).count()
}

/// All of it in a few seconds: whatever the figures are, everything is told, and told alike everywhere.
#[track_caller]
fn check_told(dir: &Path, output: &Output, store: &str) {
    let told = stdout(output);
    assert!(dir.join("report.json").exists(), "it has failed: {told}{}", stderr(output));
    let report = report(dir);
    assert_eq!(
        told.contains("; bare disk: "),
        store == "SQLite",
        "the disk of a database is elsewhere: {told}"
    );
    assert_eq!(report["fdatasyncs_per_second"].is_null(), store != "SQLite");
    check_conditions(&report);
    for level in LEVELS {
        assert!(
            stderr(output).lines().any(|line| line.starts_with(&format!("{level}, "))),
            "{}",
            stderr(output)
        );
    }
    let missed = told.lines().filter(|line| line.ends_with("| MISSED |")).count();
    assert_eq!(output.status.code(), Some(i32::from(missed > 0)), "{told}{}", stderr(output));
    assert_eq!((&report["missed"], &report["store"]), (&missed.into(), &store.into()));
    for level in LEVELS {
        assert!(told.contains(&format!("\n| {level} | ")), "nothing of {level}: {told}");
    }
    assert!(told.contains("| must be | |\n| --- |"), "a table in Markdown: {told}");
    assert!(told.contains(" at least 0.5 | ") && told.contains(" at most 1.3 | "), "bounds: {told}");

    let works = report["works"].as_array().expect("it is a list");
    assert!(works.len() >= 11, "{works:#?}");
    for work in works {
        let is_many = work["count"].as_u64().expect("they are counted") >= LEAVE_SOMETHING;
        let has_bytes = |of: &Value| {
            let bytes = of["bytes_each"].as_f64();
            if is_many { bytes > Some(0.0) } else { bytes >= Some(0.0) }
        };
        assert!(work["per_second"].as_f64() > Some(0.0) && has_bytes(work), "{work}");
        // A processor's time is counted in hundredths of a second: a few jobs may cost none.
        assert!(work["cpu_ms_each"].is_number(), "{work}");
        let spread = ["p50", "p95", "p99"].map(|name| work["latency_ms"][name].as_f64().unwrap_or(0.0));
        assert!(spread.is_sorted(), "{work}");
        let raw = &work["raw"];
        assert!(raw.is_null() || raw["per_second"].as_f64() > Some(0.0), "{work}");
        assert!(raw.is_null() || has_bytes(raw), "{work}");
    }
    let beside_raw = works.iter().filter(|work| !work["raw"].is_null()).count();
    assert!(beside_raw + 1 >= works.len(), "only creates have no raw rows beside them: {works:#?}");
    assert_eq!(report["growth"][0]["records"], 1_000);

    let page = std::fs::read_to_string(dir.join("report.html")).expect("it is there");
    assert_well_formed(&page);
    assert!(page.matches("<svg").count() == 4 && !page.contains("<script"), "four plots and no script");
    assert_eq!(left(dir), 0, "the scratch directory is taken away: {}", stderr(output));
}

/// Every tag that is opened is closed, in order.
#[track_caller]
fn assert_well_formed(page: &str) {
    let mut open = Vec::new();
    for tag in page.split('<').skip(1).filter_map(|rest| rest.split('>').next()) {
        let name = tag.split([' ', '/']).find(|word| !word.is_empty()).unwrap_or_default();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "in {tag:?}");
        } else if !tag.ends_with('/') && !["!doctype", "meta"].contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?} are never closed");
}

#[test]
fn everything_is_measured_on_a_file_and_told_as_tables_as_json_and_as_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let (output, _) = bench(dir.path(), &["--seconds", "8", "--records", "1000"]);
    check_told(dir.path(), &output, "SQLite");
}

#[test]
fn everything_is_measured_on_a_database_and_its_schemas_are_taken_away() {
    let dir = tempfile::tempdir().unwrap();
    let server = test_postgres::server();
    let arguments = ["--seconds", "8", "--records", "1000", "--database", &server];
    let (output, id) = bench(dir.path(), &arguments);
    check_told(dir.path(), &output, "PostgreSQL");
    let left: i64 = tokio::runtime::Runtime::new().unwrap().block_on(async {
        let client = test_postgres::client(&server).await;
        let mine = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE $1";
        client.query_one(mine, &[&format!("longhaul_bench_{id}_%")]).await.unwrap().get(0)
    });
    assert_eq!(left, 0);
}

#[test]
fn bound_that_is_missed_is_told_and_ends_with_its_code() {
    let dir = tempfile::tempdir().unwrap();
    let (output, _) = bench(dir.path(), &["--seconds", "1", "--only", "start", "--plant-a-miss"]);
    let told = expect(1, &output);
    assert!(told.contains("| a bound that nothing keeps | 0 |  | 0.000 | at least 1 | MISSED |"), "{told}");
    let report = report(dir.path());
    let figures = report["figures"].as_array().unwrap();
    let planted = figures.iter().find(|figure| figure["what"] == "a bound that nothing keeps").unwrap();
    assert_eq!((&planted["holds"], &planted["must_be"]["at_least"]), (&false.into(), &1.0.into()));
    let page = std::fs::read_to_string(dir.path().join("report.html")).unwrap();
    assert!(page.contains("missed</span>"), "{page}");
}

#[test]
fn level_that_is_not_there_is_wrong_usage() {
    let dir = tempfile::tempdir().unwrap();
    let (refused, _) = bench(dir.path(), &["--only", "everything"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("growth"), "{}", stderr(&refused));
}

#[test]
fn interrupted_bench_leaves_nothing_and_a_killed_one_leaves_nobody_behind() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::KILL] {
        let dir = tempfile::tempdir().unwrap();
        let mut child = binary(&["bench", "--seconds", "600", "--only", "idle", "--dir"])
            .arg(dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mine = || children_in(dir.path());
        within("a daemon is there", || (mine() >= 1).then_some(()));
        kill_process(Pid::from_child(&child), signal).unwrap();
        let status = child.wait().unwrap();
        within("nobody is left", || (mine() == 0).then_some(()));
        if signal != Signal::KILL {
            assert_eq!(status.code(), Some(5), "{signal:?}");
            assert_eq!(left(dir.path()), 0, "{signal:?}");
        }
    }
}

/// Terminated while a daemon of the level after the first is there.
#[test]
fn interrupted_bench_prints_what_was_measured_before() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = ["bench", "--seconds", "10", "--only", "store,idle", "--report", "report", "--dir"];
    let child = binary(&arguments)
        .arg(dir.path())
        .current_dir(dir.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    within("a daemon is there", || (children_in(dir.path()) >= 1).then_some(()));
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    let told = stdout(&output);
    let missed = told.lines().any(|line| line.ends_with("| MISSED |"));
    expect(if missed { 1 } else { 5 }, &output);
    assert!(told.contains("\n| store | ") && !told.contains("\n| idle | "), "{told}");
    assert!(told.contains("interrupted in idle"), "{told}");
    let report = report(dir.path());
    assert_eq!(report["interrupted_in"], "idle");
    assert!(!report["works"].as_array().unwrap().is_empty());
}

#[test]
fn place_that_cannot_be_used_is_told_before_anything_is_measured() {
    let dir = tempfile::tempdir().unwrap();
    refused_places("bench", dir.path());
    assert_eq!(left(dir.path()), 0);
}

#[test]
fn disk_in_memory_is_told_at_once_and_in_the_report() {
    let disk = MemoryDisk::mount("size=256m");
    let dir = tempfile::tempdir().unwrap();
    let measured = binary(&["bench", "--seconds", "1", "--only", "start", "--report", "report", "--dir"])
        .arg(disk.path())
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert!(stderr(&measured).contains("is in memory, where nothing is durable"), "{}", stderr(&measured));
    assert!(stdout(&measured).contains("is in memory"), "{}{}", stdout(&measured), stderr(&measured));
    let noted = report(dir.path())["conditions"]["notes"][0].as_str().map(str::to_owned);
    assert!(noted.is_some_and(|note| note.contains("is in memory")));
    assert!(std::fs::read_to_string(dir.path().join("report.html")).unwrap().contains("is in memory"));
}

/// Processes that name a scratch directory below this one.
fn children_in(dir: &Path) -> usize {
    let name = format!("{}/longhaul-bench-", dir.display());
    let processes = std::fs::read_dir("/proc").expect("it is there").flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(&name)).count()
}
