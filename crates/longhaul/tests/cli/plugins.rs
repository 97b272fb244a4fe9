//! Plugins through the real daemon: those that work, and every way not to. The real binary, real scripts.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::given::{Daemon, create, ended, expect, json, longhaul, show, stderr, within};

/// A daemon with one plugin, `zoo`, that is tried once.
struct Zoo {
    dir: tempfile::TempDir,
    daemon: Daemon,
}

impl Zoo {
    /// The plugin is a script; `settings` is what the configuration says of it besides.
    fn start(script: &str, settings: &str) -> Self {
        let dir = tempfile::tempdir().expect("it can be");
        let manifest = "name: zoo\nprotocol: 2\nentrypoint: run\ncommands: [poll, handle]\n";
        put(&dir.path().join("plugins/zoo/manifest.yaml"), manifest);
        put(&dir.path().join("plugins/zoo/run"), script);
        let config = format!(
            "plugin_roots: [plugins]\nplugins: {{ zoo: {{ retry: {{ max_attempts: 1 }}, {settings} }} }}\n"
        );
        Self::with(dir, &config)
    }

    fn with(dir: tempfile::TempDir, config: &str) -> Self {
        let file = dir.path().join("longhaul.yaml");
        put(&file, config);
        let file = file.to_str().expect("it is text").to_owned();
        let daemon = Daemon::verb(dir.path(), &["serve", "--listen", "127.0.0.1:0", "--config", &file]);
        Self { dir, daemon }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn config(&self) -> String {
        self.path().join("longhaul.yaml").to_str().expect("it is text").to_owned()
    }

    fn job(&self, input: &str) -> String {
        create(self.path(), &["a job", "--executor", "zoo", "--input", input])
    }

    /// The error of a job of it.
    #[track_caller]
    fn error(&self) -> Value {
        ended(self.path(), &self.job("{}"), "failed")["error"].clone()
    }
}

fn put(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::create_dir_all(path.parent().expect("it has one")).expect("it can be");
    std::fs::write(path, text).expect("it can be");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("it can be");
}

fn script(body: &str) -> String {
    format!("#!/usr/bin/env bash\n{body}\n")
}

const OK: &str = r#"echo '{"status": "ok", "result": "done"}'"#;

// conforms: D12
#[test]
fn what_is_no_answer_fails_with_what_the_plugin_said_and_the_daemon_goes_on() {
    let zoo = Zoo::start(&script("echo garbage; echo 'no such table' >&2; exit 3"), "");
    let error = zoo.error();
    assert_eq!(error["code"], "bad_response");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("exited with 3") && message.ends_with("no such table"), "{message}");
    assert_eq!(error["details"]["stdout_tail"], "garbage\n");
    ended(zoo.path(), &create(zoo.path(), &["other", "--executor", "noop"]), "completed");
}

#[test]
fn flood_of_output_is_read_and_thrown_away_and_fails() {
    let zoo = Zoo::start(&script(&format!("{OK}; head -c 20000000 /dev/zero")), "");
    assert_eq!(zoo.error()["code"], "output_overflow");
}

#[test]
fn plugin_that_hangs_and_does_not_hear_is_killed() {
    let hangs = "trap '' TERM; sleep 600 & echo $! > \"$HOME/child\"; while :; do wait; done";
    let zoo = Zoo::start(&script(&hangs.replace("$HOME", "$(dirname \"$0\")")), "timeouts: { poll: 5 }");
    assert_eq!(zoo.error()["code"], "timeout");
    is_gone(&zoo.path().join("plugins/zoo/child"));
}

#[test]
fn what_a_plugin_leaves_running_is_ended_with_it() {
    let forks = format!("setsid sleep 600 > /dev/null 2>&1 & echo $! > \"$(dirname \"$0\")/child\"; {OK}");
    let zoo = Zoo::start(&script(&forks), "");
    ended(zoo.path(), &zoo.job("{}"), "completed");
    is_gone(&zoo.path().join("plugins/zoo/child"));
}

/// Whether the process whose id is in a file is over.
fn is_gone(file: &PathBuf) {
    let id = std::fs::read_to_string(file).expect("it was written");
    within("the child is gone", || (!Path::new("/proc").join(id.trim()).exists()).then_some(()));
}

