//! Workspaces through the real daemon: files from step to step, artifacts, what is refused, what is gone afterwards, and kill -9.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json as object};

use crate::given::{Daemon, create, ended, expect, json, longhaul, verify, within};

/// A daemon with plugins that are scripts, and pipelines of them.
struct World {
    dir: tempfile::TempDir,
    daemon: Option<Daemon>,
}

impl World {
    fn new(plugins: &[(&str, &str)], pipelines: &str, config: &str) -> Self {
        let tried = "retry: { max_attempts: 4, backoff_base_seconds: 1 }";
        let settings: Vec<String> =
            plugins.iter().map(|(name, _)| format!("{name}: {{ {tried} }}")).collect();
        let config = format!("plugins: {{ {} }}\n{config}", settings.join(", "));
        Self::of(plugins, pipelines, &config, |_| {})
    }

    fn of(plugins: &[(&str, &str)], pipelines: &str, config: &str, prepare: impl FnOnce(&Path)) -> Self {
        let dir = tempfile::tempdir().expect("there is room");
        prepare(dir.path());
        for (name, script) in plugins {
            let manifest = format!("name: {name}\nprotocol: 2\nentrypoint: run\ncommands: [poll, handle]\n");
            put(&dir.path().join(format!("plugins/{name}/manifest.yaml")), &manifest);
            put(
                &dir.path().join(format!("plugins/{name}/run")),
                &format!("#!/bin/bash\n{FIRST}\n{script}\n"),
            );
        }
        put(&dir.path().join("lines.yaml"), pipelines);
        let config = format!("plugin_roots: [plugins]\npipelines: [lines.yaml]\n{config}\n");
        put(&dir.path().join("longhaul.yaml"), &config);
        let mut world = Self { dir, daemon: None };
        world.start();
        world
    }

    fn start(&mut self) {
        let config = self.path().join("longhaul.yaml");
        let config = config.to_str().expect("it is text");
        self.daemon =
            Some(Daemon::verb(self.path(), &["serve", "--listen", "127.0.0.1:0", "--config", config]));
    }

    fn kill(&mut self) {
        self.daemon.take().expect("it runs").kill();
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Starts a pipeline; the id of its run.
    fn begin(&self, pipeline: &str) -> String {
        let started = json(self.path(), &["pipeline", "run", pipeline]);
        started["run_id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned()
    }

    fn show(&self, run: &str) -> Value {
        json(self.path(), &["runs", "show", run])["run"].clone()
    }

    /// The run, once it is over.
    fn over(&self, run: &str) -> Value {
        within("the run is over", || {
            let shown = self.show(run);
            (shown["state"] != "running").then_some(shown)
        })
    }

    fn completed(&self, pipeline: &str) -> String {
        let run = self.begin(pipeline);
        let shown = self.over(&run);
        assert_eq!(shown["state"], "completed", "{shown}");
        run
    }

    /// The job of a step.
    fn job(&self, run: &str, step: &str) -> String {
        let shown = self.show(run);
        let visits = shown["visits"].as_array().unwrap_or_else(|| panic!("{shown}"));
        let found = visits.iter().find(|one| one["step"] == step);
        let found = found.unwrap_or_else(|| panic!("{shown}"));
        found["job_id"].as_str().unwrap_or_else(|| panic!("{found}")).to_owned()
    }

    fn result(&self, run: &str, step: &str) -> Value {
        json(self.path(), &["jobs", "result", &self.job(run, step)])
    }

    /// The directory of a run.
    fn of_run(&self, run: &str) -> Option<PathBuf> {
        let found = files_below(&self.path().join("workspaces"), 3);
        found.into_iter().find(|path| path.ends_with(run))
    }

    /// What each visit has left.
    fn trees(&self, run: &str) -> Vec<PathBuf> {
        let mut trees = self.of_run(run).map_or_else(Vec::new, |dir| files_below(&dir, 1));
        trees.sort();
        trees
    }

    /// Whether no attempt has left anything half done.
    fn is_clean(&self) {
        within("no attempt is open", || {
            files_below(&self.path().join("workspaces/open/daemon"), 1).is_empty().then_some(())
        });
    }
}

/// What every script begins with: where it works, and how it answers.
const FIRST: &str = r#"request=$(cat); cd "$(jq -r .workspace_dir <<< "$request")" || exit 1
ok() { jq -n --arg result "${1:-done}" '{status: "ok", result: $result}'; }"#;

fn put(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("it has one")).expect("it can be");
    std::fs::write(path, text).expect("it can be");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("it can be");
}

/// What lies so deep below a directory.
fn files_below(dir: &Path, depth: usize) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    match depth {
        0 | 1 => paths.collect(),
        _ => paths.flat_map(|path| files_below(&path, depth - 1)).collect(),
    }
}

