//! Which names a template reads, told without rendering it.

#[path = "support/rendering.rs"]
mod rendering;

use jsone::{Limits, Template};
use serde_json::{Value as Json, json};

fn reads(template: Json) -> Vec<String> {
    let template = Template::parse(&template, Limits::default()).expect("it parses");
    assert!(!template.reads_any_name());
    template.reads().iter().cloned().collect()
}

#[test]
fn names_are_found_in_every_place_that_holds_an_expression() {
    let template = json!({
        "${a}": "${b} ${c.not_a_name}",
        "x": {"$eval": "d + [e][f]"},
        "y": {"$if": "g", "then": {"$switch": {"h": {"$eval": "i"}, "$default": "${j}"}}, "else": {"$match": {"k": "${l}"}}},
        "z": {"$sort": {"$eval": "m"}, "by(s)": "s + n"},
        "w": {"$find": {"$eval": "o"}, "each(s)": "s == p"},
        "v": {"$fromNow": "${q}", "from": {"$eval": "r"}},
        "u": {"$json": {"$eval": "{literal_key: s}"}}
    });
    let letters: Vec<String> = ('a'..='s').map(String::from).collect();
    assert_eq!(reads(template), letters);
}

#[test]
fn names_that_an_operator_binds_are_not_read() {
    assert_eq!(reads(json!({"$let": {"x": "${a}"}, "in": "${x}"})), ["a"]);
    assert_eq!(reads(json!({"$map": [1], "each(x, i)": "${x}${i}"})), Vec::<String>::new());
    assert_eq!(reads(json!({"$reduce": [1], "initial": 0, "each(acc,x)": {"$eval": "acc + x + y"}})), ["y"]);
    assert_eq!(reads(json!([{"$map": [1], "each(x)": "${x}"}, "${x}"])), ["x"]);
    assert_eq!(reads(json!({"$let": {"x": "${x}"}, "in": "${x}"})), ["x"]);
}

#[test]
fn a_name_that_may_stay_unbound_counts_as_read() {
    assert_eq!(reads(json!({"$let": {"x": {"$if": "true", "then": 1}}, "in": "${x}"})), ["x"]);
    assert_eq!(
        reads(json!({"$let": {"x": {"$if": "true", "then": 1, "else": 2}}, "in": "${x}"})),
        Vec::<String>::new()
    );
    assert_eq!(reads(json!({"$let": {"x": {"$find": [], "each(y)": "y"}}, "in": "${x}"})), ["x"]);
    assert_eq!(reads(json!({"$let": {"x": {"$switch": {"true": 1}}}, "in": "${x}"})), ["x"]);
    assert_eq!(reads(json!({"$let": {"${a}": 1}, "in": "${x}"})), ["a", "x"]);
    assert_eq!(reads(json!({"$let": {"$eval": "a"}, "in": "${x}"})), ["a", "x"]);
}

#[test]
fn built_ins_and_now_are_not_read_but_host_functions_are() {
    assert_eq!(reads(json!({"$eval": "len(now) + min(1, 2)"})), Vec::<String>::new());
    assert_eq!(reads(json!({"$eval": "sha256_text(a)"})), ["a", "sha256_text"]);
}

#[test]
fn an_entry_that_hides_now_or_a_built_in_is_read_without_being_listed() {
    let context = json!({"now": "2000-01-01T00:00:00.000Z", "min": 7});
    for (template, with, without) in [
        (json!("${now}"), json!("2000-01-01T00:00:00.000Z"), json!(rendering::NOW)),
        (json!({"$fromNow": ""}), json!("2000-01-01T00:00:00.000Z"), json!(rendering::NOW)),
        (json!({"$eval": "fromNow('')"}), json!("2000-01-01T00:00:00.000Z"), json!(rendering::NOW)),
        (json!({"$eval": "typeof(min)"}), json!("number"), json!("function")),
    ] {
        assert_eq!(reads(template.clone()), Vec::<String>::new());
        assert_eq!(rendering::render(&template, &context), Ok(with));
        assert_eq!(rendering::render(&template, &json!({})), Ok(without));
    }
}

#[test]
fn asking_whether_a_literal_name_is_defined_reads_it() {
    assert_eq!(reads(json!({"$if": "defined('a')", "then": 1})), ["a"]);
}

#[test]
fn asking_for_a_computed_name_is_told_apart() {
    for expression in ["defined(a)", "defined('a' + b)", "[defined]", "defined('a', 'b')"] {
        let template = Template::parse(&json!({"$eval": expression}), Limits::default()).unwrap();
        assert!(template.reads_any_name(), "{expression}");
    }
}

#[test]
fn members_that_are_written_out_are_told_with_the_name_that_they_are_taken_from() {
    let members = |template: Json| {
        let template = Template::parse(&template, Limits::default()).expect("it parses");
        template.reads_members().iter().map(|(name, member)| format!("{name}.{member}")).collect::<Vec<_>>()
    };
    assert_eq!(members(json!("${a.b.c} ${a[\"d\"]} ${a[0]} ${a} ${[a][0].e}")), ["a.b", "a.d"]);
    assert_eq!(members(json!({"$let": {"x": {"y": 1}}, "in": "${x.y}"})), Vec::<String>::new());
    assert_eq!(members(json!({"$map": [{"y": 1}], "each(x)": "${x.y}${z.y}"})), ["z.y"]);
}
