//! What holds for every template and every context. `LONGHAUL_CASES` tries more of them.

#![allow(clippy::disallowed_methods)]

#[path = "support/rendering.rs"]
mod rendering;
#[path = "support/sample.rs"]
mod sample;
#[path = "support/trials.rs"]
mod trials;

use jsone::{Budget, Context, Error, Functions, Limits, Template, Usage};
use proptest::prelude::*;
use rendering::{now, render_with};
use sample::{Flavour, Sample};
use serde_json::Value as Json;
use trials::try_all;

const DEFAULT_CASES: u32 = 10_000;

fn wild(bytes: &[u8]) -> Sample {
    sample::sample(bytes, Flavour::Wild)
}

fn rendered(sample: &Sample, limits: Limits) -> (Result<Json, Error>, Usage) {
    render_with(&sample.template, &sample.context, &functions(), limits)
}

fn functions() -> Functions {
    jsone::basic_helpers::lend_all()
}

/// Small enough that samples reach every one of them.
fn tight() -> Limits {
    Limits {
        template_bytes: 400,
        context_bytes: 160,
        steps: 60,
        depth: 6,
        output_bytes: 30,
        collection_size: 4,
        string_bytes: 12,
    }
}

// Broken templates, limits of zero and absurd numbers included: whatever panics fails the test.
#[test]
fn nothing_panics() {
    try_all(DEFAULT_CASES, |bytes| {
        let sample = wild(bytes);
        for limits in [Limits::default(), tight(), Limits { steps: 0, depth: 0, ..tight() }] {
            let (result, _) = rendered(&sample, limits);
            if let Err(error) = result {
                prop_assert!(!error.to_string().is_empty());
                prop_assert!(error.location().path().starts_with('$'));
            }
        }
        let _ = Template::parse_strict(&sample.template, Limits::default()).is_ok();
        Ok(())
    });
}

// Arbitrary text, not only what looks like an expression.
#[test]
fn no_text_panics() {
    try_all(DEFAULT_CASES, |bytes| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let sample = |template: Json| Sample { template, context: serde_json::json!({"a": &text}) };
        for template in [
            serde_json::json!({"$eval": &text}),
            serde_json::json!(format!("${{{text}}}")),
            serde_json::json!({&text: &text}),
            serde_json::json!({"$switch": {&text: 1}}),
            serde_json::json!({"$map": [1], &text: 1}),
            serde_json::json!({"$fromNow": &text, "from": &text}),
            serde_json::json!({"$eval": "[number(a), fromNow(a), has(a, a), split(a, a), sha256_text(a)]"}),
            serde_json::json!({"$eval": "[uppercase(a), len(a), a[0], a[1:-1], a in a, strip(a), {a: a}]"}),
        ] {
            let _ = rendered(&sample(template), Limits::default()).0.is_ok();
        }
        Ok(())
    });
}

// conforms: O62 O111
#[test]
fn the_same_input_gives_the_same_output_or_failure() {
    try_all(DEFAULT_CASES, |bytes| {
        for limits in [Limits::default(), tight()] {
            let first = rendered(&wild(bytes), limits);
            let second = rendered(&wild(bytes), limits);
            prop_assert_eq!(&first, &second);

            let sample = wild(bytes);
            if let (Ok(template), Ok(context)) =
                (Template::parse(&sample.template, limits), Context::new(&sample.context, &limits))
            {
                // A template that was rendered before has not changed, nor has its context.
                let _ = template.render(&context, &functions(), &now());
                prop_assert_eq!(&template.render_metered(&context, &functions(), &now()), &first);
                prop_assert_eq!(&sample.context, &wild(bytes).context);
            }
        }
        Ok(())
    });
}

// conforms: O62
#[test]
fn no_budget_is_ever_exceeded() {
    try_all(DEFAULT_CASES, |bytes| {
        let limits = tight();
        let (result, usage) = rendered(&wild(bytes), limits);
        prop_assert!(usage.steps <= limits.steps);
        prop_assert!(usage.depth <= limits.depth);
        prop_assert!(usage.output_bytes <= limits.output_bytes);
        prop_assert!(usage.collection_size <= limits.collection_size);
        prop_assert!(usage.string_bytes <= limits.string_bytes);
        if let Ok(result) = result {
            prop_assert_eq!(result.to_string().len(), usage.output_bytes);
            prop_assert!(depth(&result) <= limits.depth);
            prop_assert!(largest(&result) <= limits.collection_size);
            prop_assert!(longest(&result) <= limits.string_bytes);
        }
        Ok(())
    });
}

// One less of any budget than a render used, and that budget is what it fails for; as much as it used, and
// nothing changes. So every budget is counted to the unit.
#[test]
fn every_budget_is_exact() {
    try_all(DEFAULT_CASES, |bytes| {
        let sample = wild(bytes);
        let (Ok(result), usage) = rendered(&sample, Limits::default()) else { return Ok(()) };
        let exact = Limits {
            steps: usage.steps,
            output_bytes: usage.output_bytes,
            collection_size: usage.collection_size,
            string_bytes: usage.string_bytes,
            ..Limits::default()
        };
        prop_assert_eq!(rendered(&sample, exact), (Ok(result), usage));

        let mut tighter = vec![(Budget::Steps, Limits { steps: usage.steps - 1, ..exact })];
        tighter.push((Budget::OutputBytes, Limits { output_bytes: usage.output_bytes - 1, ..exact }));
        if usage.collection_size > 0 {
            tighter.push((
                Budget::CollectionSize,
                Limits { collection_size: usage.collection_size - 1, ..exact },
            ));
        }
        if usage.string_bytes > 0 {
            tighter.push((Budget::StringBytes, Limits { string_bytes: usage.string_bytes - 1, ..exact }));
        }
        for (which, limits) in tighter {
            let (result, less) = rendered(&sample, limits);
            prop_assert_eq!(result.err().and_then(|error| error.budget()), Some(which));
            prop_assert!(less.steps <= limits.steps);
        }
        Ok(())
    });
}

