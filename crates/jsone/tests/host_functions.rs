//! Functions of the host: called by name, checked for arity, pure, and only those that were lent.

#[path = "support/rendering.rs"]
mod rendering;

use jsone::basic_helpers::{self, UnknownHelper};
use jsone::{Arity, Class, Error, Functions, Limits, RegisterError};
use rendering::render_with;
use serde_json::{Value as Json, json};

fn call(functions: &Functions, expression: &str) -> Result<Json, Error> {
    let context = json!({"obj": {"a": {"b": [1, null]}, "c": 2}, "nothing": null});
    render_with(&json!({"$eval": expression}), &context, functions, Limits::default()).0
}

fn helped(expression: &str) -> Json {
    call(&basic_helpers::lend_all(), expression).unwrap_or_else(|error| panic!("{expression}: {error}"))
}

#[test]
fn a_function_is_called_by_its_name_with_plain_json() {
    let mut functions = Functions::none();
    functions
        .register("sum", Arity { least: 1, most: 3 }, |numbers| {
            Ok(json!(numbers.iter().filter_map(Json::as_i64).sum::<i64>()))
        })
        .unwrap();
    assert_eq!(call(&functions, "sum(1, 2, 3) * 2").unwrap(), json!(12));
    assert_eq!(call(&functions, "[sum][0](obj.c)").unwrap(), json!(2));
    assert_eq!(call(&functions, "typeof(sum)").unwrap(), json!("function"));
    assert_eq!(call(&functions, "sum == sum").unwrap(), json!(true));
    assert_eq!(call(&functions, "defined('sum')").unwrap(), json!(true));
    for wrong in ["sum()", "sum(1, 2, 3, 4)"] {
        let refused = call(&functions, wrong).unwrap_err();
        assert_eq!(refused.to_string(), "BuiltinError: invalid arguments to builtin: sum");
    }
}

#[test]
fn a_refusal_of_a_function_is_a_builtin_error_with_its_reason() {
    let mut functions = Functions::none();
    functions.register("fail", Arity::exactly(0), |_| Err("not today".to_owned())).unwrap();
    let refused = call(&functions, "1 + fail()").unwrap_err();
    assert_eq!(refused.class(), Some(Class::Builtin));
    assert_eq!(refused.to_string(), "BuiltinError: fail: not today");
    assert_eq!(refused.location().offset(), Some(8));
}

#[test]
fn a_panic_in_a_function_passes_through_the_render() {
    let mut functions = Functions::none();
    functions.register("faulty", Arity::exactly(0), |_| panic!("a mistake of the host")).unwrap();
    let panicked = std::panic::catch_unwind(|| call(&functions, "faulty()")).unwrap_err();
    assert_eq!(panicked.downcast_ref::<&str>(), Some(&"a mistake of the host"));
}

#[test]
fn a_function_can_neither_leave_a_template_nor_enter_another_function() {
    let functions = basic_helpers::lend_all();
    for expression in ["has", "{f: has}", "default(has, 1)"] {
        let refused = call(&functions, expression).unwrap_err();
        assert_eq!(refused.to_string(), "TemplateError: evaluated template contained uncalled functions");
    }
}

#[test]
fn names_that_are_taken_or_no_names_are_refused() {
    let mut functions = Functions::none();
    for name in ["len", "now", "fromNow"] {
        let refused = functions.register(name, Arity::exactly(0), |_| Ok(Json::Null));
        assert_eq!(refused, Err(RegisterError::Taken(name.to_owned())));
    }
    for name in ["", "a b", "1a", "$a"] {
        let refused = functions.register(name, Arity::exactly(0), |_| Ok(Json::Null));
        assert_eq!(refused, Err(RegisterError::NotAnIdentifier(name.to_owned())));
    }
}