#[test]
fn plugin_that_never_reads_what_it_is_given_may_answer_all_the_same() {
    let zoo = Zoo::start(&script(OK), "");
    let large = format!("{{\"payload\": {{\"x\": \"{}\"}}}}", "y".repeat(500_000));
    let file = zoo.path().join("input.json");
    put(&file, &large);
    let id = zoo.job(&format!("@{}", file.display()));
    assert_eq!(ended(zoo.path(), &id, "completed")["summary"], "done");
}

// conforms: D3 D12 D35 D39
#[test]
fn exit_codes_say_only_whether_it_failed_and_whether_it_is_tried_again() {
    for (body, code, attempts) in [
        (format!("{OK}; exit 1"), "plugin_error", 2),
        (format!("{OK}; exit 98"), "plugin_error", 2),
        (format!("{OK}; exit 99"), "plugin_error", 2),
        (r#"echo '{"status": "error", "error": "no paper"}'; exit 1"#.to_owned(), "plugin_error", 2),
        (r#"echo '{"status": "error", "error": "no", "retry": false}'"#.to_owned(), "plugin_retry_false", 1),
        ("exit 78".to_owned(), "exit_code_78", 1),
    ] {
        let zoo = Zoo::start(&script(&body), "");
        let id = create(
            zoo.path(),
            &["a job", "--executor", "zoo", "--max-attempts", "2", "--backoff", "0s", "--input", "{}"],
        );
        let result = ended(zoo.path(), &id, "failed");
        assert_eq!(result["error"]["code"], code, "{body}");
        assert_eq!(show(zoo.path(), &id)["runner"]["attempt_count"], attempts, "{body}");
    }
}

#[test]
fn plugin_whose_jobs_fail_is_left_alone_its_jobs_wait_without_an_attempt_and_a_reset_lets_them_go_on() {
    let says = format!("[ -e \"$(dirname \"$0\")/mended\" ] || exit 78; {OK}");
    let zoo = Zoo::start(&script(&says), "circuit_breaker: { threshold: 2, reset_after_seconds: 600 }");
    let breaker =
        || json(zoo.path(), &["plugin", "show", "zoo", "--config", &zoo.config()])["breaker"].clone();
    assert_eq!(breaker(), json!({ "state": "closed", "failures": 0, "threshold": 2 }));
    for _ in 0..2 {
        assert_eq!(zoo.error()["code"], "exit_code_78");
    }
    assert_eq!(breaker()["state"], "open");
    let listed = expect(0, &longhaul(zoo.path(), &["plugin", "list", "--config", &zoo.config()]));
    assert!(listed.contains("open until "), "{listed}");
    let id = zoo.job("{}");
    // Another lane is asked after it: whoever should have taken it would have.
    ended(zoo.path(), &create(zoo.path(), &["other", "--executor", "noop"]), "completed");
    let waiting = show(zoo.path(), &id);
    assert_eq!((&waiting["state"], &waiting["runner"]["attempt_count"]), (&json!("queued"), &Value::Null));
    let why = json(zoo.path(), &["jobs", "why", &id]);
    assert_eq!(why["reasons"][0]["code"], "circuit_open", "{why}");
    put(&zoo.path().join("plugins/zoo/mended"), "");
    let told = expect(0, &longhaul(zoo.path(), &["plugin", "reset", "zoo"]));
    assert_eq!(told, "zoo may be started again: its breaker is closed\n");
    ended(zoo.path(), &id, "completed");
    assert_eq!(show(zoo.path(), &id)["runner"]["attempt_count"], 1);
    expect(4, &longhaul(zoo.path(), &["plugin", "reset", "zooo"]));
}

#[test]
fn plugin_whose_interpreter_is_missing_is_left_out_by_file_and_line_and_told_by_check_and_the_rest_runs() {
    for (line, told) in [
        ("#!/no/such/interpreter", "run by /no/such/interpreter, which is not there"),
        ("#!/usr/bin/env no-such-program", "run by \"no-such-program\", which is not found in PATH"),
    ] {
        let zoo = Zoo::start(&format!("{line}\n"), "");
        let place = zoo.path().join("plugins/zoo/manifest.yaml").display().to_string() + ":3:";
        let log = zoo.daemon.log();
        let warned = log.lines().find(|line| line.contains(&place)).unwrap_or_else(|| panic!("{log}"));
        assert!(warned.contains(told), "{warned}");
        let refused = longhaul(zoo.path(), &["jobs", "create", "a job", "--executor", "zoo"]);
        assert_ne!(refused.status.code(), Some(0));
        assert!(stderr(&refused).contains(told), "{}", stderr(&refused));
        let checked = longhaul(zoo.path(), &["plugin", "check", "--config", &zoo.config()]);
        expect(1, &checked);
        let said = stderr(&checked);
        assert!(said.contains("error: ") && said.contains(&place) && said.contains(told), "{said}");
        ended(zoo.path(), &create(zoo.path(), &["other", "--executor", "noop"]), "completed");
    }
}

#[test]
fn interpreter_that_goes_while_the_daemon_runs_is_told_by_its_name() {
    let zoo = Zoo::start(&script(OK), "");
    put(&zoo.path().join("plugins/zoo/run"), "#!/no/such/interpreter\n");
    let error = zoo.error();
    assert_eq!(error["code"], "spawn_error");
    assert!(
        error["message"].as_str().unwrap().ends_with("names the interpreter /no/such/interpreter"),
        "{error}"
    );
}

#[test]
fn command_that_a_plugin_does_not_have_is_refused_with_those_that_it_has() {
    let zoo = Zoo::start(&script(OK), "");
    let error = ended(zoo.path(), &zoo.job(r#"{"command": "pol"}"#), "failed")["error"].clone();
    assert_eq!(error["code"], "unknown_command");
    assert!(error["message"].as_str().unwrap().ends_with("it has poll, handle"), "{error}");
}

#[test]
fn plugin_has_its_secrets_and_nobody_sees_them_and_nothing_else_of_the_environment() {
    let says = r#"request=$(cat); token=$(jq -r .secrets.TOKEN <<< "$request"); echo "token $token" >&2
jq -n --arg token "$token" --arg env "$(env | grep -c SECRET_OF_THE_HOST)" '{status: "ok", result: "\($token) \($env) \($token | length)"}'"#;
    let dir = tempfile::tempdir().unwrap();
    put(
        &dir.path().join("plugins/zoo/manifest.yaml"),
        "name: zoo\nprotocol: 2\nentrypoint: run\ncommands: [poll]\n",
    );
    put(&dir.path().join("plugins/zoo/run"), &script(says));
    put(&dir.path().join("token"), "s3cr3t-t0ken-of-18\n");
    let config = "plugin_roots: [plugins]\nplugins: { zoo: { secrets: { TOKEN: { file: token } } } }\n";
    let zoo = Zoo::with(dir, config);
    let id = zoo.job("{}");
    let result = ended(zoo.path(), &id, "completed");
    assert_eq!(result["summary"], "[secret TOKEN] 0 18");
    let logs = longhaul(zoo.path(), &["jobs", "logs", &id, "--stderr"]);
    assert_eq!(expect(0, &logs), "token [secret TOKEN]\n");
}

#[test]
fn plugin_whose_secret_is_not_there_is_left_out_and_the_daemon_has_the_others() {
    let zoo = Zoo::start(&script(OK), "secrets: { TOKEN: { env: NO_SUCH_VARIABLE_ANYWHERE } }");
    let listed = json(zoo.path(), &["executors"]);
    let names: Vec<_> = listed["capabilities"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert!(!names.contains(&&Value::from("zoo")), "{names:?}");
}

#[test]
fn jobs_of_a_plugin_queue_one_after_the_other_unless_the_operator_says_how_many() {
    for (settings, lane) in [("", "serial:plugin:zoo"), ("parallelism: 2", "plugin:zoo")] {
        let zoo = Zoo::start(&script(OK), settings);
        let id = zoo.job("{}");
        assert_eq!(ended(zoo.path(), &id, "completed")["summary"], "done");
        let facts = expect(0, &longhaul(zoo.path(), &["export", "facts"]));
        assert!(facts.contains(&format!("\"lane\":\"{lane}\"")), "{facts}");
    }
}

#[test]
fn examples_work_as_they_are() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/plugins");
    let root = examples.canonicalize().unwrap();
    let config = format!(
        "plugin_roots: ['{}']\nplugins: {{ tally: {{ config: {{ unit: words }} }}, also: {{ uses: greet }} }}\n",
        root.display()
    );
    let zoo = Zoo::with(tempfile::tempdir().unwrap(), &config);
    let run = |arguments: &[&str]| longhaul(zoo.path(), &[&["plugin", "run"], arguments].concat());
    let greeted = run(&["greet"]);
    expect(0, &greeted);
    assert!(stderr(&greeted).ends_with("longhaul: hello world, number 1\n"), "{}", stderr(&greeted));
    let counted =
        run(&["tally", "--command", "handle", "--payload", r#"{"text": "three small words"}"#, "--json"]);
    let result: Value = serde_json::from_str(&expect(0, &counted)).unwrap();
    assert_eq!(result["data"]["events"][0]["payload"]["words"], 3, "{result}");
    let refused = run(&["tally", "--command", "handle", "--payload", "{}"]);
    expect(1, &refused);
    assert!(stderr(&refused).contains("the payload needs a text"), "{}", stderr(&refused));
    expect(2, &run(&["greet", "--payload", "[1]"]));
}

#[test]
fn plugin_that_has_to_be_built_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/plugins/load");
    let load = dir.path().join("load");
    std::fs::create_dir(&load).unwrap();
    for file in ["manifest.yaml", "build.sh", "main.rs"] {
        std::fs::copy(examples.join(file), load.join(file)).unwrap();
    }
    let checked = longhaul(dir.path(), &["plugin", "check", load.to_str().unwrap()]);
    expect(1, &checked);
    let told = stderr(&checked);
    let script = load.canonicalize().unwrap().join("build.sh");
    let expected = format!("the entrypoint \"run\" is not built yet; run {}", script.display());
    assert!(told.contains(&expected), "{told}");
    std::fs::remove_file(load.join("build.sh")).unwrap();
    let checked = longhaul(dir.path(), &["plugin", "check", load.to_str().unwrap()]);
    assert!(stderr(&checked).contains("No such file"), "{}", stderr(&checked));
}

// conforms: D38
#[test]
fn what_a_plugin_remembers_survives_the_daemon_and_each_name_remembers_for_itself() {
    let dir = tempfile::tempdir().unwrap();
    let examples =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/plugins").canonicalize().unwrap();
    let config = format!(
        "plugin_roots: ['{}']\nplugins: {{ tally: {{ config: {{ unit: words }} }}, also: {{ uses: greet }} }}\n",
        examples.display()
    );
    let zoo = Zoo::with(dir, &config);
    let run = |zoo: &Zoo, arguments: &[&str]| {
        let printed =
            expect(0, &longhaul(zoo.path(), &[&["plugin", "run"], arguments, &["--json"]].concat()));
        serde_json::from_str::<Value>(&printed).unwrap()
    };
    assert_eq!(run(&zoo, &["greet"])["summary"], "hello world, number 1");
    assert_eq!(run(&zoo, &["greet"])["summary"], "hello world, number 2");
    assert_eq!(run(&zoo, &["also"])["summary"], "hello world, number 1");
    run(&zoo, &["tally", "--command", "handle", "--payload", r#"{"text": "one two"}"#]);
    let Zoo { dir, daemon } = zoo;
    drop(daemon);
    let zoo = Zoo::with(dir, &config);
    assert_eq!(run(&zoo, &["greet"])["summary"], "hello world, number 3");
    let told = run(&zoo, &["tally"]);
    let nanoseconds = told["data"]["events"][0]["payload"]["counted_at_ns"].to_string();
    assert_eq!((told["summary"].as_str(), nanoseconds.len()), (Some("2 words so far"), 19), "{told}");
}

#[test]
fn state_that_is_too_large_fails_the_job_and_the_plugin_keeps_what_it_had() {
    let says = r#"request=$(cat)
if jq -e .payload.large <<< "$request" > /dev/null; then
    echo '{"status": "ok", "result": "large", "state_updates": {"x": "'"$(head -c 1100000 /dev/zero | tr '\0' y)"'"}}'
else
    jq '{status: "ok", result: (.state | tojson), state_updates: {seen: 1763337600123456789}}' <<< "$request"
fi"#;
    let zoo = Zoo::start(&script(says), "");
    ended(zoo.path(), &zoo.job("{}"), "completed");
    let error = ended(zoo.path(), &zoo.job(r#"{"payload": {"large": true}}"#), "failed")["error"].clone();
    assert_eq!(error["code"], "report_refused");
    assert!(error["message"].as_str().unwrap().contains("state of a plugin"), "{error}");
    let last = ended(zoo.path(), &zoo.job("{}"), "completed");
    assert!(last["summary"].as_str().unwrap().contains("\"seen\""), "{last}");
}

#[test]
fn entrypoint_that_is_just_being_written_is_started_when_its_writer_is_done() {
    let zoo = Zoo::start(&script(OK), "");
    let entrypoint = zoo.path().join("plugins/zoo/run");
    let writer = std::fs::OpenOptions::new().append(true).open(&entrypoint).expect("it is ours");
    let id = zoo.job("{}");
    within("it was busy", || zoo.daemon.log().contains("being written").then_some(()));
    drop(writer);
    assert_eq!(ended(zoo.path(), &id, "completed")["summary"], "done");
    assert_eq!(show(zoo.path(), &id)["runner"]["attempt_count"], 1);
}

#[test]
fn snapshot_of_a_plugin_replaces_its_state_and_stays_as_a_fact() {
    let says = r#"jq -c '{status: "ok", result: (.state | tojson), state_updates: .payload}'"#;
    let dir = tempfile::tempdir().unwrap();
    let manifest = "name: zoo\nprotocol: 2\nentrypoint: run\ncommands: [poll, note]\nfact_outputs:\n- { when: { command: poll }, \
                    from: state_updates, fact_type: zoo.snapshot, compatibility_view: mirror_object }\n";
    put(&dir.path().join("plugins/zoo/manifest.yaml"), manifest);
    put(&dir.path().join("plugins/zoo/run"), &script(says));
    let zoo = Zoo::with(dir, "plugin_roots: [plugins]\n");
    let run = |command: &str, payload: &str| {
        let id = zoo.job(&format!(r#"{{"command": "{command}", "payload": {payload}}}"#));
        let state = ended(zoo.path(), &id, "completed")["summary"].clone();
        serde_json::from_str::<Value>(state.as_str().expect("it is text")).expect("it is JSON")
    };
    // What a command without a rule says is merged; a snapshot is all that there is.
    assert_eq!(run("note", r#"{"a": 1}"#), json!({}));
    assert_eq!(run("note", r#"{"b": 2}"#), json!({ "a": 1 }));
    assert_eq!(run("poll", r#"{"level": 2}"#), json!({ "a": 1, "b": 2 }));
    assert_eq!(run("poll", r#"{"level": 3}"#), json!({ "level": 2 }));
    assert_eq!(run("note", "{}"), json!({ "level": 3 }));
    let kept = |number: u32, level: u32| json!({ "number": number, "fact_type": "zoo.snapshot", "value": { "level": level } });
    let remembered = json(zoo.path(), &["plugin", "state", "zoo"]);
    assert_eq!(
        remembered,
        json!({ "plugin": "zoo", "version": 4, "state": { "level": 3 }, "fact_count": 2,
                "facts": [kept(1, 2), kept(2, 3)] })
    );
    let later = json(zoo.path(), &["plugin", "state", "zoo", "--after", "1"]);
    assert_eq!(later["facts"], json!([kept(2, 3)]));
    let shown = expect(0, &longhaul(zoo.path(), &["plugin", "state", "zoo"]));
    assert!(shown.contains("state: {\"level\":3}\nfacts: 2\n  1 zoo.snapshot {\"level\":2}\n"), "{shown}");
    expect(4, &longhaul(zoo.path(), &["plugin", "state", "zooo"]));
}

#[test]
fn plugin_that_forks_without_end_is_ended_with_all_of_them_and_the_rest_goes_on() {
    // Each child makes two more and stays: a hundred of them are many enough to be sure, and few enough for the others here.
    let forks = r#"home=$(dirname "$0"); count() { ls "$home/children" | wc -l; }
bomb() { [ "$(count)" -ge 100 ] && return; touch "$home/children/$BASHPID"; (bomb) & (setsid bash -c 'sleep 600') & sleep 600; }
mkdir -p "$home/children"; bomb & bomb & sleep 600"#;
    let zoo = Zoo::start(&script(forks), "timeouts: { poll: 3 }");
    let id = zoo.job("{}");
    ended(zoo.path(), &create(zoo.path(), &["other", "--executor", "noop"]), "completed");
    assert_eq!(ended(zoo.path(), &id, "failed")["error"]["code"], "timeout");
    let children = std::fs::read_dir(zoo.path().join("plugins/zoo/children")).expect("it made some");
    let children: Vec<_> = children.map(|child| child.unwrap().file_name()).collect();
    assert!(children.len() > 5, "{children:?}");
    within("all are gone", || {
        children.iter().all(|child| !Path::new("/proc").join(child).exists()).then_some(())
    });
}

#[test]
fn events_of_a_plugin_that_are_too_large_too_deep_or_none_are_told_and_many_large_ones_reach_the_next_step() {
    let says = r#"request=$(cat); kind=$(jq -r '.event.payload.kind // "none"' <<< "$request")
large() { head -c "$1" /dev/zero | tr '\0' y; }
deep() { printf '{"a":%.0s' $(seq 1 200); echo -n 1; printf '}%.0s' $(seq 1 200); }
one() { echo -n '{"type":"large","payload":{"x":"'"$(large "$1")"'"}}'; }
case $kind in
    too_large) echo '{"status":"ok","result":"r","events":['"$(one 262200)"']}' ;;
    too_deep) echo '{"status":"ok","result":"r","events":[{"type":"t","payload":'"$(deep)"'}]}' ;;
    no_object) echo '{"status":"ok","result":"r","events":[{"type":"t","payload":[1]}]}' ;;
    many) echo '{"status":"ok","result":"r","events":['"$(one 250000),$(one 250001),$(one 250002),$(one 250003),$(one 250004)"']}' ;;
    *) jq -c '{status: "ok", result: (.event.payload.x | length | tostring)}' <<< "$request" ;;
esac"#;
    let dir = tempfile::tempdir().unwrap();
    let manifest = "name: zoo\nprotocol: 2\nentrypoint: run\ncommands: [handle]\n";
    put(&dir.path().join("plugins/zoo/manifest.yaml"), manifest);
    put(&dir.path().join("plugins/zoo/run"), &script(says));
    let pipelines = "pipelines: [{ name: p, on: go, steps: [{ id: a, uses: zoo }, { id: b, uses: zoo }] }]\n";
    put(&dir.path().join("p.yaml"), pipelines);
    let config =
        "plugin_roots: [plugins]\npipelines: [p.yaml]\nplugins: { zoo: { retry: { max_attempts: 1 } } }\n";
    let zoo = Zoo::with(dir, config);
    for (kind, code, told) in [
        ("too_large", "bad_event", "more than 262144 bytes"),
        ("no_object", "bad_event", "is not an object"),
        ("too_deep", "bad_event", "nested deeper than 64"),
    ] {
        let input = format!(r#"{{"event": {{"type": "t", "payload": {{"kind": "{kind}"}}}}}}"#);
        let error = ended(zoo.path(), &zoo.job(&input), "failed")["error"].clone();
        assert_eq!(error["code"], code, "{error}");
        assert!(error["message"].as_str().unwrap().contains(told), "{error}");
    }
    let run = ["pipeline", "run", "p", "--payload", r#"{"kind": "many"}"#, "--wait", "30"];
    let ran = json(zoo.path(), &run)["run"].clone();
    assert_eq!(ran["state"], "completed", "{ran}");
    let second = ran["visits"].as_array().unwrap().iter().filter(|visit| visit["step"] == "b");
    let mut lengths: Vec<String> = second
        .map(|visit| {
            let result = json(zoo.path(), &["jobs", "result", visit["job_id"].as_str().unwrap()]);
            result["summary"].as_str().unwrap().to_owned()
        })
        .collect();
    lengths.sort();
    assert_eq!(lengths, ["250000", "250001", "250002", "250003", "250004"]);
}

/// A directory with the plugin `zoo`, that answers, and a configuration that says so.
fn stocked(config: &str) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().expect("it can be");
    let manifest = "name: zoo\nprotocol: 2\nentrypoint: run\ncommands: [poll]\n";
    put(&dir.path().join("plugins/zoo/manifest.yaml"), manifest);
    put(&dir.path().join("plugins/zoo/run"), &script(OK));
    let file = dir.path().join("longhaul.yaml");
    put(&file, config);
    let file = file.to_str().expect("it is text").to_owned();
    (dir, file)
}

fn serve(dir: &Path, config: &str, more: &[&str]) -> Daemon {
    Daemon::verb(dir, &[&["serve", "--listen", "127.0.0.1:0", "--config", config], more].concat())
}

#[test]
fn jobs_of_a_plugin_that_is_left_out_wait_with_the_reason_and_go_on_when_it_is_mended() {
    let (dir, config) = stocked("plugin_roots: [plugins]\n");
    let daemon = serve(dir.path(), &config, &["--no-dispatch"]);
    let id = create(dir.path(), &["a job", "--executor", "zoo", "--input", "{}"]);
    daemon.kill();
    let manifest = dir.path().join("plugins/zoo/manifest.yaml");
    let good = std::fs::read_to_string(&manifest).unwrap();
    put(&manifest, &good.replace("protocol: 2", "protocol: 3"));
    let daemon = serve(dir.path(), &config, &[]);
    let why = json(dir.path(), &["jobs", "why", &id]);
    assert_eq!(why["reasons"][0]["code"], "executor_left_out", "{why}");
    let told = why["reasons"][0]["detail"].as_str().unwrap();
    assert!(told.contains("zoo/manifest.yaml:2:11: protocol must be 2"), "{told}");
    let refused = longhaul(dir.path(), &["jobs", "create", "another", "--executor", "zoo"]);
    expect(1, &refused);
    assert!(stderr(&refused).contains("protocol must be 2"), "{}", stderr(&refused));
    let run = longhaul(dir.path(), &["plugin", "run", "zoo"]);
    expect(4, &run);
    assert!(stderr(&run).contains("protocol must be 2"), "{}", stderr(&run));
    // Others are done meanwhile.
    ended(dir.path(), &create(dir.path(), &["other", "--executor", "noop"]), "completed");
    assert_eq!(show(dir.path(), &id)["state"], "queued");
    daemon.kill();
    put(&manifest, &good);
    let _daemon = serve(dir.path(), &config, &[]);
    assert_eq!(ended(dir.path(), &id, "completed")["summary"], "done");
    assert_eq!(show(dir.path(), &id)["runner"]["attempt_count"], 1);
}

#[test]
fn plugin_that_is_disabled_or_lacks_a_secret_keeps_its_jobs_waiting_and_says_why() {
    for (settings, why) in [
        ("enabled: false", "longhaul.yaml:2:17: it is disabled"),
        ("secrets: { TOKEN: { env: NO_SUCH_VARIABLE_ANYWHERE } }", "TOKEN"),
    ] {
        let (dir, config) = stocked("plugin_roots: [plugins]\n");
        let daemon = serve(dir.path(), &config, &["--no-dispatch"]);
        let id = create(dir.path(), &["a job", "--executor", "zoo", "--input", "{}"]);
        daemon.kill();
        put(Path::new(&config), &format!("plugin_roots: [plugins]\nplugins: {{ zoo: {{ {settings} }} }}\n"));
        let _daemon = serve(dir.path(), &config, &[]);
        let told = json(dir.path(), &["jobs", "why", &id]);
        let detail = told["reasons"][0]["detail"].as_str().unwrap();
        assert!(told["reasons"][0]["code"] == "executor_left_out" && detail.contains(why), "{told}");
    }
}

#[test]
fn plugin_that_cannot_be_used_costs_only_itself() {
    let config =
        "plugin_roots: [plugins, nowhere]\nplugins:\n  alias: { uses: broken }\n  lost: { uses: nothing }\n";
    let (dir, config) = stocked(config);
    let manifest = |name: &str, protocol: &str| {
        let text = format!("protocol: {protocol}\nname: {name}\nentrypoint: run\ncommands: [poll]\n");
        put(&dir.path().join("plugins").join(name).join("manifest.yaml"), &text);
        put(&dir.path().join("plugins").join(name).join("run"), &script(OK));
    };
    manifest("noop", "2");
    manifest("broken", "3");
    let checked = longhaul(dir.path(), &["plugin", "check", "--config", &config]);
    expect(1, &checked);
    let told = stderr(&checked);
    for wrong in [
        "noop/manifest.yaml:2:7: the plugin \"noop\" is left out: every daemon has an executor of that name",
        "longhaul.yaml:3:10: \"alias\" uses \"broken\", which is left out: ",
        "broken/manifest.yaml:1:11: protocol must be 2",
        "longhaul.yaml:4:9: \"lost\" uses \"nothing\", and no plugin is named so",
        "longhaul.yaml:1:25: ",
    ] {
        assert!(told.contains(wrong), "{wrong}: {told}");
    }
    let one = longhaul(dir.path(), &["plugin", "check", dir.path().join("plugins/noop").to_str().unwrap()]);
    expect(1, &one);
    expect(2, &longhaul(dir.path(), &["plugin", "new", "noop", "--lang", "bash"]));
    let _daemon = serve(dir.path(), &config, &[]);
    let id = create(dir.path(), &["a job", "--executor", "zoo", "--input", "{}"]);
    assert_eq!(ended(dir.path(), &id, "completed")["summary"], "done");
    ended(dir.path(), &create(dir.path(), &["other", "--executor", "noop"]), "completed");
}

#[test]
fn run_of_a_plugin_that_is_not_there_makes_no_job() {
    let zoo = Zoo::start(&script(OK), "");
    let refused = longhaul(zoo.path(), &["plugin", "run", "zo"]);
    expect(4, &refused);
    assert!(stderr(&refused).contains("did you mean \"zoo\"?"), "{}", stderr(&refused));
    assert_eq!(json(zoo.path(), &["jobs", "list"])["work"], json!([]));
}

#[test]
fn check_and_list_say_what_the_daemon_would_leave_out() {
    let (dir, config) = stocked(
        "plugin_roots: [plugins]\nplugins: { zoo: { secrets: { TOKEN: { env: NO_SUCH_VARIABLE_ANYWHERE } } } }\n",
    );
    let checked = longhaul(dir.path(), &["plugin", "check", "--config", &config]);
    assert!(expect(1, &checked).starts_with("0 can be used: ; 1 cannot"));
    assert!(stderr(&checked).contains("TOKEN"), "{}", stderr(&checked));
    let listed = expect(0, &longhaul(dir.path(), &["plugin", "list", "--config", &config]));
    assert!(listed.contains("a secret is missing"), "{listed}");
    put(&dir.path().join("plugins/zoo/run"), "#!/usr/bin/nope\n");
    let one = longhaul(dir.path(), &["plugin", "check", dir.path().join("plugins/zoo").to_str().unwrap()]);
    expect(1, &one);
    let told = stderr(&one);
    assert!(
        told.contains("manifest.yaml:3:13: ") && told.contains("/usr/bin/nope, which is not there"),
        "{told}"
    );
}

#[test]
fn what_a_plugin_logs_names_it_and_its_job_and_settings_that_it_does_not_bear_out_are_told() {
    let logs = r#"echo '{"status": "ok", "result": "done", "logs": [{"level": "warn", "message": "paper is low"}]}'"#;
    let zoo = Zoo::start(&script(logs), "timeouts: { nocmd: 3 }");
    let id = zoo.job("{}");
    ended(zoo.path(), &id, "completed");
    let log = zoo.daemon.log();
    let line = log.lines().find(|line| line.contains("paper is low")).expect("it was logged");
    assert!(line.contains("zoo") && line.contains(&id), "{line}");
    assert!(log.contains("it has no command \"nocmd\"") && log.contains("longhaul.yaml:2:17"), "{log}");
}

#[test]
fn operator_who_runs_at_once_what_is_not_safe_at_once_is_warned() {
    let (dir, config) = stocked("plugin_roots: [plugins]\nplugins: { zoo: { parallelism: 2 } }\n");
    let manifest = dir.path().join("plugins/zoo/manifest.yaml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    put(&manifest, &format!("{text}concurrency_safe: false\n"));
    let checked = longhaul(dir.path(), &["plugin", "check", "--config", &config]);
    expect(0, &checked);
    assert!(stderr(&checked).contains("longhaul.yaml:2:17: parallelism: 2"), "{}", stderr(&checked));
}

#[test]
fn daemon_that_takes_nothing_by_itself_says_so_of_a_job_that_waits() {
    let (dir, config) = stocked("plugin_roots: [plugins]\n");
    let _daemon = serve(dir.path(), &config, &["--no-dispatch"]);
    let id = create(dir.path(), &["a job", "--executor", "zoo", "--input", "{}"]);
    let why = json(dir.path(), &["jobs", "why", &id]);
    assert_eq!(why["reasons"][0]["code"], "not_dispatched", "{why}");
    assert_eq!(why["earliest_at"], Value::Null);
}
