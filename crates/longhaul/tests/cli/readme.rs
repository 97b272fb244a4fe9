//! Lines of the README lead somewhere: what they name is there, and what they need is started by the line before.

use std::path::Path;

use serde_json::Value;

use crate::given::{Daemon, binary, json, within};

const README: &str = include_str!("../../../../README.md");
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

const WORKERS: &str = include_str!("../../../../examples/workers/README.md");
const CONNECTORS: &str = include_str!("../../../../examples/connectors/README.md");

/// The first line that begins so, and the one before it.
fn line(beginning: &str) -> (&'static str, &'static str) {
    let lines: Vec<&str> = README.lines().map(str::trim).collect();
    let at = lines.iter().position(|line| line.starts_with(beginning)).expect(beginning);
    (lines[at], lines[at - 1])
}

/// The words of a line of the shell after the name of the program; a comment is none.
fn arguments(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let (mut quoted, mut before) = (false, ' ');
    for c in line.chars() {
        match c {
            '#' if !quoted && before == ' ' => break,
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().expect("there is one").push(c),
        }
        before = c;
    }
    words.into_iter().skip(1).filter(|word| !word.is_empty()).collect()
}

/// The daemon of the README, on another port and with other data.
fn served(dir: &Path) -> Daemon {
    let serve = arguments(line("longhaul serve").0);
    let mut words: Vec<&str> = serve.iter().map(String::as_str).collect();
    words.extend(["--listen", "127.0.0.1:0"]);
    let started = Daemon::confined(dir, Path::new(EXAMPLES), binary(&words));
    started.unwrap_or_else(|said| panic!("{serve:?}: {said}"))
}

/// What a verb of the README says, as JSON.
fn said(dir: &Path, beginning: &str) -> Value {
    let words = arguments(line(beginning).0);
    json(dir, &words.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn readme_starts_one_daemon() {
    let serves = README.lines().filter(|line| line.trim().starts_with("longhaul serve"));
    assert_eq!(serves.count(), 1, "a second one finds the address and the store taken");
}

#[test]
fn readme_names_the_executor_of_the_service_it_starts() {
    let (create, before) = line("longhaul jobs create ");
    let address = before.split_whitespace().skip_while(|word| *word != "--listen").nth(1).expect(before);
    assert!(before.starts_with("cargo run --release -p slow-service -- --listen "), "{before}");
    assert!(Path::new(EXAMPLES).join("proof/slow-service/src/main.rs").exists());
    let executor =
        arguments(create).into_iter().skip_while(|word| word != "--executor").nth(1).expect(create);
    let file = format!("{EXAMPLES}/examples/connectors/{executor}.yaml");
    let connector = std::fs::read_to_string(&file).expect(&file);
    assert!(connector.contains(&format!("url: http://{address}/work\n")), "{address}");
    let dir = tempfile::tempdir().unwrap();
    let _daemon = served(dir.path());
    let job = said(dir.path(), "longhaul jobs create ");
    assert_eq!(job["execution"]["target"]["executor"], *executor, "{job}");
}

#[test]
fn readme_publishes_an_event_that_starts_a_run() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = served(dir.path());
    let event = said(dir.path(), "longhaul events publish ")["event_id"].as_str().unwrap().to_owned();
    let run = within("a run is over", || {
        let run = json(dir.path(), &["runs", "list"])["runs"][0].clone();
        (run["ended_at"].is_string()).then_some(run)
    });
    assert_eq!((&run["event_id"], &run["state"]), (&Value::from(event), &Value::from("completed")), "{run}");
}

/// A text without its line ends.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn readme_of_workers_says_how_often_a_lost_job_is_handed_out() {
    let told = format!("at most {} times, and only when a worker was lost", domain::PULLED_ATTEMPTS);
    assert!(flat(WORKERS).contains(&told), "{told}");
    assert!(flat(WORKERS).contains("A failure that a worker reports is final"));
}

#[test]
fn readme_of_connectors_says_how_long_work_lives() {
    let host = domain::policy::HostPolicy::default();
    for told in [
        format!("`max_ttl_seconds` ({}", host.for_all().max_ttl_seconds),
        format!("`policy.job_ttl_seconds` in longhaul.yaml ({})", host.job_ttl_seconds.0),
    ] {
        assert!(flat(CONNECTORS).contains(&told), "{told}");
    }
}

#[test]
fn files_that_the_readme_names_are_there() {
    for part in README.split("](").skip(1) {
        let path = part.split([')', '#']).next().unwrap();
        assert!(Path::new(EXAMPLES).join(path).exists(), "{path}");
    }
}
