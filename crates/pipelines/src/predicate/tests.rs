//! What predicates say, and how they are refused.

use std::cmp::Ordering;

use jsone::compare_numbers as compare;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::path::Roots;
use super::super::written::Written;
use super::*;

fn parse(written: Value) -> Predicate {
    serde_json::from_value(written).unwrap()
}

fn evaluate(written: Value, payload: &Value) -> Result<bool, String> {
    let (context, config) = (json!({ "station": "north" }), json!({ "limit": 7 }));
    let roots = Roots { payload, context: &context, config: &config };
    parse(written).evaluate(&roots).map_err(|error| error.to_string())
}

fn test(op: &str, value: Value, found: Value) -> Result<bool, String> {
    evaluate(json!({ "path": "payload.a", "op": op, "value": value }), &json!({ "a": found }))
}

fn wrong(yaml: &str) -> String {
    let written = Written::parse("f.yaml", yaml).unwrap();
    Predicate::read(&written).unwrap_err().in_file("f.yaml").to_string()
}

#[test]
fn every_comparison_says_yes_and_no() {
    for (op, value, yes, no) in [
        ("eq", json!("a"), json!("a"), json!("A")),
        ("eq", json!(true), json!(true), json!(false)),
        ("eq", json!(null), json!(null), json!(0)),
        ("eq", json!({ "x": [1, 2] }), json!({ "x": [1.0, 2] }), json!({ "x": [1, 2, 3] })),
        ("neq", json!("a"), json!("b"), json!("a")),
        ("in", json!(["a", 3]), json!(3), json!("b")),
        ("gt", json!(3), json!(4), json!(3)),
        ("gte", json!(3), json!(3), json!(2)),
        ("lt", json!(3), json!(2.5), json!(3)),
        ("lte", json!(3.5), json!(3), json!(4)),
        ("contains", json!("URGENT"), json!("is urgent!"), json!("is not")),
        ("startswith", json!("re:"), json!("RE: tide"), json!("tide re:")),
        ("endswith", json!(".PDF"), json!("a.pdf"), json!("a.pdf.txt")),
        ("regex", json!("[a-z]+"), json!("tide"), json!("tide 3")),
    ] {
        assert_eq!(test(op, value.clone(), yes.clone()), Ok(true), "{yes} {op} {value}");
        assert_eq!(test(op, value.clone(), no.clone()), Ok(false), "{no} {op} {value}");
    }
}

