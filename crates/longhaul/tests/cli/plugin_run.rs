//! A plugin that is tried out: what `plugin run` shows of its failures, and the configuration of it that the seed has.

use std::path::Path;

use serde_json::{Value, json};

use crate::given::{Daemon, expect, longhaul, stderr};

/// A daemon with one plugin, `zoo`.
struct Zoo {
    dir: tempfile::TempDir,
    _daemon: Daemon,
}

impl Zoo {
    fn with(dir: tempfile::TempDir, config: &str) -> Self {
        let file = dir.path().join("longhaul.yaml");
        put(&file, config);
        let file = file.to_str().expect("it is text").to_owned();
        let daemon = Daemon::verb(dir.path(), &["serve", "--listen", "127.0.0.1:0", "--config", &file]);
        Self { dir, _daemon: daemon }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn config(&self) -> String {
        self.path().join("longhaul.yaml").to_str().expect("it is text").to_owned()
    }
}

/// A directory with the plugin `zoo`, of which nothing is said.
fn zoo_at(script: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("it can be");
    let manifest = "name: zoo\nprotocol: 2\nentrypoint: run\ncommands: [poll, handle]\n";
    put(&dir.path().join("plugins/zoo/manifest.yaml"), manifest);
    put(&dir.path().join("plugins/zoo/run"), script);
    dir
}

fn put(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::create_dir_all(path.parent().expect("it has one")).expect("it can be");
    std::fs::write(path, text).expect("it can be");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("it can be");
}

const CRASHES: &str = r#"#!/usr/bin/env python3
import sys
print("Traceback (most recent call last):", file=sys.stderr)
print("ValueError: no paper", file=sys.stderr)
sys.exit(1)
"#;

#[test]
fn plugin_run_tries_once_and_shows_the_last_lines_of_stderr() {
    let zoo = Zoo::with(zoo_at(CRASHES), "plugin_roots: [plugins]\n");
    let run = longhaul(zoo.path(), &["plugin", "run", "zoo"]);
    expect(1, &run);
    let told = stderr(&run);
    assert!(told.contains("  Traceback (most recent call last):\n  ValueError: no paper\n"), "{told}");
    assert!(!told.contains("attempt 1 failed"), "there is no other: {told}");
    let id =
        told.lines().find_map(|line| line.strip_prefix("longhaul: job ")).expect("it has one").to_owned();
    let logs = longhaul(zoo.path(), &["jobs", "logs", &id]);
    assert_eq!(expect(0, &logs), "");
    let said = "longhaul: standard error:\nTraceback (most recent call last):\nValueError: no paper\n";
    assert_eq!(stderr(&logs), said);
    let why = expect(0, &longhaul(zoo.path(), &["jobs", "why", &id]));
    assert!(why.contains("its last line on standard error: ValueError: no paper"), "{why}");
}

#[test]
fn plugin_run_shows_each_failed_attempt_and_when_the_next_is_due() {
    let settings = "plugin_roots: [plugins]\nplugins: { zoo: { retry: { backoff_base_seconds: 1 } } }\n";
    let zoo = Zoo::with(zoo_at(CRASHES), settings);
    let run = longhaul(zoo.path(), &["plugin", "run", "zoo", "--retry", "1"]);
    expect(1, &run);
    let told = stderr(&run);
    let failed =
        told.find("longhaul: attempt 1 failed: bad_response; the next one is due at 2").expect(&told);
    assert_eq!(told.matches("  ValueError: no paper\n").count(), 2, "{told}");
    assert!(told.find("ValueError").is_some_and(|first| first < failed), "{told}");
}

/// Word for word as the RFC has it.
const SEED: &str = "
plugins:
  agentic-loop:
    schedule: null
    timeouts:
      handle: 120s
    config:
      max_steps: 20
      max_reframes: 2
      allowed_plugins: [fetch, fabric, jina-reader]
";

// conforms: D80
#[test]
fn plugin_block_of_the_seed_loads_and_is_given_to_the_plugin() {
    let dir = zoo_at("#!/usr/bin/env bash\njq '{status: \"ok\", result: (.config | tojson)}'\n");
    let manifest = dir.path().join("plugins/zoo/manifest.yaml");
    let named = std::fs::read_to_string(&manifest).unwrap().replace("name: zoo", "name: agentic-loop");
    put(&manifest, &named);
    let zoo = Zoo::with(dir, &format!("plugin_roots: [plugins]\n{SEED}"));
    expect(0, &longhaul(zoo.path(), &["config", "check", "--config", &zoo.config()]));
    let run = longhaul(zoo.path(), &["plugin", "run", "agentic-loop", "--json"]);
    let result: Value = serde_json::from_str(&expect(0, &run)).unwrap();
    let given: Value = serde_json::from_str(result["summary"].as_str().unwrap()).unwrap();
    let expected =
        json!({ "max_steps": 20, "max_reframes": 2, "allowed_plugins": ["fetch", "fabric", "jina-reader"] });
    assert_eq!(given, expected);
    let shown =
        expect(0, &longhaul(zoo.path(), &["plugin", "show", "agentic-loop", "--config", &zoo.config()]));
    assert!(shown.contains("handle (write, 120 s)"), "{shown}");
    // What is usual without a word is 120 s too: the word counts.
    let shorter = zoo.path().join("shorter.yaml");
    put(&shorter, &format!("plugin_roots: [plugins]\n{}", SEED.replace("120s", "90s")));
    let shorter = shorter.to_str().unwrap();
    let shown = expect(0, &longhaul(zoo.path(), &["plugin", "show", "agentic-loop", "--config", shorter]));
    assert!(shown.contains("handle (write, 90 s)"), "{shown}");
    for (wrong, told) in [
        ("schedule: every hour", "schedules come later"),
        ("timeouts: { handle: soon }", "must be a duration"),
        ("timeouts: { handle: 2 weeks }", "must be a duration"),
    ] {
        let file = zoo.path().join("wrong.yaml");
        put(&file, &format!("plugin_roots: [plugins]\nplugins: {{ agentic-loop: {{ {wrong} }} }}\n"));
        let refused = longhaul(zoo.path(), &["config", "check", "--config", file.to_str().unwrap()]);
        expect(1, &refused);
        let all = format!("{}{}", stderr(&refused), String::from_utf8_lossy(&refused.stdout));
        assert!(all.contains(told), "{wrong}: {all}");
    }
}
