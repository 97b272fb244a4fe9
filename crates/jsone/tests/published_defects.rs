//! What rules the published crate out for strangers' templates, and does not happen here.

#![allow(clippy::disallowed_methods)]

#[path = "support/rendering.rs"]
mod rendering;

use jsone::{Class, Context, Functions, Limits, Now, Template};
use rendering::{eval, render};
use serde_json::{Value as Json, json};

#[test]
fn now_is_what_the_caller_says_and_the_context_may_say_otherwise() {
    let template = Template::parse(&json!(["${now}", {"$fromNow": "1 day"}]), Limits::default()).unwrap();
    let rendered = |context: &Json, now: &str| {
        let context = Context::new(context, &Limits::default()).unwrap();
        template.render(&context, &Functions::none(), &Now::from_rfc3339(now).unwrap()).unwrap()
    };
    assert_eq!(
        rendered(&json!({}), "2001-02-03T04:05:06Z"),
        json!(["2001-02-03T04:05:06.000Z", "2001-02-04T04:05:06.000Z"])
    );
    assert_eq!(
        rendered(&json!({"now": "1999-12-31T00:00:00.000Z"}), "2001-02-03T04:05:06Z"),
        json!(["1999-12-31T00:00:00.000Z", "2000-01-01T00:00:00.000Z"])
    );
    assert_eq!(Now::from_unix_millis(0).unwrap().as_str(), "1970-01-01T00:00:00.000Z");
}

#[test]
fn integers_come_back_as_they_were() {
    for integer in
        [json!(5_000_000_000_u64), json!(9_007_199_254_740_993_u64), json!(u64::MAX), json!(i64::MIN)]
    {
        let context = json!({"i": &integer});
        assert_eq!(eval("i", &context).unwrap(), integer);
        assert_eq!(eval("[i][0]", &context).unwrap(), integer);
        assert_eq!(render(&json!({"$json": {"$eval": "i"}}), &context).unwrap(), json!(integer.to_string()));
        assert_eq!(render(&json!("${i}"), &context).unwrap(), json!(integer.to_string()));
    }
    assert_eq!(eval("9007199254740992 + 1", &json!({})).unwrap(), json!(9_007_199_254_740_993_u64));
    assert_eq!(eval("9223372036854775807 + 1", &json!({})).unwrap(), json!(9_223_372_036_854_775_808_u64));
    assert_eq!(eval("9007199254740993 == 9007199254740992", &json!({})).unwrap(), json!(false));
}

#[test]
fn parentheses_do_not_double_the_work() {
    // Forty levels would take the published crate days.
    let expression = format!("{}1{}", "(".repeat(40), ")".repeat(40));
    assert_eq!(eval(&expression, &json!({})).unwrap(), json!(1));
}

#[test]
fn an_enormous_offset_and_an_extreme_step_are_errors() {
    for template in [
        json!({"$fromNow": "99999999999999 years"}),
        json!({"$eval": "fromNow('-9223372036854775807 days')"}),
        json!({"$eval": "range(0, 1, 0)"}),
    ] {
        assert!(render(&template, &json!({})).unwrap_err().class().is_some(), "{template}");
    }
    assert_eq!(eval("range(10, 0, step)", &json!({"step": i64::MIN})).unwrap(), json!([10]));
}

#[test]
fn arithmetic_beyond_two_to_the_53_is_not_wrong() {
    for (expression, expected) in [
        ("(-1) ** 9007199254740993", json!(-1)),
        ("9007199254740993 / 3", json!(3_002_399_751_580_331_u64)),
        ("9007199254740993 / 2", json!(4_503_599_627_370_496.0)),
        ("9007199254740995 / 3", json!(3_002_399_751_580_331.5)),
    ] {
        assert_eq!(eval(expression, &json!({})).unwrap(), expected, "{expression}");
    }
    let refused = eval("range(0, number('1e300'), number('1e299'))", &json!({})).unwrap_err();
    assert_eq!(refused.to_string(), "BuiltinError: invalid arguments to builtin: range");
    // An index that is too large for any array is still a whole number.
    assert_eq!(eval("[1, 2][:number('1e300')]", &json!({})).unwrap(), json!([1, 2]));
    let beyond = eval("[1, 2][number('1e300')]", &json!({})).unwrap_err();
    assert_eq!(beyond.to_string(), "InterpreterError: index out of bounds");
}

#[test]
fn split_keeps_empty_parts() {
    assert_eq!(eval("split('a::b', ':')", &json!({})).unwrap(), json!(["a", "", "b"]));
    assert_eq!(eval("split(':', ':')", &json!({})).unwrap(), json!(["", ""]));
    assert_eq!(eval("split('', '')", &json!({})).unwrap(), json!([]));
}

// conforms: O117
#[test]
fn what_has_no_finite_value_is_an_error() {
    for expression in [
        "1 / 0",
        "0 / 0",
        "1.5 / 0.0",
        "10 ** 400",
        "-(10 ** 400)",
        "0 ** -1",
        "(-8) ** 0.5",
        "sqrt(-1)",
        "number('inf')",
        "number('NaN')",
        "number('1e999')",
        "big * 10",
        "big + big",
        "-big - big",
        "min(1, big * 10)",
    ] {
        let error = eval(expression, &json!({"big": 1.7e308})).unwrap_err();
        assert!(matches!(error.class(), Some(Class::Interpreter | Class::Builtin)), "{expression}: {error}");
    }
}

#[test]
fn strings_count_by_code_point() {
    let context = json!({"s": "aé日🦀"});
    assert_eq!(
        eval("[len(s), s[-1], s[1:3], s[3], split(s, '')]", &context).unwrap(),
        json!([4, "🦀", "é日", "🦀", ["a", "é", "日", "🦀"]])
    );
    assert!(eval("s[-5]", &context).is_err());
    assert_eq!(eval("'\u{ffff}' < '\u{10000}'", &context).unwrap(), json!(true));
}

#[test]
fn nothing_is_coerced_in_a_comparison() {
    for expression in ["true == 1", "'1' == 1", "null == false", "[1] == ['1']", "true in [1, 0]", "{} == []"]
    {
        assert_eq!(eval(expression, &json!({})).unwrap(), json!(false), "{expression}");
    }
    assert_eq!(
        eval("[1 == 1.0, {a: [1]} == {a: [1.0]}, 1 < 1.5]", &json!({})).unwrap(),
        json!([true, true, true])
    );
}

#[test]
fn one_template_serves_many_threads() {
    let template =
        Template::parse(&json!({"$map": {"$eval": "range(0, n)"}, "each(x)": "${x}"}), Limits::default())
            .unwrap();
    std::thread::scope(|scope| {
        for n in 0..4 {
            let template = &template;
            scope.spawn(move || {
                let json = json!({ "n": n });
                let context = Context::new(&json, template.limits()).unwrap();
                let rendered = template.render(&context, &Functions::none(), &rendering::now()).unwrap();
                assert_eq!(rendered.as_array().unwrap().len(), n);
            });
        }
    });
}
