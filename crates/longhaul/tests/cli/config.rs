//! `longhaul.yaml` as the daemon and `config check` read it.

use std::path::Path;

use crate::given::{Daemon, binary, create, ended, expect, longhaul, stderr};

fn write(dir: &Path, text: &str) -> String {
    let path = dir.join("longhaul.yaml");
    std::fs::write(&path, text).expect("it is writable");
    path.to_str().expect("it is UTF-8").to_owned()
}

const EXECUTOR: &str = "
executors:
  - name: upper
    kind: process
    argv: [sh, -c, 'tr a-z A-Z; printf %s $MODE >&2']
    env: { set: { MODE: quiet } }
    retry: { max_attempts: 1 }
  - name: breaks
    kind: process
    argv: ['false']
    retry: { max_attempts: 2, backoff_seconds: 0, max_backoff_seconds: 0 }
";

#[test]
fn executors_of_the_file_do_jobs_within_its_limits() {
    let dir = tempfile::tempdir().unwrap();
    let config = write(dir.path(), EXECUTOR);
    let checked = expect(0, &longhaul(dir.path(), &["config", "check", "--config", &config]));
    assert!(checked.ends_with("besides the built-in ones: upper, breaks\n"), "{checked}");
    // The file that lies where the daemon is started is used without a word.
    let _daemon = Daemon::start(dir.path());
    let id = create(dir.path(), &["loud", "--executor", "upper", "--input", r#"{"a":"b"}"#]);
    assert_eq!(ended(dir.path(), &id, "completed")["data"], serde_json::json!({ "A": "B" }));
    let id = create(dir.path(), &["breaks", "--executor", "breaks"]);
    ended(dir.path(), &id, "failed");
    assert_eq!(crate::given::show(dir.path(), &id)["runner"]["attempt_count"], 2);
}

#[test]
fn mistake_is_told_with_line_column_and_hint_and_nothing_is_started() {
    let dir = tempfile::tempdir().unwrap();
    let config = write(dir.path(), "durability: full\nexecutor: []\n");
    for arguments in [&["config", "check"][..], &["serve"]] {
        let output = longhaul(dir.path(), &[arguments, &["--config", &config]].concat());
        expect(1, &output);
        let told = format!("{config}:2:1: unknown key \"executor\"; did you mean \"executors\"?");
        assert!(stderr(&output).contains(&told), "{}", stderr(&output));
    }
    assert!(!dir.path().join("longhaul.sqlite").exists());
    let missing = longhaul(dir.path(), &["config", "check", "--config", "/no/such.yaml"]);
    expect(1, &missing);
    assert!(stderr(&missing).contains("/no/such.yaml: cannot be read"), "{}", stderr(&missing));
}

// conforms: O130
#[test]
fn volatile_persistence_is_for_a_kind_that_declares_it() {
    let dir = tempfile::tempdir().unwrap();
    let policy = "  defaults: { persistence: volatile }\n";
    let config = write(dir.path(), &format!("durability: full\npolicy:\n{policy}"));
    for arguments in [&["config", "check"][..], &["serve"]] {
        let output = longhaul(dir.path(), &[arguments, &["--config", &config]].concat());
        expect(1, &output);
        let told = stderr(&output);
        assert!(told.contains(&format!("{config}:3:3: persistence: volatile is for a kind")), "{told}");
    }
    for policy in
        ["  defaults: { persistence: durable }\n", "  kind_overrides: { press: { persistence: volatile } }\n"]
    {
        let config = write(dir.path(), &format!("policy:\n{policy}"));
        expect(0, &longhaul(dir.path(), &["config", "check", "--config", &config]));
    }
}

#[test]
fn event_types_that_cannot_be_settled_are_told_with_their_line() {
    let dir = tempfile::tempdir().unwrap();
    let tide = "  - { type: tide.changed, settled_by: claimants }\n";
    for (second, told) in [
        (tide, "the type \"tide.changed\" is named twice"),
        ("  - { type: '', settled_by: router }\n", "a type has 1 to "),
        ("  - { type: \"a\\tb\", settled_by: router }\n", "none of them a control character"),
        ("  - { type: swell, settled_by: nobody }\n", "claimants"),
        ("  - { type: swell }\n", "settled_by"),
    ] {
        let config = write(dir.path(), &format!("events:\n{tide}{second}"));
        let output = longhaul(dir.path(), &["config", "check", "--config", &config]);
        expect(1, &output);
        let mistake = stderr(&output);
        assert!(mistake.contains(&format!("{config}:3:")) && mistake.contains(told), "{told}: {mistake}");
    }
    let config = write(dir.path(), &format!("events:\n{tide}"));
    expect(0, &longhaul(dir.path(), &["config", "check", "--config", &config]));
}

#[test]
fn what_may_not_work_here_is_a_warning_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("plain"), "no program").unwrap();
    let config = write(
        dir.path(),
        &format!(
            "lanes:
  good: {{ limit: 1 }}
  resise: {{ limit: 1 }}
executors:
  - {{ name: resize, kind: process, argv: [no-such-program] }}
  - {{ name: plain, kind: process, argv: [./plain], cwd: {dir} }}
  - {{ name: lost, kind: process, argv: [sh], cwd: /no/such/dir }}
  - {{ name: pathless, kind: process, argv: [sh], env: {{ set: {{ PATH: /no/such }} }} }}
  - {{ name: good, kind: process, argv: [sh, -c, 'exit 0'] }}
",
            dir = dir.path().display()
        ),
    );
    let checked = longhaul(dir.path(), &["config", "check", &config]);
    expect(0, &checked);
    let told = stderr(&checked);
    let plain = dir.path().join("./plain");
    let expected = [
        ":5:5: argv of \"resize\": no program \"no-such-program\" is found in PATH".to_owned(),
        format!(":6:5: argv of \"plain\": {} is not an executable file", plain.display()),
        ":7:5: cwd of \"lost\" is not a directory: /no/such/dir".to_owned(),
        ":8:5: argv of \"pathless\": no program \"sh\" is found in PATH (/no/such)".to_owned(),
        ":3:11: no executor is named like the lane \"resise\"; did you mean \"resize\"?".to_owned(),
    ];
    for line in &expected {
        assert!(told.contains(&format!("warning: {config}{line}")), "{line}\n{told}");
    }
    assert_eq!(told.lines().count(), expected.len(), "{told}");
}

