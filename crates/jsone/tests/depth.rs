//! No input overflows the stack: what is too deep is refused, and what is allowed fits into a small stack.

#![allow(clippy::disallowed_methods)]

#[path = "support/rendering.rs"]
mod rendering;

use jsone::{Arity, Budget, Context, DEPTH_CEILING, Functions, Limits, Template};
use rendering::{dismantle, eval, nested, render, render_with, render_within};
use serde_json::{Value as Json, json};

/// Less than Rust gives a thread, and enough without any optimisation; an optimised build needs a third of it.
const SMALL_STACK: usize = 1536 * 1024;
const ABSURD: usize = 100_000;

fn deepest() -> Limits {
    Limits { depth: usize::MAX, ..Limits::default() }
}

/// Runs on a thread with a small stack; an overflow would abort the whole test process.
fn on_a_small_stack(run: fn()) {
    let thread = std::thread::Builder::new().stack_size(SMALL_STACK).spawn(run).expect("a thread starts");
    thread.join().expect("what ran on it did not panic");
}

fn in_array(json: Json) -> Json {
    Json::Array(vec![json])
}

fn in_object(json: Json) -> Json {
    under("a", json!({}), json)
}

/// Sets a key without copying the value, which `json!` would do by recursion.
fn under(key: &str, mut object: Json, json: Json) -> Json {
    object[key] = json;
    object
}

fn in_if(json: Json) -> Json {
    under("then", json!({"$if": "true"}), json)
}

fn in_let(json: Json) -> Json {
    under("in", json!({"$let": {"x": 1}}), json)
}

fn in_map(json: Json) -> Json {
    under("each(x)", json!({"$map": [1]}), json)
}

#[test]
fn a_template_of_a_hundred_thousand_levels_is_refused() {
    on_a_small_stack(|| {
        let wraps: [fn(Json) -> Json; 5] = [in_array, in_object, in_if, in_let, in_map];
        for wrap in wraps {
            let template = nested(ABSURD, json!("${1}"), wrap);
            for limits in [Limits::default(), Limits { template_bytes: usize::MAX, ..deepest() }] {
                let refused = Template::parse(&template, limits).unwrap_err();
                assert!(matches!(refused.budget(), Some(Budget::Depth | Budget::TemplateBytes)), "{refused}");
            }
            dismantle(template);
        }
    });
}

#[test]
fn a_context_of_a_hundred_thousand_levels_is_refused() {
    on_a_small_stack(|| {
        let context = under("deep", json!({}), nested(ABSURD, json!(1), in_array));
        let limits = Limits { context_bytes: usize::MAX, ..deepest() };
        assert_eq!(Context::new(&context, &limits).unwrap_err().budget(), Some(Budget::Depth));
        dismantle(context);
    });
}

#[test]
fn an_expression_of_a_hundred_thousand_levels_is_refused() {
    on_a_small_stack(|| {
        let many = |text: &str| text.repeat(ABSURD);
        for expression in [
            format!("{}1{}", many("("), many(")")),
            format!("{}1{}", many("["), many("]")),
            format!("{}1{}", many("{a:"), many("}")),
            format!("{}1{}", many("len("), many(")")),
            format!("{}0{}", many("a["), many("]")),
            format!("1{}", many("**1")),
            many("("),
            many("["),
        ] {
            let limits = Limits { template_bytes: usize::MAX, ..deepest() };
            for template in [json!({"$eval": &expression}), json!(format!("${{{expression}}}"))] {
                let refused = Template::parse(&template, limits).unwrap_err();
                assert_eq!(refused.budget(), Some(Budget::Depth), "{refused}");
                assert!(refused.location().offset().is_some());
            }
        }
    });
}

#[test]
fn a_long_expression_is_not_a_deep_one() {
    on_a_small_stack(|| {
        let limits = Limits { template_bytes: usize::MAX, ..Limits::default() };
        let evaluated = |expression: String| {
            render_within(&json!({"$eval": expression}), &json!({"a": {"a": 1}}), limits).0.unwrap()
        };
        assert_eq!(evaluated(format!("0{}", "+1".repeat(ABSURD))), json!(100_000));
        assert_eq!(evaluated(format!("{}true", "!".repeat(ABSURD))), json!(true));
        assert_eq!(evaluated(format!("{}1", "-".repeat(ABSURD))), json!(1));
        assert_eq!(evaluated(format!("false{}", "||false".repeat(ABSURD))), json!(false));
        assert_eq!(evaluated(format!("[1]{}", "[0:]".repeat(ABSURD))), json!([1]));
    });
}

#[test]
fn a_value_that_grows_while_rendering_is_stopped() {
    on_a_small_stack(|| {
        for body in ["[acc]", "{a: acc}", "[acc, acc]"] {
            let template =
                json!({"$reduce": {"$eval": "range(0, 5000)"}, "initial": 0, "each(acc,x)": {"$eval": body}});
            let (result, usage) = render_within(&template, &json!({}), deepest());
            assert_eq!(result.unwrap_err().budget(), Some(Budget::Depth));
            assert_eq!(usage.depth, DEPTH_CEILING);
        }
    });
}

#[test]
fn a_function_that_returns_an_abyss_is_refused() {
    on_a_small_stack(|| {
        let mut functions = Functions::none();
        functions.register("abyss", Arity::exactly(0), |_| Ok(nested(ABSURD, json!(1), in_array))).unwrap();
        let (result, _) = render_with(&json!({"$eval": "abyss()"}), &json!({}), &functions, deepest());
        assert_eq!(result.unwrap_err().budget(), Some(Budget::Depth));
    });
}

