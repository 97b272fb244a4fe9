//! What a run carries, and what it refuses to carry.

use serde_json::{Value, json};

use super::super::path::Roots;
use super::super::written::Written;
use super::*;

fn carry(baggage: Value, inherited: Value, payload: &Value) -> Result<Value, String> {
    let baggage: Baggage = serde_json::from_value(baggage).unwrap();
    let Value::Object(inherited) = inherited else { panic!("an object") };
    let emitters = json!({ "origin": "tide_gauge" });
    let roots = Roots { payload, context: &emitters, config: &Value::Null };
    baggage.carry(&inherited, &roots).map(Value::Object).map_err(|error| error.to_string())
}

#[test]
fn claims_are_added_to_what_is_carried_and_nothing_else_is() {
    let claims = json!({ "tide.station": "payload.station", "source": "context.origin" });
    let payload = json!({ "station": "north", "level": 3 });
    let carried = carry(claims, json!({ "tide": { "id": 7 } }), &payload);
    assert_eq!(carried, Ok(json!({ "tide": { "id": 7, "station": "north" }, "source": "tide_gauge" })));
}

#[test]
fn whole_object_is_carried_under_its_namespace_and_merged_all_the_way_down() {
    let whole = json!({ "from": "payload.tide", "namespace": "tide", "extra": "payload.n" });
    let payload = json!({ "tide": { "at": { "x": 1 }, "level": 5 }, "n": 2 });
    let carried = carry(whole.clone(), json!({ "tide": { "at": { "y": 2 } } }), &payload);
    assert_eq!(carried, Ok(json!({ "tide": { "at": { "x": 1, "y": 2 }, "level": 5 }, "extra": 2 })));
    let told = carry(whole, json!({}), &json!({ "tide": 3, "n": 2 })).unwrap_err();
    assert_eq!(told, "baggage tide: an object is carried under a namespace, and payload.tide is a number");
}

#[test]
fn what_is_carried_may_be_said_again_and_never_changed() {
    let claim = json!({ "a.b": "payload.x" });
    let inherited = json!({ "a": { "b": { "c": 1 } } });
    let said = |x: Value| carry(claim.clone(), inherited.clone(), &json!({ "x": x }));
    assert_eq!(said(json!({ "c": 1 })), Ok(inherited.clone()));
    assert_eq!(said(json!({ "c": 1, "d": 2 })), Ok(json!({ "a": { "b": { "c": 1, "d": 2 } } })));
    assert_eq!(
        said(json!({ "c": 2 })).unwrap_err(),
        "baggage a.b: a.b.c is carried already and cannot be changed"
    );
    assert_eq!(said(json!(3)).unwrap_err(), "baggage a.b: a.b is carried already and cannot be changed");
}

#[test]
fn scalar_cannot_become_an_object() {
    let told =
        carry(json!({ "a.b.c": "payload.x" }), json!({ "a": { "b": 1 } }), &json!({ "x": 1 })).unwrap_err();
    assert_eq!(told, "baggage a.b.c: a.b is carried already and cannot be changed");
    let nothing = carry(json!({ "a.b": "payload.x" }), json!({ "a": null }), &json!({ "x": 1 }));
    assert_eq!(nothing.unwrap_err(), "baggage a.b: a is carried already and cannot be changed");
}

#[test]
fn missing_source_is_an_error_that_names_it() {
    let told = carry(json!({ "a": "payload.b.c" }), json!({}), &json!({ "b": 1 })).unwrap_err();
    assert_eq!(told, "baggage a: there is no payload.b.c");
}

#[test]
fn no_more_is_carried_than_the_limit() {
    let claim =
        |bytes: usize| carry(json!({ "a": "payload.x" }), json!({}), &json!({ "x": "x".repeat(bytes) }));
    let around = r#"{"a":""}"#.len();
    assert!(claim(MAX_CONTEXT_BYTES - around).is_ok());
    let told = claim(MAX_CONTEXT_BYTES - around + 1).unwrap_err();
    assert_eq!(told, "baggage: the context would be over 1048576 bytes");
}

#[test]
fn baggage_that_was_kept_is_the_one_that_was_written() {
    let written = json!({ "a.b": "payload.x", "from": "payload", "namespace": "event" });
    let baggage: Baggage = serde_json::from_value(written.clone()).unwrap();
    assert_eq!(serde_json::to_value(baggage).unwrap(), written);
}

#[test]
fn every_mistake_is_told_with_its_place() {
    for (yaml, told) in [
        ("a: payload.x\nb: 3\n", "2:4: a text is expected here; write '3'"),
        ("a: config.x\n", "1:4: \"config.x\": a path begins with payload or context"),
        (
            "a..b: payload.x\n",
            "1:1: \"a..b\": a path is names with dots between them; a name has letters, digits, _ and -",
        ),
        (
            "ductile.x: payload.x\n",
            "1:1: \"ductile.x\": correlation and names that begin with ductile are the host's own",
        ),
        (
            "correlation: payload.x\n",
            "1:1: \"correlation\": correlation and names that begin with ductile are the host's own",
        ),
        ("from: payload\n", "1:1: baggage has both from and namespace, or none of them"),
        (
            "from: payload\nnamespace: 'a b'\n",
            "2:12: \"a b\": a path is names with dots between them; a name has letters, digits, _ and -",
        ),
        ("a: { b: payload.x }\n", "1:4: a text is expected here"),
        ("[a]", "1:1: keys with values are expected here, as { key: value }"),
    ] {
        let written = Written::parse("f.yaml", yaml).unwrap();
        let mistake = Baggage::read(&written).unwrap_err().in_file("f.yaml").to_string();
        assert_eq!(mistake, format!("f.yaml:{told}"), "{yaml}");
    }
}