fn text(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.as_ref().display()))
}

const LINES: &str =
    "pipelines: [{ name: line, on: line, steps: [{ id: one, uses: one }, { id: two, uses: two }] }]";

#[test]
fn step_that_appends_in_place_changes_nothing_of_what_the_step_before_it_left() {
    let world = World::new(
        &[
            ("one", "echo one > memory.md; mkdir sub; echo deep > sub/file; ok"),
            ("two", "echo two >> memory.md; ok \"$(cat memory.md sub/file | tr '\\n' ,)\""),
        ],
        LINES,
        "",
    );
    let run = world.completed("line");
    assert_eq!(world.result(&run, "two")["summary"], "one,two,deep,");
    let trees = world.trees(&run);
    assert_eq!(trees.len(), 2, "{trees:?}");
    assert_eq!(
        (text(trees[0].join("memory.md")), text(trees[1].join("memory.md"))),
        ("one\n".into(), "one\ntwo\n".into())
    );
    let inode = |tree: &Path| std::fs::metadata(tree.join("memory.md")).expect("it is there").ino();
    assert_ne!(inode(&trees[0]), inode(&trees[1]));
    // Two directories with two digits each above the run's.
    let of_run = world.of_run(&run).expect("it is there");
    let shards = of_run.strip_prefix(world.path().join("workspaces")).expect("it is below");
    assert!(shards.iter().take(2).all(|shard| shard.len() == 2), "{shards:?}");
    world.is_clean();
}

#[test]
fn failed_attempt_leaves_nothing_that_the_next_one_sees() {
    let fails = "echo mine >> seen; if mkdir \"${0%/*}/failed\" 2> /dev/null; then echo '{\"status\": \"error\", \"error\": \"no\"}'; else ok \"$(wc -l < seen)\"; fi";
    let world = World::new(&[("one", "echo first > seen; ok"), ("two", fails)], LINES, "");
    let run = world.completed("line");
    assert_eq!(world.result(&run, "two")["summary"], "2");
    assert_eq!(world.trees(&run).len(), 2);
}

#[test]
fn branches_begin_alike_and_what_follows_finds_each_of_them() {
    let lines = "
pipelines:
- name: line
  on: line
  steps:
  - { id: one, uses: one }
  - { id: split, split: [{ id: left, uses: note }, { id: right, steps: [{ id: r1, uses: note }, { id: r2, uses: note }] }] }
  - { id: last, uses: last }
";
    let note = "echo $(jq -r .context.ductile_step_id <<< \"$request\") >> log; ok";
    let last = "ok \"$(cat log | tr '\\n' ,) $(cat branches/left/log | tr '\\n' ,) $(cat branches/right/log | tr '\\n' ,)\"";
    let world = World::new(&[("one", "echo one > log; ok"), ("note", note), ("last", last)], lines, "");
    let run = world.completed("line");
    assert_eq!(world.result(&run, "last")["summary"], "one, one,left, one,r1,r2,");
}

