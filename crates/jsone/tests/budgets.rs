//! Each budget, reached on purpose: a typed error, at a place, the same one every time, before the work is done.

#[path = "support/rendering.rs"]
mod rendering;

use jsone::{Arity, Budget, Context, Error, Functions, Limits, Template};
use rendering::{render_with, render_within};
use serde_json::{Value as Json, json};

fn check(template: Json, limits: Limits, which: Budget, limit: u64) {
    let (result, _) =
        render_within(&template, &json!({"text": "0123456789", "list": [1, 2, 3, 4, 5]}), limits);
    match result {
        Err(Error::Budget(exceeded)) => {
            assert_eq!((exceeded.which, exceeded.limit), (which, limit), "{template}");
        }
        other => panic!("{template} gave {other:?}"),
    }
}

// conforms: O62
#[test]
fn work_without_end_is_stopped_after_so_many_steps() {
    let thousand = json!({"$eval": "range(0, 1000)"});
    let nested = json!({"$map": &thousand, "each(a)": {"$map": &thousand, "each(b)": {"$map": &thousand, "each(c)": "${a}${b}${c}"}}});
    let (result, usage) = render_within(&nested, &json!({}), Limits::default());
    assert_eq!(result.unwrap_err().budget(), Some(Budget::Steps));
    assert!(usage.steps <= Limits::default().steps);
}

#[test]
fn values_that_share_their_parts_cost_what_they_are_worth() {
    // Fifty doublings take no memory, but a lifetime to compare, to print or to hash.
    let doubled =
        json!({"$reduce": {"$eval": "range(0, 50)"}, "initial": [0], "each(acc,x)": {"$eval": "[acc, acc]"}});
    for body in [
        json!({"$eval": "big == big"}),
        json!({"$eval": "big in [big]"}),
        json!({"$json": {"$eval": "big"}}),
        json!({"$eval": "big"}),
        json!({"$flattenDeep": {"$eval": "big"}}),
        json!({"$eval": "sha256_json(big)"}),
    ] {
        let template = json!({"$let": {"big": &doubled}, "in": body});
        let functions = jsone::basic_helpers::lend_all();
        let (result, usage) = render_with(&template, &json!({}), &functions, Limits::default());
        assert!(result.unwrap_err().budget().is_some(), "{template}");
        assert!(usage.steps <= Limits::default().steps);
    }
}

#[test]
fn long_strings_are_refused_before_they_are_built() {
    let limits = Limits { string_bytes: 15, ..Limits::default() };
    for template in [
        json!({"$eval": "text + text"}),
        json!("${text}${text}"),
        json!({"${text}${text}": 1}),
        json!({"$eval": "join([text, text], '')"}),
        json!({"$json": [1, 2, 3, 4, 5, 6, 7, 8]}),
        json!("a literal of this length"),
        json!({"a key of this length": 1}),
    ] {
        check(template, limits, Budget::StringBytes, 15);
    }
}

#[test]
fn letters_that_grow_in_uppercase_count_as_they_have_grown() {
    let limits = Limits { string_bytes: 8, ..Limits::default() };
    let grown = render_within(&json!({"$eval": "uppercase('ΐΐΐ')"}), &json!({}), limits).0;
    assert_eq!(grown.unwrap_err().budget(), Some(Budget::StringBytes));
}

#[test]
fn large_collections_are_refused_before_they_are_built() {
    let limits = Limits { collection_size: 4, ..Limits::default() };
    for template in [
        json!({"$eval": "range(0, 5)"}),
        json!({"$eval": "range(0, 18446744073709551615)"}),
        json!({"$eval": "range(9223372036854775807, -9223372036854775808, -1)"}),
        json!({"$eval": "list"}),
        json!({"$eval": "split(text, '')"}),
        json!({"$eval": "[1, 2, 3, 4, 5]"}),
        json!({"$eval": "{a: 1, b: 2, c: 3, d: 4, e: 5}"}),
        json!([1, 2, 3, 4, 5]),
        json!({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}),
        json!({"$flatten": [[1, 2, 3], [4, 5]]}),
        json!({"$flattenDeep": [[1, [2, 3]], [4, 5]]}),
        json!({"$reverse": {"$eval": "list"}}),
        json!({"$map": {"$eval": "list"}, "each(x)": 1}),
        json!({"$sort": {"$eval": "list"}}),
        json!({"$merge": [{"a": 1, "b": 1, "c": 1}, {"d": 1, "e": 1}]}),
        json!({"$mergeDeep": [{"a": [1, 2, 3]}, {"a": [4, 5]}]}),
    ] {
        check(template, limits, Budget::CollectionSize, 4);
    }
}