#[test]
fn templates_as_deep_as_allowed_fit_into_a_small_stack() {
    on_a_small_stack(|| {
        let wraps: [fn(Json) -> Json; 9] = [
            in_array,
            in_object,
            |json| under("${'a'}", json!({}), json),
            in_if,
            |json| under("$switch", json!({}), under("$default", json!({}), json)),
            in_map,
            in_let,
            |json| under("each(acc,x)", json!({"$reduce": [1], "initial": 1}), json),
            |json| under("$json", json!({}), json),
        ];
        for wrap in wraps {
            // `$switch` and `$let` take two levels each.
            for levels in [DEPTH_CEILING, DEPTH_CEILING - 1, DEPTH_CEILING / 2, DEPTH_CEILING / 2 - 1] {
                let template = nested(levels, json!("${1 + 1}"), wrap);
                let limits = Limits { steps: u64::MAX, ..deepest() };
                let (result, _) = render_within(&template, &json!({}), limits);
                if let Err(error) = &result {
                    assert!(matches!(error.budget(), Some(Budget::Depth | Budget::StringBytes)), "{error}");
                }
                result.into_iter().for_each(dismantle);
            }
        }
    });
}

#[test]
fn expressions_as_deep_as_allowed_fit_into_a_small_stack() {
    on_a_small_stack(|| {
        let levels = DEPTH_CEILING - 1;
        for (open, inner, close) in [
            ("(", "1", ")"),
            ("[", "1", "]"),
            ("{a:", "1", "}"),
            ("str(", "1", ")"),
            ("[1][", "0", "]"),
            ("1**", "1", ""),
        ] {
            let expression = format!("{}{inner}{}", open.repeat(levels), close.repeat(levels));
            let (result, _) = render_within(&json!({"$eval": expression}), &json!({}), deepest());
            if let Err(error) = &result {
                assert_eq!(error.to_string(), "InterpreterError: index out of bounds");
            }
        }
    });
}

#[test]
fn values_twice_as_deep_as_allowed_fit_into_a_small_stack() {
    on_a_small_stack(|| {
        let limits = Limits { steps: u64::MAX, ..deepest() };
        let mut context = json!({});
        context["given"] = nested(DEPTH_CEILING - 1, json!(1), in_object);
        context["other"] = nested(DEPTH_CEILING - 2, json!([]), in_object);
        // The context may be as deep as allowed, and so may what is built around it.
        let around = |name: &str| {
            let wrapped = json!({"$if": "x == 0", "then": {"$eval": name}, "else": {"a": {"$eval": "acc"}}});
            let rounds = format!("range(0, {})", DEPTH_CEILING - 2);
            json!({"$reduce": {"$eval": rounds}, "initial": {}, "each(acc,x)": wrapped})
        };
        let within =
            |body: Json| json!({"$let": {"left": around("given"), "right": around("other")}, "in": body});
        let rendered = |body: Json| render_within(&within(body), &context, limits).0;

        assert_eq!(rendered(json!({"$eval": "left == left"})).unwrap(), json!(true));
        assert_eq!(rendered(json!({"$eval": "left in [right]"})).unwrap(), json!(false));
        let text = rendered(json!({"$json": {"$eval": "left"}})).unwrap();
        assert_eq!(text.as_str().unwrap().matches('{').count(), 2 * DEPTH_CEILING - 4);
        for too_deep in
            [json!({"$eval": "left"}), json!({"$mergeDeep": [{"$eval": "left"}, {"$eval": "right"}]})]
        {
            assert_eq!(rendered(too_deep).unwrap_err().budget(), Some(Budget::Depth));
        }
    });
}

#[test]
fn depths_of_template_expression_and_value_add_up_within_a_small_stack() {
    on_a_small_stack(|| {
        let limits = Limits { steps: u64::MAX, ..deepest() };
        let mut context = json!({});
        context["deep"] = nested(DEPTH_CEILING - 1, json!(1), in_array);
        let parenthesised =
            format!("{}deep == deep{}", "(".repeat(DEPTH_CEILING - 2), ")".repeat(DEPTH_CEILING - 2));
        for wrap in [in_array, in_object, in_if, in_map] {
            let template = nested(DEPTH_CEILING - 2, json!({"$eval": &parenthesised}), wrap);
            let (result, usage) = render_within(&template, &context, limits);
            assert!(usage.steps > DEPTH_CEILING as u64);
            dismantle(result.unwrap());
        }
    });
}

#[test]
fn a_limit_in_the_middle_holds_for_template_expression_and_result() {
    let limits = Limits { depth: 4, ..Limits::default() };
    let depth = |template: &Json| {
        render_within(template, &json!({"a": [[[1]]]}), limits).0.err().and_then(|e| e.budget())
    };
    assert_eq!(depth(&json!([[[["${1}"]]]])), None);
    assert_eq!(depth(&json!([[[[["${1}"]]]]])), Some(Budget::Depth));
    assert_eq!(depth(&json!({"$eval": "(((1)))"})), None);
    assert_eq!(depth(&json!({"$eval": "((((1))))"})), Some(Budget::Depth));
    assert_eq!(depth(&json!([{"$eval": "a"}])), None);
    assert_eq!(depth(&json!([[{"$eval": "a"}]])), Some(Budget::Depth));
    assert_eq!(depth(&json!({"$eval": "[[[[a]]]]"})), Some(Budget::Depth));
}

#[test]
fn sixty_four_parentheses_pass_with_the_default_limits() {
    let expression = format!("{}1{}", "(".repeat(64), ")".repeat(64));
    assert_eq!(eval(&expression, &json!({})).unwrap(), json!(1));
    assert_eq!(render(&json!(format!("${{{expression}}}")), &json!({})).unwrap(), json!("1"));
}
