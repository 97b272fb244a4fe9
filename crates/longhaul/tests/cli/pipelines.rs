//! `longhaul pipeline`, and the pipelines that a configuration names.

use std::path::{Path, PathBuf};

use crate::given::{expect, longhaul, stderr};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn write(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, text).expect("it is writable");
    path.to_str().expect("it is UTF-8").to_owned()
}

const GOOD: &str = "pipelines: [{ name: good, on: e, steps: [{ id: a, uses: noop }] }]\n";

#[test]
fn every_example_passes_its_check() {
    let dir = tempfile::tempdir().unwrap();
    let folder = examples().join("pipelines");
    let checked = longhaul(dir.path(), &["pipeline", "check", folder.to_str().unwrap()]);
    let said = expect(0, &checked);
    assert_eq!(
        said,
        "8 can be used: agentic-start, agentic-tool-fetch, agentic-tool-fabric, notebook, published, tide-alert, keep, \
         job-failed\n"
    );
    assert_eq!(stderr(&checked), "");
}

#[test]
fn every_mistake_of_every_file_is_one_line_with_its_place_and_the_exit_code_is_1() {
    let dir = tempfile::tempdir().unwrap();
    let bad = write(
        dir.path(),
        "bad.yaml",
        "pipelines:\n- { name: p, on: e, step: [] }\n- { name: q, on: e, steps: [{ call: nowhere }] }\n",
    );
    let good = write(dir.path(), "good.yaml", GOOD);
    let checked = longhaul(dir.path(), &["pipeline", "check", &bad, &good]);
    assert_eq!(expect(1, &checked), "1 can be used: good\n");
    let told = stderr(&checked);
    let expected = [
        format!("{bad}:2:3: the key \"steps\" is missing"),
        format!("{bad}:2:21: unknown key \"step\"; did you mean \"steps\"?"),
        format!("{bad}:3:29: there is no pipeline named \"nowhere\""),
    ];
    assert_eq!(told.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn pipelines_are_those_that_the_configuration_names_seen_from_where_it_lies() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("sub")).unwrap();
    write(dir.path(), "sub/good.yaml", GOOD);
    let config = write(dir.path(), "longhaul.yaml", "pipelines: [sub]\n");
    let with_config =
        |arguments: &[&str]| longhaul(dir.path(), &[arguments, &["--config", &config]].concat());
    assert_eq!(expect(0, &with_config(&["pipeline", "check"])), "1 can be used: good\n");
    assert_eq!(expect(0, &with_config(&["pipeline", "graph", "good"])), "good: on e\n  a: noop\n");
    write(dir.path(), "longhaul.yaml", "listen: 127.0.0.1:0\n");
    let nothing = with_config(&["pipeline", "check"]);
    expect(2, &nothing);
    assert!(stderr(&nothing).contains("longhaul.yaml names no pipelines"), "{}", stderr(&nothing));
}

#[test]
fn step_that_uses_what_the_configuration_does_not_have_is_told_by_the_check_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "good.yaml", &GOOD.replace("noop", "nobody"));
    let config = write(dir.path(), "longhaul.yaml", "pipelines: [good.yaml]\n");
    let checked = longhaul(dir.path(), &["pipeline", "check", "--config", &config]);
    assert_eq!(expect(0, &checked), "1 can be used: good\n");
    let told = stderr(&checked);
    assert!(told.contains("good.yaml:1:42: step \"a\" of the pipeline \"good\" uses \"nobody\""), "{told}");
}

#[test]
fn pipeline_that_cannot_work_is_a_warning_of_the_configuration_and_no_reason_not_to_start() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "bad.yaml", "pipelines: [{ name: p, on: e }]\n");
    write(dir.path(), "good.yaml", &GOOD.replace("noop", "nobody"));
    let config = write(dir.path(), "longhaul.yaml", "pipelines: [bad.yaml, good.yaml]\n");
    let checked = longhaul(dir.path(), &["config", "check", &config]);
    let said = expect(1, &checked);
    assert!(said.contains("can be used, but not all of its pipelines (1 mistakes)"), "{said}");
    let told = stderr(&checked);
    assert!(told.contains("bad.yaml:1:13: the key \"steps\" is missing\n"), "{told}");
    let nobody = "good.yaml:1:42: step \"a\" of the pipeline \"good\" uses \"nobody\", and there is no such executor\n";
    assert!(told.contains(nobody), "{told}");
}

#[test]
fn pipeline_is_shown_in_every_format_and_one_that_is_not_there_is_1() {
    let dir = tempfile::tempdir().unwrap();
    let file = examples().join("pipelines/tide.yaml");
    let graph = |arguments: &[&str]| {
        let file = ["--file", file.to_str().unwrap()];
        longhaul(dir.path(), &[&["pipeline", "graph"], arguments, &file].concat())
    };
    let tree = expect(0, &graph(&["tide-alert"]));
    assert!(
        tree.starts_with("tide-alert: on tide.changed, if payload.level_mm gte 2000\n  render: noop"),
        "{tree}"
    );
    assert!(tree.contains("      archive/store: noop"), "{tree}");
    assert!(expect(0, &graph(&["tide-alert", "--format", "mermaid"])).starts_with("flowchart TD\n"));
    assert!(expect(0, &graph(&["tide-alert", "--format", "dot"])).starts_with("digraph \"tide-alert\" {\n"));
    let missing = graph(&["tide-alarm"]);
    expect(1, &missing);
    let told = "no pipeline named \"tide-alarm\" can be used; did you mean \"tide-alert\"?\n";
    assert!(stderr(&missing).ends_with(told), "{}", stderr(&missing));
}