#[test]
fn example_passes_its_notes_from_step_to_step_and_leaves_a_report_of_which_the_event_carries_the_path() {
    let examples =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").canonicalize().expect("it is there");
    let dir = tempfile::tempdir().expect("there is room");
    let config = dir.path().join("longhaul.yaml");
    let shown = examples.display();
    put(
        &config,
        &format!("plugin_roots: ['{shown}/plugins']\npipelines: ['{shown}/pipelines/notebook.yaml']\n"),
    );
    let config = config.to_str().expect("it is text").to_owned();
    let daemon = Daemon::verb(dir.path(), &["serve", "--listen", "127.0.0.1:0", "--config", &config]);
    let world = World { dir, daemon: Some(daemon) };
    json(world.path(), &["events", "publish", "notebook.opened", "--payload", r#"{"station": "north"}"#]);
    let job_of = |title: &str| {
        let jobs = json(world.path(), &["jobs", "list"]);
        let found = jobs["work"]
            .as_array()?
            .iter()
            .find(|job| job["title"] == title && job["state"] == "completed")?
            .clone();
        found["job_id"].as_str().map(str::to_owned)
    };
    let told = within("the event has started its pipeline", || job_of("published: tell"));
    let report = job_of("notebook: report").expect("it is done");
    let report = json(world.path(), &["jobs", "result", &report]);
    let artifact = &report["artifacts"][0];
    assert_eq!(
        (&artifact["name"], &artifact["media_type"]),
        (&object!("report.md"), &object!("text/markdown")),
        "{report}"
    );
    let payload = json(world.path(), &["jobs", "result", &told])["data"].clone();
    assert_eq!(
        (&payload["artifact_path"], &payload["bytes"]),
        (&object!("artifacts/report.md"), &artifact["bytes"]),
        "{payload}"
    );
    let path = world.path().join("artifacts").join(artifact["path"].as_str().expect("it has one"));
    assert_eq!(
        text(path),
        "## evening\nnorth\nthe evening at north\n## morning\nnorth\nthe morning at north\n"
    );
}

#[test]
fn artifacts_are_listed_with_digest_and_type_and_read_by_their_names_and_what_is_left_out_is_told() {
    let odd = "mkdir -p 'artifacts/charts' artifacts/stdout; printf 1234 > 'artifacts/charts/level one.png'; echo same > artifacts/kept.txt
echo no > artifacts/stdout/x; echo no > $'artifacts/line\\nbreak'; ok";
    let changes = "echo new > artifacts/new.json; ok";
    let world = World::new(&[("one", odd), ("two", changes)], LINES, "");
    let run = world.completed("line");
    let result = world.result(&run, "one");
    let names: Vec<&str> =
        result["artifacts"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["charts/level one.png", "kept.txt"]);
    let chart = &result["artifacts"][0];
    assert_eq!((&chart["bytes"], &chart["media_type"]), (&object!(4), &object!("image/png")));
    assert_eq!(chart["sha256"], "03ac674216f3e15c761ee1a5e255f067953623c8b388b4459e13f978d7c846f4");
    let warnings = result["data"]["warnings"].to_string();
    assert!(warnings.contains("stdout/x") && warnings.contains("its name is too long"), "{warnings}");
    let next = world.result(&run, "two");
    let names: Vec<&str> =
        next["artifacts"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["new.json"], "only what it made itself");
    let job = world.job(&run, "one");
    let read = read_artifact(&world, &job, "charts%2Flevel%20one.png");
    assert!(read.ends_with("\r\n\r\n1234"), "{read}");
    let escape = read_artifact(&world, &job, "..%2F..%2F..%2Fadmin.token");
    assert!(escape.starts_with("HTTP/1.1 404"), "{escape}");
}

#[test]
fn file_in_which_a_secret_stands_is_no_artifact() {
    let one = r#"mkdir artifacts; (head -c 1048570 /dev/zero; jq -j .secrets.KEY <<< "$request") > artifacts/leak.bin; echo fine > artifacts/fine.txt; ok"#;
    let config = "plugins: { one: { secrets: { KEY: { file: key } } } }";
    let world = World::of(&[("one", one)], LINES, config, |dir| put(&dir.join("key"), "hush-hush-hush"));
    let result = ended(world.path(), &create(world.path(), &["a job", "--executor", "one"]), "completed");
    let names: Vec<&Value> = result["artifacts"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["fine.txt"], "{result}");
    assert!(
        result["data"]["warnings"].to_string().contains("a secret of the plugin stands in it"),
        "{result}"
    );
}

/// The raw answer of the daemon.
fn read_artifact(world: &World, job: &str, name: &str) -> String {
    use std::io::{Read as _, Write as _};
    let url = &world.daemon.as_ref().expect("it runs").url;
    let token = text(world.path().join("admin.token"));
    let mut stream = std::net::TcpStream::connect(url.trim_start_matches("http://")).expect("it listens");
    let asked = format!(
        "GET /jobs/{job}/artifacts/{name} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\nconnection: close\r\n\r\n",
        token.trim()
    );
    stream.write_all(asked.as_bytes()).expect("it listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

#[test]
fn what_leads_out_of_a_workspace_or_is_too_large_fails_its_step_and_is_not_kept() {
    let one = "case $(jq -r .context.ductile_pipeline <<< \"$request\") in link) ln -s /etc/passwd escape;; large) head -c 9000 /dev/zero > large;; esac; ok";
    let lines = "pipelines: [{ name: link, on: a, steps: [{ id: one, uses: one }] }, { name: large, on: b, steps: [{ id: one, uses: one }] }]";
    let world = World::new(&[("one", one)], lines, "workspaces: { max_bytes: 8192 }");
    let max_bytes = object!([{
        "limit": "workspaces.max_bytes", "value": "8192 bytes", "whose": "host default",
        "key": "workspaces.max_bytes in longhaul.yaml",
    }]);
    for (pipeline, code, told, limits) in [
        ("link", "workspace_refused", "escape is a symbolic link", &Value::Null),
        ("large", "workspace_too_large", "more than 8192 bytes", &max_bytes),
    ] {
        let run = world.begin(pipeline);
        assert_eq!(world.over(&run)["state"], "failed");
        let error = world.result(&run, "one")["error"].clone();
        assert_eq!((&error["code"], &error["limits"]), (&object!(code), limits), "{error}");
        assert!(error["message"].as_str().is_some_and(|message| message.contains(told)), "{error}");
        assert_eq!(world.trees(&run), [""; 0].map(PathBuf::from));
    }
    world.is_clean();
}

#[test]
fn job_outside_of_a_run_works_in_an_empty_directory_that_is_gone_with_it_but_for_its_artifacts() {
    let one = "ls -A > \"${0%/*}/had\"; mkdir artifacts; echo hello > artifacts/out.txt; echo scratch > scratch; ok";
    let world = World::new(&[("one", one)], LINES, "");
    for _ in 0..2 {
        let result = ended(world.path(), &create(world.path(), &["a job", "--executor", "one"]), "completed");
        assert_eq!(result["artifacts"][0]["name"], "out.txt", "{result}");
        assert_eq!(text(world.path().join("plugins/one/had")), "");
    }
    world.is_clean();
    let top = files_below(&world.path().join("workspaces"), 1);
    assert_eq!(top, [world.path().join("workspaces/open")]);
}

#[test]
fn caller_names_no_directory_that_the_operator_does_not_allow() {
    let outside = tempfile::tempdir().expect("there is room");
    let allowed = outside.path().join("allowed");
    std::fs::create_dir(&allowed).expect("it can be");
    std::os::unix::fs::symlink("/etc", allowed.join("out")).expect("it can be");
    let config = format!("workspaces: {{ allowed_dirs: ['{}'] }}", allowed.display());
    let world = World::new(&[("one", "touch was-here; ok \"$(pwd -P)\"")], LINES, &config);
    let input = |dir: &Path| object!({ "workspace_dir": dir }).to_string();
    let job = |dir: &Path| create(world.path(), &["a job", "--executor", "one", "--input", &input(dir)]);
    for refused in [
        Path::new("/etc"),
        outside.path(),
        &allowed.join("out"),
        &allowed.join(".."),
        &allowed.join("none"),
        Path::new("."),
    ] {
        let error = ended(world.path(), &job(refused), "failed")["error"].clone();
        assert_eq!(error["code"], "invalid_input", "{error}");
        assert!(error["message"].as_str().is_some_and(|told| told.contains("allowed_dirs")), "{error}");
    }
    let result = ended(world.path(), &job(&allowed), "completed");
    assert_eq!(result["summary"], allowed.canonicalize().expect("it is there").to_str().expect("it is text"));
    assert!(allowed.join("was-here").exists());
}

#[test]
fn workspace_goes_with_its_run_and_not_before() {
    let world = World::new(
        &[("one", "echo one > a; ok"), ("two", "ok")],
        LINES,
        "retention: { completed_seconds: 1 }",
    );
    let run = world.begin("line");
    within("the run has left something", || world.of_run(&run));
    within("the run is retired", || {
        longhaul(world.path(), &["runs", "show", &run]).status.code().filter(|code| *code != 0)
    });
    within("its workspace is gone", || world.of_run(&run).is_none().then_some(()));
}

#[test]
fn killed_in_the_middle_of_a_step_the_run_goes_on_with_what_was_left_before() {
    let two = "echo $$ > \"${0%/*}/pid\"; echo begun >> a; echo half > half; if mkdir \"${0%/*}/held\" 2> /dev/null; then sleep 600; fi; rm half; ok \"$(tr '\\n' , < a)\"";
    let mut world = World::new(&[("one", "echo one > a; ok"), ("two", two)], LINES, "");
    let run = world.begin("line");
    within("the second step is in the middle", || {
        world.path().join("plugins/two/held").exists().then_some(())
    });
    let half = || {
        files_below(&world.path().join("workspaces/open/daemon"), 2)
            .into_iter()
            .any(|path| path.ends_with("half"))
    };
    within("it has written half of its files", || half().then_some(()));
    // What nobody knows any more, and what an earlier daemon left at its work.
    let unknown = world.path().join("workspaces/ab/cd/run-00000000000000000000000000000000");
    put(&unknown.join("0-attempt-1/a"), "old");
    put(&world.path().join("workspaces/open/daemon/attempt-dead/half"), "old");
    world.kill();
    world.start();
    let shown = world.over(&run);
    assert_eq!(shown["state"], "completed", "{shown}");
    assert_eq!(world.result(&run, "two")["summary"], "one,begun,");
    let trees = world.trees(&run);
    assert_eq!(trees.len(), 2, "the run is known, and what it left stays: {trees:?}");
    assert_eq!(text(trees[0].join("a")), "one\n");
    assert!(!trees[1].join("half").exists());
    within("what nobody knows is gone", || (!unknown.exists()).then_some(()));
    world.is_clean();
    drop(world.daemon.take());
    verify(world.path());
}

#[test]
fn retry_of_a_failed_step_begins_where_the_step_began() {
    let two = "echo mine >> a; if mkdir \"${0%/*}/failed\" 2> /dev/null; then echo '{\"status\": \"error\", \"error\": \"no\", \"retry\": false}'; else ok \"$(tr '\\n' , < a)\"; fi";
    let world = World::new(&[("one", "echo one > a; ok"), ("two", two)], LINES, "");
    let run = world.begin("line");
    assert_eq!(world.over(&run)["state"], "failed");
    expect(0, &longhaul(world.path(), &["runs", "retry", &run]));
    within("the run is completed", || (world.show(&run)["state"] == "completed").then_some(()));
    assert_eq!(world.result(&run, "two")["summary"], "one,mine,");
}

#[test]
fn step_that_empties_its_workspace_leaves_it_empty() {
    let lines = "pipelines: [{ name: line, on: line, steps: [{ id: one, uses: one }, { id: two, uses: two }, { id: none, uses: noop }, { id: last, uses: last }] }]";
    let world = World::new(
        &[("one", "echo one > a; ok"), ("two", "rm a; ok"), ("last", "ok \"$(ls -A | wc -l)\"")],
        lines,
        "",
    );
    let run = world.completed("line");
    assert_eq!(world.result(&run, "last")["summary"], "0");
}
