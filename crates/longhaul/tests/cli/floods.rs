//! Commands and plugins that say far more than anybody keeps: the daemon reads it, throws it away, and needs no more room for that.
//!
//! Nothing is ended because it says too much: what is over its limit is read to its end, as the time limit allows. A plugin that said
//! too much has failed. `LONGHAUL_FLOOD_MIB` says how much each of them says.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::given::{Daemon, MIB, create, expect, json as json_of, longhaul, plugin, show, within};

const FLOOD_MIB: u64 = 256;
/// By how much the daemon may grow meanwhile.
const MOST_GROWTH: u64 = 32 * MIB;
/// What is kept of each output of a command.
const KEPT: u64 = 16 * MIB;

fn flood_bytes() -> u64 {
    MIB * std::env::var("LONGHAUL_FLOOD_MIB").map_or(FLOOD_MIB, |mib| mib.parse().expect("it is a number"))
}

/// The end of a job that takes as long as it takes.
#[track_caller]
fn ended(dir: &Path, id: &str) -> Value {
    longhaul(dir, &["jobs", "wait", id, "--timeout", "5h"]);
    json_of(dir, &["jobs", "result", id])
}

fn command(dir: &Path, script: &str) -> String {
    let input = json!({ "argv": ["sh", "-c", script] }).to_string();
    create(dir, &["floods", "--executor", "command", "--input", &input])
}

#[test]
fn flood_of_a_command_takes_no_room_in_the_daemon_whichever_way_it_comes() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    let bytes = flood_bytes();
    let ways = [
        ("lines", format!("yes | head -c {bytes}"), "stdout"),
        ("one line", format!("head -c {bytes} /dev/zero"), "stdout"),
        ("errors", format!("head -c {bytes} /dev/zero >&2"), "stderr"),
        ("both", format!("head -c {bytes} /dev/zero & head -c {bytes} /dev/zero >&2; wait"), "stdout"),
    ];
    // It has done all that it does for such a job once.
    ended(dir.path(), &command(dir.path(), "head -c 100000 /dev/zero; head -c 100000 /dev/zero >&2"));
    for (way, script, output) in ways {
        let before = daemon.begin_peak();
        let began = Instant::now();
        let result = ended(dir.path(), &command(dir.path(), &format!("{script}; true")));
        let (took, growth) = (began.elapsed(), daemon.peak_bytes().saturating_sub(before));
        assert_eq!(result["state"], "completed", "{way}: {result}");
        let artifacts = result["artifacts"].as_array().unwrap();
        let kept = artifacts.iter().find(|artifact| artifact["name"] == output).unwrap();
        assert_eq!((&kept["bytes"], &kept["truncated"]), (&json!(KEPT), &json!(true)), "{way}");
        println!("{way}: {} MiB in {took:.1?}, the daemon grew by {} KiB", bytes / MIB, growth / 1_024);
        assert!(growth <= MOST_GROWTH, "{way}: the daemon grew by {growth} bytes");
    }
}

#[test]
fn flood_of_progress_takes_no_room_in_the_daemon() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    // Each line of it is looked at: it takes its time.
    let bytes = flood_bytes() / 16;
    ended(dir.path(), &command(dir.path(), "head -c 100000 /dev/zero >&3"));
    for (way, script) in [
        ("lines of progress", format!("yes '{{\"note\":\"on\"}}' | head -c {bytes} >&3")),
        ("one line of progress", format!("head -c {bytes} /dev/zero >&3")),
    ] {
        let before = daemon.begin_peak();
        let began = Instant::now();
        let result = ended(dir.path(), &command(dir.path(), &format!("{script}; true")));
        let (took, growth) = (began.elapsed(), daemon.peak_bytes().saturating_sub(before));
        assert_eq!(result["state"], "completed", "{way}: {result}");
        println!("{way}: {} MiB in {took:.1?}, the daemon grew by {} KiB", bytes / MIB, growth / 1_024);
        assert!(growth <= MOST_GROWTH, "{way}: the daemon grew by {growth} bytes");
    }
}

#[test]
fn flood_of_a_plugin_takes_no_room_in_the_daemon_and_fails_by_its_answer_alone() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = flood_bytes();
    let answer = r#"echo '{"status": "ok", "result": "done"}'"#;
    plugin(dir.path(), "says", &format!("{answer}; head -c {bytes} /dev/zero"));
    plugin(dir.path(), "errs", &format!("head -c {bytes} /dev/zero >&2; {answer}"));
    plugin(dir.path(), "plain", answer);
    let config = dir.path().join("longhaul.yaml");
    let once = "{ retry: { max_attempts: 1 }, timeouts: { poll: 18000 } }";
    let text = format!("plugin_roots: [plugins]\nplugins: {{ says: {once}, errs: {once}, plain: {once} }}\n");
    std::fs::write(&config, text).unwrap();
    let daemon = Daemon::start_with(dir.path(), &["--config", config.to_str().unwrap()]);
    let run = |name: &str| {
        let id = create(dir.path(), &["floods", "--executor", name, "--input", "{}"]);
        ended(dir.path(), &id)
    };
    assert_eq!(run("plain")["state"], "completed");
    for (name, code) in [("says", Some("output_overflow")), ("errs", None)] {
        let before = daemon.begin_peak();
        let began = Instant::now();
        let result = run(name);
        let (took, growth) = (began.elapsed(), daemon.peak_bytes().saturating_sub(before));
        assert_eq!(result["error"]["code"].as_str(), code, "{result}");
        println!(
            "plugin {name}: {} MiB in {took:.1?}, the daemon grew by {} KiB",
            bytes / MIB,
            growth / 1_024
        );
        assert!(growth <= MOST_GROWTH, "{name}: the daemon grew by {growth} bytes");
    }
}

/// It never ends by itself, and nobody ends it for what it says: its time limit does.
#[test]
fn command_that_never_stops_talking_is_ended_by_its_time_limit_and_takes_no_room() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    ended(dir.path(), &command(dir.path(), "head -c 100000 /dev/zero"));
    let before = daemon.begin_peak();
    let script = format!("echo $$ > '{}'; exec yes", dir.path().join("pid").display());
    let run = longhaul(dir.path(), &["run", "--detach", "--timeout", "5s", "--", "sh", "-c", &script]);
    let id = expect(0, &run).trim().to_owned();
    let result = ended(dir.path(), &id);
    let growth = daemon.peak_bytes().saturating_sub(before);
    assert_eq!(result["error"]["code"], "timed_out", "{result}");
    let pid = std::fs::read_to_string(dir.path().join("pid")).unwrap();
    within("the command is gone", || (!Path::new("/proc").join(pid.trim()).exists()).then_some(()));
    let attempt = show(dir.path(), &id)["runner"]["attempts"][0].clone();
    let time = |name: &str| attempt[name].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let took = Duration::try_from(time("completed_at").duration_since(time("started_at"))).unwrap();
    println!("endless: ended after {took:.1?}, the daemon grew by {} KiB", growth / 1_024);
    assert!(growth <= MOST_GROWTH, "the daemon grew by {growth} bytes");
}
