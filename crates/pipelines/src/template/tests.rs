//! What templates give, and how they are refused.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::path::Roots;
use super::super::written::Written;
use super::*;

fn render(with: Value, payload: &Value) -> Result<Value, String> {
    let with: With = serde_json::from_value(with).unwrap();
    let (context, config) = (json!({ "run": "R1" }), Value::Null);
    let roots = Roots { payload, context: &context, config: &config };
    with.render(&roots).map(Value::Object).map_err(|error| error.to_string())
}

fn text(template: &str, payload: &Value) -> Result<Value, String> {
    render(json!({ "x": template }), payload).map(|mut given| given["x"].take())
}

#[test]
fn one_reference_alone_keeps_the_kind_of_the_value() {
    for value in [
        json!(1_700_000_000_123_456_789_u64),
        json!(1.5),
        json!(true),
        json!(null),
        json!([1]),
        json!({ "b": 2 }),
    ] {
        assert_eq!(text("{payload.a}", &json!({ "a": value })), Ok(value));
    }
}

#[test]
fn anything_else_is_text_and_null_prints_as_nothing() {
    let payload = json!({ "n": 2150, "s": "north", "none": null, "list": [1, "a"], "flag": true });
    for (template, given) in [
        ("level {payload.n} mm at {payload.s}", "level 2150 mm at north"),
        ("{payload.n}{payload.s}", "2150north"),
        (" {payload.n}", " 2150"),
        ("[{payload.none}]", "[]"),
        ("{payload.list} {payload.flag}", "[1,\"a\"] true"),
        ("{context.run}/{ payload.s }", "R1/north"),
        ("plain", "plain"),
        ("", ""),
    ] {
        assert_eq!(text(template, &payload), Ok(json!(given)), "{template}");
    }
}

#[test]
fn doubled_braces_are_braces() {
    let payload = json!({ "a": 1 });
    for (template, given) in [("{{}}", "{}"), ("{{payload.a}}", "{payload.a}"), ("{{{payload.a}}}", "{1}")] {
        assert_eq!(text(template, &payload), Ok(json!(given)), "{template}");
    }
}

#[test]
fn lists_objects_and_plain_values_are_given_as_they_are_with_their_templates_filled_in() {
    let with = json!({ "n": 3, "deep": { "list": ["{payload.a}", true, null, "<{payload.a}>"] } });
    let given = json!({ "n": 3, "deep": { "list": [7, true, null, "<7>"] } });
    assert_eq!(render(with, &json!({ "a": 7 })), Ok(given));
}

#[test]
fn entries_read_what_was_there_before_and_not_each_other() {
    let with = json!({ "a": "{payload.b}", "b": "{payload.a}" });
    assert_eq!(render(with, &json!({ "a": 1, "b": 2 })), Ok(json!({ "a": 2, "b": 1 })));
}

#[test]
fn missing_path_is_an_error_that_names_it() {
    assert_eq!(text("a {payload.b.c}", &json!({ "b": 1 })).unwrap_err(), "with.x: there is no payload.b.c");
    assert_eq!(text("{context.nothing}", &json!({})).unwrap_err(), "with.x: there is no context.nothing");
}

#[test]
fn many_references_to_a_large_value_are_refused_before_they_are_put_together() {
    let payload = json!({ "a": "x".repeat(MAX_BODY_BYTES / 2) });
    assert!(text("{payload.a}{payload.a}", &payload).is_ok());
    let told = text(&"{payload.a}".repeat(1_000), &payload).unwrap_err();
    assert_eq!(told, "with.x: what the step would be given is over 1048576 bytes");
    let several = json!({ "x": "{payload}", "y": "{payload}", "z": "{payload}" });
    assert!(render(several, &payload).unwrap_err().contains("is over 1048576 bytes"));
}

#[test]
fn wrong_braces_and_paths_are_told_with_their_place() {
    for (template, told) in [
        ("a { b", "a brace is opened and never closed; write {{ for a brace"),
        ("a } b", "a brace is closed that was never opened; write }} for a brace"),
        ("{payload.a}}", "a brace is closed that was never opened; write }} for a brace"),
        ("{}", "there is nothing between the braces; write {{}} for braces"),
        ("{ }", "there is nothing between the braces; write {{}} for braces"),
        ("{payload.{a}}", "braces cannot stand in each other; write {{ for a brace"),
        ("{config.a}", "\"config.a\": a path begins with payload or context"),
        (
            "{payload.a b}",
            "\"payload.a b\": a path is names with dots between them; a name has letters, digits, _ and -",
        ),
    ] {
        let written = Written::parse("f.yaml", &format!("a: 1\nx: '{template}'\n")).unwrap();
        let mistake = With::read(&written).unwrap_err().in_file("f.yaml").to_string();
        assert_eq!(mistake, format!("f.yaml:2:4: {told}"), "{template}");
    }
}

proptest! {
    #[test]
    fn any_text_with_its_braces_doubled_comes_out_as_it_was(plain in "[a{}é ]{0,20}") {
        let doubled = plain.replace('{', "{{").replace('}', "}}");
        prop_assert_eq!(text(&doubled, &json!({})), Ok(json!(plain)));
    }

    #[test]
    fn what_can_be_read_is_kept_as_it_was_written(written in "[a{}.]{0,12}|\\{payload\\.[a-z]{1,3}\\}[a{}]{0,4}") {
        if let Ok(with) = serde_json::from_value::<With>(json!({ "x": written })) {
            prop_assert_eq!(serde_json::to_value(with).unwrap(), json!({ "x": written }));
        }
    }
}
