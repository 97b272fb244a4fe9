//! Every fault tells its class, its message and its place: the official path, the path in the template, and the
//! offset in the expression.

#[path = "support/rendering.rs"]
mod rendering;

use jsone::{Class, Error, Limits, Template};
use rendering::{eval, nested, render};
use serde_json::{Value as Json, json};

fn fault(template: Json) -> Error {
    render(&template, &json!({"key": "k", "list": [1]})).expect_err("a fault")
}

fn fault_of(template: &Json) -> Error {
    render(template, &json!({})).expect_err("a fault")
}

fn check(template: Json, text: &str, path: &str, offset: Option<usize>) {
    let error = fault(template);
    assert_eq!(error.to_string(), text);
    assert_eq!((error.location().path().as_str(), error.location().offset()), (path, offset));
}

#[test]
fn a_mistake_in_an_expression_has_an_offset() {
    check(
        json!({"a": [{"$eval": "1 + nope"}]}),
        "InterpreterError at template.a[0]: unknown context value nope",
        "$.a[0]['$eval']",
        Some(4),
    );
    check(
        json!({"$eval": "[1, 2] + 3"}),
        "InterpreterError: infix: + expects numbers/strings + numbers/strings",
        "$['$eval']",
        Some(7),
    );
}

#[test]
fn the_offset_of_an_interpolation_counts_from_the_start_of_its_string() {
    check(
        json!(["é ${nope}"]),
        "InterpreterError at template[0]: unknown context value nope",
        "$[0]",
        Some(5),
    );
    check(
        json!("a${1 +}"),
        "SyntaxError: Found: } token, expected one of: !, (, +, -, [, false, identifier, null, number, string, true, {",
        "$",
        Some(6),
    );
    check(json!("ab${1"), "SyntaxError: unterminated ${..} expression", "$", Some(4));
}

#[test]
fn the_path_leads_through_operators_where_the_official_one_does_not() {
    check(
        json!({"$let": {"x": 1}, "in": {"${key}": {"$map": [1], "each(y)": {"b c": {"$if": "true", "then": "${z}"}}}}}),
        "InterpreterError at template.k[\"b c\"]: unknown context value z",
        "$.in['${key}']['each(y)']['b c'].then",
        Some(2),
    );
    check(
        json!({"$switch": {"$default": {"$match": {"true": {"$flatten": ["${z}"]}}}}}),
        "InterpreterError at template[0]: unknown context value z",
        "$['$switch']['$default']['$match'].true['$flatten'][0]",
        Some(2),
    );
    check(
        json!({"$sort": [1], "by(x)": "x.a"}),
        "InterpreterError: infix: . expects objects",
        "$['by(x)']",
        Some(1),
    );
}

#[test]
fn a_mistake_in_a_key_is_told_at_that_key() {
    check(
        json!({"a": {"x${nope}": 1}}),
        "InterpreterError at template.a: unknown context value nope",
        "$.a['x${nope}']",
        Some(3),
    );
    check(
        json!({"a": {"$nope": 1}}),
        "TemplateError at template.a: $<identifier> is reserved; use $$<identifier>",
        "$.a['$nope']",
        None,
    );
    check(
        json!({"$match": {"1 +": 1}}),
        "SyntaxError: Unexpected end of input",
        "$['$match']['1 +']",
        Some(3),
    );
}

#[test]
fn each_class_has_its_name() {
    for (expression, class, name) in [
        ("1 +", Class::Syntax, "SyntaxError"),
        ("nope", Class::Interpreter, "InterpreterError"),
        ("min", Class::Template, "TemplateError"),
        ("min()", Class::Builtin, "BuiltinError"),
    ] {
        let error = eval(expression, &json!({})).unwrap_err();
        assert_eq!(error.class(), Some(class));
        assert!(error.to_string().starts_with(name));
        assert_eq!(error.budget(), None);
    }
}

#[test]
fn a_mistake_only_matters_where_a_render_comes_to_it() {
    let template = json!({"$if": "key == 'k'", "then": "fine", "else": {"$eval": "1 +"}});
    assert_eq!(render(&template, &json!({"key": "k"})).unwrap(), json!("fine"));
    assert_eq!(render(&template, &json!({"key": 1})).unwrap_err().class(), Some(Class::Syntax));
}

#[test]
fn messages_hold_only_excerpts_of_what_strangers_wrote() {
    let long = "x".repeat(5000);
    for template in [
        json!({"$eval": &long}),
        json!({"$eval": format!("'{long}'()")}),
        json!({"$eval": format!("1 # {long}")}),
        json!({"$eval": format!("{{}}.{long}")}),
        json!({"$eval": "1", &long: 1}),
        json!({"$fromNow": &long}),
        json!(format!("${{['{long}']}}")),
    ] {
        assert!(fault(template).to_string().len() < 1000);
    }
}

#[test]
fn places_hold_only_excerpts_of_the_keys_that_strangers_wrote() {
    // 80,000 characters that are a name, and as many that are none.
    for key in ["kkk".repeat(80_000), "k k".repeat(80_000)] {
        for template in [
            json!({&key: "${1 +}"}),
            json!({&key: [{"$eval": 1}]}),
            json!({&key: {"$nope": 1}}),
            json!({format!("{key}${{1 +}}"): 1}),
            json!({format!("$${key}"): "${1 +}"}),
            json!({"$switch": {format!("'{key}'"): {"$eval": 1}}}),
            json!({"$match": {format!("'{key}'"): {"$eval": 1}}}),
            json!({"$map": [1], format!("each({})", "k".repeat(80_000)): {"$eval": 1}}),
        ] {
            let parsed = Template::parse(&template, Limits::default()).unwrap();
            let [fault] = parsed.faults() else { panic!("one fault") };
            for error in [
                fault.clone(),
                Template::parse_strict(&template, Limits::default()).unwrap_err(),
                fault_of(&template),
            ] {
                assert!(error.to_string().len() < 1000, "{}", error.to_string().len());
                assert!(error.location().path().len() < 1000, "{}", error.location().path().len());
                assert!(format!("{error:?}").len() < 2000, "{}", format!("{error:?}").len());
            }
        }
    }
}