#[test]
fn reading_a_large_collection_is_allowed_where_nothing_large_is_built() {
    let limits = Limits { collection_size: 4, ..Limits::default() };
    let context = json!({"list": [1, 2, 3, 4, 5]});
    for (template, expected) in [
        (json!({"$eval": "list[4]"}), json!(5)),
        (json!({"$eval": "5 in list"}), json!(true)),
        (json!({"$eval": "list[1:3]"}), json!([2, 3])),
        (json!({"$find": {"$eval": "list"}, "each(x)": "x > 3"}), json!(4)),
    ] {
        assert_eq!(render_within(&template, &context, limits).0, Ok(expected));
    }
}

#[test]
fn the_output_is_counted_as_compact_json() {
    let limits = Limits { output_bytes: 20, ..Limits::default() };
    let (result, usage) = render_within(&json!(["${'é\"'}", 1.5, -10, {}]), &json!({}), limits);
    assert_eq!(result.unwrap().to_string(), r#"["é\"",1.5,-10,{}]"#);
    assert_eq!(usage.output_bytes, 19);
    check(json!(["${'é\"'}", 1.5, -1000, {}]), limits, Budget::OutputBytes, 20);
    check(json!({"$eval": "[text, text]"}), limits, Budget::OutputBytes, 20);
}

#[test]
fn a_template_or_context_that_is_too_long_is_refused_at_the_door() {
    let limits = Limits { template_bytes: 10, context_bytes: 10, ..Limits::default() };
    let refused = Template::parse(&json!(["0123456789"]), limits).unwrap_err();
    assert_eq!(refused.budget(), Some(Budget::TemplateBytes));
    assert_eq!(refused.to_string(), "BudgetError: more than 10 template bytes");
    let context = json!({"a": "0123456789"});
    assert_eq!(Context::new(&context, &limits).unwrap_err().budget(), Some(Budget::ContextBytes));
}

#[test]
fn a_budget_that_ran_out_says_where() {
    let template = json!({"steps": [{"$let": {"x": "${text}${text}"}, "in": 1}]});
    let limits = Limits { string_bytes: 15, ..Limits::default() };
    let (result, _) = render_within(&template, &json!({"text": "0123456789"}), limits);
    let error = result.unwrap_err();
    assert_eq!(error.to_string(), "BudgetError at template.steps[0].x: more than 15 bytes in a string");
    assert_eq!(error.location().path(), "$.steps[0]['$let'].x");
}

#[test]
fn budgets_stay_in_force_for_what_functions_return() {
    let mut functions = Functions::none();
    functions.register("list", Arity::exactly(0), |_| Ok(json!([1, 2, 3, 4, 5]))).unwrap();
    functions.register("text", Arity::exactly(0), |_| Ok(json!("0123456789"))).unwrap();
    functions.register("deep", Arity::exactly(0), |_| Ok(json!([[[[[[]]]]]]))).unwrap();
    let limits = Limits { collection_size: 4, string_bytes: 9, depth: 5, ..Limits::default() };
    for (call, which) in [
        ("typeof(list())", Budget::CollectionSize),
        ("typeof(text())", Budget::StringBytes),
        ("typeof(deep())", Budget::Depth),
    ] {
        let (result, _) = render_with(&json!({"$eval": call}), &json!({}), &functions, limits);
        assert_eq!(result.unwrap_err().budget(), Some(which), "{call}");
    }
}

#[test]
fn a_sort_is_paid_for_before_it_is_done() {
    let template = json!({"$sort": {"$eval": "list"}, "by(x)": "-x"});
    let few: Vec<u32> = (0..100).collect();
    let many: Vec<u32> = (0..1000).collect();
    let steps = |list: Vec<u32>| render_within(&template, &json!({"list": list}), Limits::default()).1.steps;
    assert!(steps(many) > 11 * steps(few), "more than linear");
}

#[test]
fn a_limit_of_zero_allows_nothing() {
    check(json!(1), Limits { steps: 0, ..Limits::default() }, Budget::Steps, 0);
    check(json!([]), Limits { depth: 0, ..Limits::default() }, Budget::Depth, 0);
    check(json!(1), Limits { output_bytes: 0, ..Limits::default() }, Budget::OutputBytes, 0);
    check(json!("a"), Limits { string_bytes: 0, ..Limits::default() }, Budget::StringBytes, 0);
    check(json!([1]), Limits { collection_size: 0, ..Limits::default() }, Budget::CollectionSize, 0);
}
