//! Nobody reads standard output: no verb panics, as `longhaul jobs list | head -1` must not.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::given::{Daemon, binary, create, ended, expect, longhaul, stderr, within};

const DEMO_JOBS: usize = 3;

/// A pipe without a reader.
fn unread() -> Stdio {
    let (_, writer) = std::io::pipe().expect("there is room");
    writer.into()
}

fn begin(mut command: Command, dir: &Path) -> Child {
    command.current_dir(dir).env("TMPDIR", dir).env("LONGHAUL_DATA_DIR", dir.join("data"));
    command.stdout(unread()).stderr(Stdio::piped()).spawn().expect("the binary runs")
}

#[track_caller]
fn check_end(arguments: &[&str], code: i32, output: &Output) {
    let told = stderr(output);
    assert!(!told.contains("panicked"), "{arguments:?}: {told}");
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {told}");
}

/// One verb to its end, and the code that it ends with.
#[track_caller]
fn check(dir: &Path, arguments: &[&str], code: i32) {
    let output = begin(binary(arguments), dir).wait_with_output().expect("it is ours");
    check_end(arguments, code, &output);
}

#[test]
fn closed_standard_output_ends_no_verb_with_a_panic() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let example = |file: &str| examples.join(file).display().to_string();
    let (connector, tide) = (example("connectors/slow-service.yaml"), example("pipelines/tide.yaml"));
    expect(
        0,
        &binary(&["plugin", "new", "greet", "--lang", "bash"]).current_dir(dir.path()).output().unwrap(),
    );
    let config = dir.path().join("longhaul.yaml");
    std::fs::write(&config, format!("plugin_roots: [.]\npipelines: [{tide}]\n")).unwrap();
    let daemon = Daemon::start_with(&data, &["--config", config.to_str().unwrap()]);
    let done = create(&data, &["done", "--executor", "noop", "--input", "{}"]);
    ended(&data, &done, "completed");
    let (open, late) = (create(&data, &["open", "--lane", "l"]), create(&data, &["late", "--lane", "l"]));
    let beside: &[(&[&str], i32)] = &[
        (&["run", "--", "echo", "hello"], 0),
        (&["jobs", "create", "more", "--executor", "noop"], 0),
        (&["jobs", "list"], 0),
        (&["jobs", "show", &done], 0),
        (&["jobs", "why", &done], 0),
        (&["jobs", "facts", &done], 0),
        (&["jobs", "result", &done], 0),
        (&["jobs", "logs", &done], 0),
        (&["jobs", "wait", &done], 0),
        (&["jobs", "watch", &done], 0),
        (&["jobs", "cancel", &late], 0),
        (&["token", "create", "--role", "viewer"], 0),
        (&["token", "list"], 0),
        (&["executors"], 0),
        (&["orphans", "list"], 0),
        (&["nodes"], 0),
        (&["claims", "acquire", "WORKORDER", &open, "--owner", "me"], 0),
        (&["clock"], 0),
        (&["peers", "list"], 0),
        (&["purge", &done], 0),
        (&["config", "check", "longhaul.yaml"], 0),
        (&["connector", "check", &connector], 0),
        (&["plugin", "list"], 0),
        (&["plugin", "check", "greet"], 0),
        (&["pipeline", "check"], 0),
        (&["pipeline", "list"], 0),
        (&["pipeline", "graph", "tide-alert"], 0),
        (&["runs", "list"], 0),
        (&["events", "publish", "tide.measured"], 0),
        (&["events", "list"], 0),
        (&["export", "facts"], 0),
        (&["export", "claims"], 0),
        (&["export", "productions"], 0),
        (&["backup", "nightly.backup"], 0),
        (&["completions", "bash"], 0),
        (&["--help"], 0),
        (&["--version"], 0),
        // Outside of a job.
        (&["progress", "--note", "half way"], 1),
    ];
    for (arguments, code) in beside {
        check(dir.path(), arguments, *code);
    }
    drop(daemon);
    let alone: &[(&[&str], i32)] = &[
        (&["verify"], 0),
        (&["rebuild"], 0),
        (&["restore", "nightly.backup", "--data-dir", "restored"], 0),
        (&["bench", "--seconds", "1s", "--only", "start", "--report", "bench"], 0),
        // Nothing of it can be taken over, so that it proves too little for any verdict but this.
        (&["drill", "--seconds", "1s", "--load", "ask"], 5),
    ];
    for (arguments, code) in alone {
        check(dir.path(), arguments, *code);
    }
    for report in ["bench.json", "drill-report.json"] {
        assert!(dir.path().join(report).metadata().unwrap().len() > 0, "{report} was written");
    }
    let daemons = [&["serve", "--listen", "127.0.0.1:0"][..], &["demo"]];
    let names = [beside, alone].concat().into_iter().map(|(arguments, _)| arguments).chain(daemons);
    assert_eq!(
        names
            .map(|arguments| arguments[0].to_owned())
            .filter(|word| !word.starts_with('-'))
            .collect::<BTreeSet<_>>(),
        verbs()
    );
}

/// The verbs that the help lists.
fn verbs() -> BTreeSet<String> {
    let help = expect(0, &binary(&["--help"]).output().expect("the binary runs"));
    let lines =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let first = |line: &str| line.split_whitespace().next().map(str::to_owned);
    lines
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(first)
        .filter(|verb| verb != "help")
        .collect()
}

#[test]
fn daemons_go_on_when_nobody_reads_what_they_print() {
    for arguments in
        [&["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"][..], &["demo", "--data-dir", "data"]]
    {
        let dir = tempfile::tempdir().unwrap();
        let mut daemon = begin(binary(arguments), dir.path());
        let data = dir.path().join("data");
        // The demo's guide has printed all but the end when its jobs are there.
        let jobs = if arguments[0] == "demo" { DEMO_JOBS } else { 0 };
        within("it serves", || {
            let list = longhaul(&data, &["jobs", "list", "--json"]);
            let list: Option<serde_json::Value> = serde_json::from_slice(&list.stdout).ok();
            (list?["work"].as_array()?.len() >= jobs).then_some(())
        });
        assert_eq!(daemon.try_wait().unwrap(), None, "{arguments:?}");
        kill_process(Pid::from_child(&daemon), Signal::TERM).unwrap();
        check_end(arguments, 0, &daemon.wait_with_output().unwrap());
    }
}