#[test]
fn helpers_are_lent_one_by_one() {
    let functions = basic_helpers::lend(["has", "pick"]).unwrap();
    assert_eq!(functions.names().collect::<Vec<_>>(), ["has", "pick"]);
    assert_eq!(call(&functions, "sha256_text('a')").unwrap_err().class(), Some(Class::Interpreter));
    assert_eq!(basic_helpers::lend(["random"]).unwrap_err(), UnknownHelper("random".to_owned()));
}

// conforms: O115
#[test]
fn each_helper_depends_on_its_arguments_alone() {
    let key = "af0dadd8d6ba01cd66e9060b7b0afef2167a1ef2555c55de4b1a3c009181ab9c";
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let expected = [
        ("default(nothing, 1)", json!(1)),
        ("has(obj, 'c')", json!(true)),
        ("idempotency_key(['run', 7])", json!(key)),
        ("pick(obj, ['c'])", json!({"c": 2})),
        ("sha256_json(['run', 7])", json!(key)),
        ("sha256_text('')", json!(empty)),
    ];
    assert_eq!(expected.len(), basic_helpers::BASIC_HELPERS.len(), "a helper has no line here");
    for ((expression, value), name) in expected.into_iter().zip(basic_helpers::BASIC_HELPERS) {
        assert!(expression.starts_with(name), "{name} has no line here");
        assert_eq!(helped(expression), value, "{expression}");
    }
}

#[test]
fn digests_are_those_that_anyone_can_compute() {
    // printf '' | sha256sum; printf '{"a":1,"b":[true,"é"]}' | sha256sum
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let object = "6926743e6611e69d70d02dfefee1d1fc193edf9d3252ac387436edf1db976b4d";
    assert_eq!(helped("sha256_text('')"), json!(empty));
    assert_eq!(helped("sha256_json({b: [true, 'é'], a: 1.0})"), json!(object));
    let rounded = call(&basic_helpers::lend_all(), "sha256_json(9007199254740993)").unwrap_err();
    assert_eq!(rounded.class(), Some(Class::Builtin));
}

// conforms: O115
#[test]
fn an_idempotency_key_depends_on_its_parts_and_nothing_else() {
    // printf '["run",7]' | sha256sum
    let key = "af0dadd8d6ba01cd66e9060b7b0afef2167a1ef2555c55de4b1a3c009181ab9c";
    assert_eq!(helped("idempotency_key(['run', 7])"), json!(key));
    assert_eq!(helped("idempotency_key(['run', 7])"), helped("sha256_json(['run', 7])"));
    assert_ne!(helped("idempotency_key(['run', 7])"), helped("idempotency_key(['run', '7'])"));
    for wrong in ["idempotency_key([])", "idempotency_key('run')"] {
        assert_eq!(call(&basic_helpers::lend_all(), wrong).unwrap_err().class(), Some(Class::Builtin));
    }
}

#[test]
fn default_replaces_null_only() {
    assert_eq!(helped("default(nothing, 1)"), json!(1));
    assert_eq!(helped("default(obj['nope'], {a: 1})"), json!({"a": 1}));
    assert_eq!(helped("default(false, 1)"), json!(false));
    assert_eq!(helped("default(0, 1)"), json!(0));
}

#[test]
fn has_follows_a_path() {
    for (expression, expected) in [
        ("has(obj, 'a.b[0]')", true),
        ("has(obj, '$.a.b[1]')", true),
        ("has(obj, 'a.b[2]')", false),
        ("has(obj, 'c.d')", false),
        ("has(nothing, '$')", true),
        ("has(1, 'a')", false),
    ] {
        assert_eq!(helped(expression), json!(expected), "{expression}");
    }
    assert!(call(&basic_helpers::lend_all(), "has(obj, 'a..b')").is_err());
}

#[test]
fn pick_takes_the_listed_fields_that_exist() {
    assert_eq!(helped("pick(obj, ['c', 'nope'])"), json!({"c": 2}));
    for wrong in ["pick(1, [])", "pick(obj, 'c')", "pick(obj, [1])"] {
        assert_eq!(call(&basic_helpers::lend_all(), wrong).unwrap_err().class(), Some(Class::Builtin));
    }
}