#[test]
fn a_budget_that_ends_parsing_holds_only_an_excerpt_of_its_place() {
    let deep = format!("{}1{}", "(".repeat(200), ")".repeat(200));
    let refused = Template::parse(&json!({"k k".repeat(80_000): {"$eval": deep}}), Limits::default());
    assert!(format!("{:?}", refused.unwrap_err()).len() < 2000);
}

#[test]
fn a_deep_place_keeps_both_of_its_ends() {
    let key = "long ".repeat(200);
    let template = nested(100, json!({"inner": "${1 +}"}), |json| json!({"long ".repeat(200): json}));
    let error = fault(json!({"outer": template}));
    assert!(error.location().segments().count() == 102);
    for place in [error.location().path(), error.location().official()] {
        assert!(place.chars().count() <= 2001, "{}", place.chars().count());
        assert!(place.contains(".outer[") && place.ends_with("].inner"), "{place}");
        assert!(!place.contains(&key) && place.contains('…'));
    }
}

#[test]
fn faults_are_kept_up_to_a_number_and_up_to_a_size() {
    let many = Template::parse(&json!(vec!["${1 +}"; 1000]), Limits::default()).unwrap();
    assert_eq!(many.faults().len(), 100);
    let wrap = |json| json!({"long ".repeat(200): json});
    let deep = nested(100, json!(vec!["${1 +}"; 1000]), wrap);
    let large = Template::parse(&deep, Limits::default()).unwrap();
    let kept: usize = large.faults().iter().map(|fault| format!("{fault:?}").len()).sum();
    assert!((1..100).contains(&large.faults().len()) && kept < 256 * 1024, "{kept}");
    assert!(Template::parse_strict(&deep, Limits::default()).is_err());
}

// conforms: O113
#[test]
fn the_strict_parser_refuses_an_eval_without_a_literal_wherever_it_stands() {
    for (template, path) in [
        (json!({"$eval": {"$eval": "key"}}), "$"),
        (json!({"a": [1, {"$eval": ["key"]}]}), "$.a[1]"),
        (json!({"$if": "false", "then": {"$eval": 1}}), "$.then"),
        (json!({"$map": [], "each(x)": {"$eval": null}}), "$['each(x)']"),
        (json!({"$let": {"x": {"$eval": {"$json": 1}}}, "in": 1}), "$['$let'].x"),
        (json!({"$switch": {"false": {"$eval": true}}}), "$['$switch'].false"),
    ] {
        let refused = Template::parse_strict(&template, Limits::default()).unwrap_err();
        assert!(refused.to_string().ends_with("$eval must be given a string expression"), "{refused}");
        assert_eq!(refused.location().path(), path);
    }
}

// conforms: O113
#[test]
fn text_from_the_context_is_never_evaluated() {
    let context = json!({"code": "1 + 1", "nested": "${1 + 1}", "operator": {"$eval": "1 + 1"}, "many": [{"$eval": "1 + 1"}, "${1}"]});
    for (template, expected) in [
        (json!({"$eval": "code"}), json!("1 + 1")),
        (json!("${code} ${nested}"), json!("1 + 1 ${1 + 1}")),
        (json!({"$eval": "operator"}), json!({"$eval": "1 + 1"})),
        (json!({"$find": {"$eval": "many"}, "each(x)": "true"}), json!({"$eval": "1 + 1"})),
        (json!({"$find": {"$eval": "many"}, "each(x,i)": "i == 1"}), json!("${1}")),
        (json!({"$let": {"x": {"$eval": "operator"}}, "in": {"$eval": "x"}}), json!({"$eval": "1 + 1"})),
        (json!({"$map": {"$eval": "many"}, "each(x)": {"$eval": "x"}}), json!([{"$eval": "1 + 1"}, "${1}"])),
        (json!({"$merge": [{"$eval": "operator"}, {"a": 1}]}), json!({"$eval": "1 + 1", "a": 1})),
        (
            json!({"$reduce": [1], "initial": {"$eval": "1 + 1"}, "each(acc,x)": {"$eval": "acc"}}),
            json!({"$eval": "1 + 1"}),
        ),
        (json!({"${nested}": 1}), json!({"${1 + 1}": 1})),
        (json!({"$json": {"$eval": "many"}}), json!(r#"[{"$eval":"1 + 1"},"${1}"]"#)),
    ] {
        assert_eq!(render(&template, &context).unwrap(), expected, "{template}");
    }
}

#[test]
fn all_mistakes_can_be_listed_with_their_places() {
    let template = json!({"a": "${1 +}", "b": {"$nope": 1}, "c": {"$let": {"x": 1}}, "d": "fine"});
    let template = Template::parse(&template, Limits::default()).unwrap();
    let places: Vec<String> = template.faults().iter().map(|fault| fault.location().path()).collect();
    assert_eq!(places, ["$.a", "$.b['$nope']", "$.c"]);
}

#[test]
fn a_context_needs_names_and_to_be_an_object() {
    assert_eq!(
        render(&json!(1), &json!([])).unwrap_err().to_string(),
        "TemplateError: context must be a dictionary"
    );
    let refused = render(&json!(1), &json!({"a b": 1})).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "TemplateError: top level keys of context must follow /[a-zA-Z_][a-zA-Z0-9_]*/"
    );
}