#[test]
fn a_render_reads_no_other_names_than_it_was_said_to() {
    try_all(DEFAULT_CASES, |bytes| {
        let sample = wild(bytes);
        let limits = Limits::default();
        let Ok(template) = Template::parse(&sample.template, limits) else { return Ok(()) };
        let Json::Object(mut context) = sample.context else { return Ok(()) };
        // What hides a built-in is not listed: the template means the built-in.
        context.retain(|name, _| !jsone::BUILTINS.contains(&name.as_str()) && name != "now");
        if template.reads_any_name() || Context::new(&Json::Object(context.clone()), &limits).is_err() {
            return Ok(());
        }
        let whole = Json::Object(context.clone());
        context.retain(|name, _| template.reads().contains(name));
        let reduced = Json::Object(context);
        let render = |context: &Json| {
            let context = Context::new(context, &limits).expect("its names are fine");
            template.render(&context, &functions(), &now())
        };
        prop_assert_eq!(render(&whole), render(&reduced));
        Ok(())
    });
}

// Refused where it is computed: the last resort, where the result is written, never has to speak, so nothing that
// stays inside rests on such a number either.
// conforms: O117
#[test]
fn every_number_that_is_computed_is_finite() {
    const NUMBERS: [&str; 14] = [
        "0",
        "1",
        "-1",
        "2",
        "0.5",
        "-0.5",
        "5e-324",
        "1e-308",
        "1e308",
        "-1e308",
        "1.7976931348623157e308",
        "9007199254740993",
        "18446744073709551615",
        "-9223372036854775808",
    ];
    const COMPUTED: [&str; 10] = [
        "a + b",
        "a - b",
        "a * b",
        "a / b",
        "a ** b",
        "-a",
        "abs(a)",
        "sqrt(a)",
        "ceil(a) * floor(b)",
        "max(a * b, a)",
    ];
    try_all(DEFAULT_CASES, |bytes| {
        let chosen = |place: usize| usize::from(bytes.get(place).copied().unwrap_or(0));
        let number = |place: usize| serde_json::from_str::<Json>(NUMBERS[chosen(place) % NUMBERS.len()]).ok();
        let computed = COMPUTED[chosen(2) % COMPUTED.len()];
        let sample = Sample {
            template: serde_json::json!({"$eval": computed}),
            context: serde_json::json!({"a": number(0), "b": number(1)}),
        };
        if let (Err(error), _) = rendered(&sample, Limits::default()) {
            let last_resort = error.to_string().contains("a number is not finite");
            prop_assert!(!last_resort, "{} of {}", computed, sample.context);
        }
        Ok(())
    });
}

#[test]
fn a_template_without_faults_passes_the_strict_parser_and_renders_the_same() {
    try_all(DEFAULT_CASES, |bytes| {
        let sample = wild(bytes);
        let Ok(template) = Template::parse(&sample.template, Limits::default()) else { return Ok(()) };
        let strict = Template::parse_strict(&sample.template, Limits::default());
        prop_assert_eq!(strict.is_ok(), template.faults().is_empty());
        prop_assert_eq!(strict.err(), template.faults().first().cloned());
        Ok(())
    });
}

// Properties of nothing but errors, or of nothing but results, would prove little.
#[test]
fn the_samples_reach_every_kind_of_answer() {
    let reached = std::cell::RefCell::new(std::collections::BTreeMap::<String, u32>::new());
    try_all(DEFAULT_CASES, |bytes| {
        for limits in [Limits::default(), tight()] {
            let answer = match rendered(&wild(bytes), limits).0 {
                Ok(_) => "a result".to_owned(),
                Err(Error::Fault(fault)) => fault.class.to_string(),
                Err(Error::Budget(exceeded)) => exceeded.which.to_string(),
            };
            *reached.borrow_mut().entry(answer).or_default() += 1;
        }
        Ok(())
    });
    let reached = reached.into_inner();
    // A result, four classes and seven budgets.
    assert_eq!(reached.len(), 12, "{reached:?}");
    assert!(reached["a result"] * 4 > trials::cases(DEFAULT_CASES), "{reached:?}");
}

/// The value and everything in it, each with the number of collections around it.
fn parts(json: &Json) -> Vec<(&Json, usize)> {
    let mut found = vec![(json, 0)];
    let mut next = 0;
    while let Some((part, outer)) = found.get(next).copied() {
        next += 1;
        match part {
            Json::Array(items) => found.extend(items.iter().map(|item| (item, outer + 1))),
            Json::Object(entries) => found.extend(entries.values().map(|value| (value, outer + 1))),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
        }
    }
    found
}

fn depth(json: &Json) -> usize {
    let levels = |(part, outer): (&Json, usize)| outer + usize::from(part.is_array() || part.is_object());
    parts(json).into_iter().map(levels).max().unwrap_or(0)
}

fn largest(json: &Json) -> usize {
    let size = |part: &Json| {
        part.as_array().map_or(0, Vec::len).max(part.as_object().map_or(0, serde_json::Map::len))
    };
    parts(json).into_iter().map(|(part, _)| size(part)).max().unwrap_or(0)
}

fn longest(json: &Json) -> usize {
    let keys =
        |part: &Json| part.as_object().and_then(|object| object.keys().map(String::len).max()).unwrap_or(0);
    parts(json)
        .into_iter()
        .map(|(part, _)| part.as_str().map_or(0, str::len).max(keys(part)))
        .max()
        .unwrap_or(0)
}
