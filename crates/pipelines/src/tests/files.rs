//! Several pipelines in several files: a mistake in one touches no other.

use std::fs;

use super::super::load::{MAX_PER_TRIGGER, MAX_PIPELINES};
use super::*;

const GOOD: &str = "pipelines: [{ name: good, on: e, steps: [{ uses: x }] }]\n";

#[test]
fn bad_pipeline_is_left_out_and_the_others_are_there() {
    let text = "
pipelines:
- { name: a, on: e, steps: [{ uses: x }] }
- { name: b, on: e, stpes: [{ uses: x }] }
- nonsense
- { name: c, on: e, steps: [{ uses: x }] }
";
    let loaded = parse(&[("f.yaml", text), ("good.yaml", GOOD)]);
    assert_eq!(names(&loaded), ["a", "c", "good"]);
    let expected = [
        r#"f.yaml:4:3: the key "steps" is missing"#,
        r#"f.yaml:4:21: unknown key "stpes"; did you mean "steps"?"#,
        "f.yaml:5:3: keys with values are expected here, as { key: value }",
    ];
    assert_eq!(told(&loaded), expected);
}

#[test]
fn file_that_is_no_yaml_is_one_mistake_and_the_other_files_are_read() {
    for (text, mistake) in [
        ("pipelines: [\n", "f.yaml:"),
        ("", "f.yaml"),
        ("- a\n", "f.yaml:1:1: keys with values are expected here"),
        ("pipelines: 3\n", "f.yaml:1:12: a list is expected here"),
        ("pipelines:\n", "f.yaml:1:10: a list is expected here"),
        ("{}\n", "f.yaml:1:1: the key \"pipelines\" is missing"),
        ("pipeline: []\n", "f.yaml:1:1: unknown key \"pipeline\"; did you mean \"pipelines\"?"),
        ("pipelines: []\npipelines: []\n", "f.yaml:2:1: the key \"pipelines\" occurs twice"),
        ("a: &x []\npipelines: *x\n", "f.yaml:"),
        ("pipelines: []\n---\npipelines: []\n", "f.yaml:"),
    ] {
        let loaded = parse(&[("f.yaml", text), ("good.yaml", GOOD)]);
        assert_eq!(names(&loaded), ["good"], "{text}");
        let told = told(&loaded);
        assert!(!told.is_empty() && told[0].starts_with(mistake), "{text}: {told:?}");
    }
}

#[test]
fn whole_number_that_would_be_rounded_is_refused() {
    let text = |value: &str| {
        let condition = format!("{{ path: payload.a, op: eq, value: {value} }}");
        format!("pipelines: [{{ name: p, on: e, if: {condition}, steps: [{{ uses: x }}] }}]\n")
    };
    for value in ["18446744073709551615", "-9223372036854775808", "0.1", "1e15"] {
        assert_eq!(told(&parse(&[("f.yaml", &text(value))])), Vec::<String>::new(), "{value}");
    }
    for value in ["18446744073709551616", "-9223372036854775809", "123456789012345678901234567890"] {
        let expected = "f.yaml:1:69: a number this large is not exact: whole numbers have at most 64 bits";
        assert_eq!(told(&parse(&[("f.yaml", &text(value))])), [expected], "{value}");
    }
}

#[test]
fn two_pipelines_with_one_name_are_told_with_both_places_and_none_of_them_is_used() {
    let a = "pipelines: [{ name: x, on: e, steps: [{ uses: x }] }, { name: caller, on: e, steps: [{ call: x }] }]\n";
    let b = "pipelines:\n- { on: e, name: x, steps: [{ uses: y }] }\n";
    let loaded = parse(&[("a.yaml", a), ("b.yaml", b), ("good.yaml", GOOD)]);
    let expected = [
        r#"a.yaml:1:86: "x" cannot be called: it has mistakes of its own"#,
        r#"b.yaml:2:18: there are two pipelines named "x"; the other one is in a.yaml:1:21"#,
    ];
    assert_eq!(told(&loaded), expected);
    assert_eq!(names(&loaded), ["good"]);
}

#[test]
fn no_more_pipelines_than_the_limit_are_read_and_no_more_than_the_limit_start_at_once() {
    let pipelines = |count: usize, on: &dyn Fn(usize) -> usize| -> String {
        let each =
            (0..count).map(|n| format!("- {{ name: p{n}, on: e{}, steps: [{{ uses: x }}] }}\n", on(n)));
        format!("pipelines:\n{}", each.collect::<String>())
    };
    let loaded = parse(&[("f.yaml", &pipelines(MAX_PIPELINES + 5, &|n| n))]);
    assert_eq!(loaded.pipelines.len(), MAX_PIPELINES);
    assert_eq!(told(&loaded), ["f.yaml:1002:3: there are more than 1000 pipelines"]);
    let loaded = parse(&[("f.yaml", &pipelines(MAX_PER_TRIGGER + 1, &|_| 0))]);
    assert_eq!(loaded.pipelines.len(), MAX_PER_TRIGGER);
    assert_eq!(told(&loaded), ["f.yaml:102:11: more than 100 pipelines are on e0"]);
}

#[test]
fn directory_is_read_in_the_order_of_its_names_and_not_what_lies_deeper() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, pipeline: &str| {
        let text = format!("pipelines: [{{ name: {pipeline}, on: e, steps: [{{ uses: x }}] }}]\n");
        fs::write(dir.path().join(name), text).unwrap();
    };
    write("b.yml", "second");
    write("a.yaml", "first");
    write("notes.txt", "other");
    fs::create_dir(dir.path().join("deeper.yaml")).unwrap();
    write("deeper.yaml/c.yaml", "third");
    let loaded = load(&[dir.path().join("b.yml"), dir.path().to_owned()]);
    assert_eq!(told(&loaded), Vec::<String>::new());
    assert_eq!(names(&loaded), ["second", "first"]);
}

#[test]
fn file_that_is_not_there_or_too_large_is_told_and_the_others_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let (huge, good, gone) =
        (dir.path().join("huge.yaml"), dir.path().join("good.yaml"), dir.path().join("gone.yaml"));
    fs::write(&huge, format!("{GOOD}# {}", "x".repeat(1_048_576))).unwrap();
    fs::write(&good, GOOD).unwrap();
    let loaded = load(&[huge, gone, good]);
    assert_eq!(names(&loaded), ["good"]);
    let told = told(&loaded);
    assert!(told[0].ends_with("huge.yaml: has more than 1048576 bytes"), "{told:?}");
    assert!(told[1].contains("gone.yaml: cannot be read: "), "{told:?}");
}