#[test]
fn integer_literal_matches_an_integer_that_no_float_could_hold() {
    let payload: Value = serde_json::from_str(r#"{"mtime_ns": 1700000000123456789}"#).unwrap();
    let eq =
        |value: Value| evaluate(json!({ "path": "payload.mtime_ns", "op": "eq", "value": value }), &payload);
    assert_eq!(eq(json!(1_700_000_000_123_456_789_u64)), Ok(true));
    assert_eq!(eq(json!(1_700_000_000_123_456_788_u64)), Ok(false));
}

#[test]
fn integers_at_the_edges_of_64_bits_are_compared_with_floats_by_their_worth() {
    let two_to_64 = json!(18_446_744_073_709_551_616.0_f64);
    let two_to_63 = json!(9_223_372_036_854_775_808.0_f64);
    for (a, b, ordering) in [
        (json!(u64::MAX), two_to_64.clone(), Ordering::Less),
        (json!(i64::MAX), two_to_63.clone(), Ordering::Less),
        (json!(1_u64 << 63), two_to_63, Ordering::Equal),
        (json!(i64::MIN), json!(-9_223_372_036_854_775_808.0_f64), Ordering::Equal),
        (json!(i64::MIN), json!(-1e300), Ordering::Greater),
        (json!(u64::MAX), json!(1e300), Ordering::Less),
        (json!(-1), json!(-1.5), Ordering::Greater),
        (json!(0), json!(-0.0), Ordering::Equal),
        (json!(i64::MIN), json!(u64::MAX), Ordering::Less),
    ] {
        let (Value::Number(x), Value::Number(y)) = (&a, &b) else { panic!("numbers") };
        assert_eq!(compare(x, y), ordering, "{a} and {b}");
        assert_eq!(compare(y, x), ordering.reverse(), "{b} and {a}");
    }
}

proptest! {
    #[test]
    fn whole_numbers_are_ordered_as_whole_numbers(a in any::<i64>(), b in any::<u64>()) {
        let exact = i128::from(a).cmp(&i128::from(b));
        prop_assert_eq!(compare(&a.into(), &b.into()), exact);
        prop_assert_eq!(compare(&b.into(), &a.into()), exact.reverse());
        let near = a.saturating_add(1);
        prop_assert_eq!(compare(&a.into(), &near.into()), a.cmp(&near));
    }

    #[test]
    fn a_float_that_is_whole_equals_that_integer_and_no_neighbour(whole in -(1_i64 << 53)..(1_i64 << 53)) {
        #[allow(clippy::cast_precision_loss, reason = "within what a float holds exactly")]
        let float = Number::from_f64(whole as f64).unwrap();
        prop_assert_eq!(compare(&whole.into(), &float), Ordering::Equal);
        prop_assert_eq!(compare(&(whole + 1).into(), &float), Ordering::Greater);
        prop_assert_eq!(compare(&float, &(whole - 1).into()), Ordering::Greater);
    }
}

#[test]
fn all_roots_are_read_and_numbers_lead_into_lists() {
    let payload = json!({ "items": [{ "n": 1 }, { "n": 2 }] });
    let eq =
        |path: &str, value: Value| evaluate(json!({ "path": path, "op": "eq", "value": value }), &payload);
    assert_eq!(eq("payload.items.1.n", json!(2)), Ok(true));
    assert_eq!(eq("context.station", json!("north")), Ok(true));
    assert_eq!(eq("config.limit", json!(7)), Ok(true));
}

#[test]
fn missing_is_null_for_equality_and_exists_only_says_whether_it_is_there() {
    let payload = json!({ "empty": null });
    let of = |path: &str, op: &str| evaluate(json!({ "path": path, "op": op }), &payload);
    assert_eq!((of("payload.empty", "exists"), of("payload.none", "exists")), (Ok(true), Ok(false)));
    let missing = json!({ "path": "payload.none", "op": "eq", "value": null });
    assert_eq!(evaluate(missing, &payload), Ok(true));
}

#[test]
fn value_of_the_wrong_kind_is_an_error_that_names_the_path_and_the_kinds() {
    let told = |op: &str, value: Value, found: Value| test(op, value, found).unwrap_err();
    assert_eq!(told("gt", json!(1), json!("2")), "payload.a: gt needs a number, and there is a text");
    assert_eq!(told("lte", json!(1), json!(null)), "payload.a: lte needs a number, and there is null");
    assert_eq!(
        told("contains", json!("x"), json!(["x"])),
        "payload.a: contains needs a text, and there is a list"
    );
    assert_eq!(told("regex", json!("x"), json!(7)), "payload.a: regex needs a text, and there is a number");
    let nothing = evaluate(json!({ "path": "payload.b.c", "op": "gt", "value": 1 }), &json!({}));
    assert_eq!(nothing.unwrap_err(), "payload.b.c: gt needs a number, and there is nothing");
}

#[test]
fn what_is_decided_does_not_look_any_further() {
    let exists = json!({ "path": "payload.n", "op": "exists" });
    let unfit = json!({ "path": "payload.n", "op": "gt", "value": 1 });
    assert_eq!(evaluate(json!({ "all": [exists, unfit] }), &json!({})), Ok(false));
    assert_eq!(evaluate(json!({ "any": [{ "not": exists }, unfit] }), &json!({})), Ok(true));
    assert!(evaluate(json!({ "all": [unfit, exists] }), &json!({})).is_err());
}

#[test]
fn pattern_matches_whole_texts_alone() {
    for (pattern, text, matches) in [
        ("a|b", "ab", false),
        ("a|b", "b", true),
        ("a", "a\n", false),
        ("(?m)a$", "a\nb", false),
        ("(?i)TIDE", "tide", true),
        (".*", "", true),
    ] {
        assert_eq!(test("regex", json!(pattern), json!(text)), Ok(matches), "{pattern} {text:?}");
    }
}

#[test]
fn predicate_that_was_kept_is_the_one_that_was_written() {
    for written in [
        json!({ "path": "payload.a", "op": "exists" }),
        json!({ "path": "context.b-c.d_e", "op": "in", "value": [1, u64::MAX, i64::MIN, 1.5, "x", null] }),
        json!({ "all": [{ "path": "payload.a", "op": "regex", "value": "a.*" }, { "not": { "path": "config.x", "op": "eq", "value": {"y": 1} } }] }),
        json!({ "any": [{ "path": "payload.a", "op": "endswith", "value": "Z" }] }),
    ] {
        assert_eq!(serde_json::to_value(parse(written.clone())).unwrap(), written);
    }
}

#[test]
fn every_mistake_is_told_with_its_place() {
    let either = "a predicate is either path, op and value, or all, or any, or not";
    let ops = "exists, eq, neq, in, gt, gte, lt, lte, contains, startswith, endswith, regex";
    for (yaml, told) in [
        ("{}", format!("1:1: {either}")),
        ("{ value: 1 }", format!("1:1: {either}")),
        ("{ all: [], any: [] }", format!("1:1: {either}")),
        ("{ not: { path: payload.a, op: exists }, op: eq }", format!("1:1: {either}")),
        ("not:\n  all: []\n", "2:8: this list is empty".to_owned()),
        ("path: payload.a\nvalue: 1\n", format!("1:1: the key \"op\" is missing; it is one of: {ops}")),
        ("path: payload.a\nop: eq\n", "2:5: eq compares with a value, and the key \"value\" is missing".to_owned()),
        ("path: payload.a\nop: exist\n", format!("2:5: \"exist\" is not one of: {ops}; did you mean \"exists\"?")),
        ("path: payload.a\nop: exists\nvalue: 1\n", "3:8: exists has no value".to_owned()),
        ("path: payload.a\nop: gt\nvalue: '1'\n", "3:8: a number is expected here".to_owned()),
        ("path: payload.a\nop: in\nvalue: x\n", "3:8: a list is expected here, as [one, two]".to_owned()),
        ("path: payload.a\nop: contains\nvalue: 1\n", "3:8: a text is expected here; write '1'".to_owned()),
        ("pth: payload.a\nop: exists\n", "1:1: unknown key \"pth\"; did you mean \"path\"?".to_owned()),
        ("path: paylod.a\nop: exists\n", "1:7: \"paylod.a\": a path begins with payload or context or config; did you mean \"payload\"?".to_owned()),
        ("path: payload..a\nop: exists\n", "1:7: \"payload..a\": a path is names with dots between them; a name has letters, digits, _ and -".to_owned()),
        ("path: payload.a\nop: regex\nvalue: '(a'\n", "3:8: \"(a\" is no pattern: unclosed group".to_owned()),
        ("path: payload.a\nop: regex\nvalue: 'a)|(b'\n", "3:8: \"a)|(b\" is no pattern: unopened group".to_owned()),
        ("path: payload.a\nop: regex\nvalue: '(\\w{100}){100}'\n", "3:8: \"(\\\\w{100}){100}\" is no pattern: Compiled regex exceeds size limit of 262144 bytes.".to_owned()),
        ("[a]", "1:1: keys with values are expected here, as { key: value }".to_owned()),
    ] {
        assert_eq!(wrong(yaml), format!("f.yaml:{told}"), "{yaml}");
    }
}

#[test]
fn depth_and_number_of_parts_are_bounded() {
    let leaf = "{ path: payload.a, op: exists }";
    let deep = |levels: usize| format!("{}{leaf}{}", "{ not: ".repeat(levels), " }".repeat(levels));
    assert!(Predicate::read(&Written::parse("f.yaml", &deep(2)).unwrap()).is_ok());
    assert_eq!(wrong(&deep(3)), "f.yaml:1:22: predicates are nested at most 3 deep");
    let wide = |parts: usize| format!("{{ all: [{}] }}", vec![leaf; parts].join(", "));
    assert!(Predicate::read(&Written::parse("f.yaml", &wide(19)).unwrap()).is_ok());
    assert!(wrong(&wide(20)).ends_with(": a predicate has at most 20 parts"), "{}", wrong(&wide(20)));
    let long = format!("{{ path: payload.a, op: regex, value: {} }}", "a".repeat(1_025));
    assert!(wrong(&long).ends_with(": a pattern has at most 1024 bytes"), "{}", wrong(&long));
}