#[test]
fn example_of_the_repository_can_be_used() {
    let dir = tempfile::tempdir().unwrap();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/longhaul.yaml");
    expect(0, &longhaul(dir.path(), &["config", "check", "--config", example]));
}

/// The indented lines of a help from this one on, as somebody would copy them; none of them is wrapped.
pub fn copied(help: &str, first: &str) -> String {
    let lines = help.lines().skip_while(|line| *line != first);
    let lines: Vec<&str> = lines.take_while(|line| line.starts_with("  ")).collect();
    assert!(lines.len() > 10, "{help}");
    assert_eq!(lines.iter().find(|line| line.len() > 80), None);
    lines.join("\n")
}

#[test]
fn example_in_the_help_can_be_copied() {
    for columns in ["80", "100", "200"] {
        let help = binary(&["config", "check", "--help"]).env("COLUMNS", columns).output().unwrap();
        let yaml = copied(&expect(0, &help), "  listen: 127.0.0.1:7420");
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("pipelines")).unwrap();
        // What lies elsewhere is not there: that is told with its place, after the whole file was read.
        let config = write(dir.path(), &yaml);
        let checked = longhaul(dir.path(), &["config", "check", &config]);
        let told = stderr(&checked);
        assert!(told.contains("printing.yaml: cannot be read"), "{told}");
        let without = yaml.replace("connectors: [printing.yaml]", "connectors: []");
        let config = write(dir.path(), &without);
        let checked = binary(&["config", "check", &config]).env("PRESS_SECRET", "a secret of both").output();
        expect(0, &checked.unwrap());
    }
}
