//! The official specification, case by case: result, class of error, and message where the suite gives one.

#![allow(clippy::disallowed_methods, clippy::disallowed_macros)]

#[path = "support/same.rs"]
mod same;
#[path = "support/specification.rs"]
mod specification;

use std::collections::BTreeMap;

use jsone::{Context, Functions, Limits, Now, Template};
use same::same;
use serde_json::Value as Json;
use specification::{Case, Expected};

/// The suite's clock.
const NOW: &str = "2017-01-19T16:27:20.974Z";
const CASES: usize = 1175;

/// Cases that this crate answers otherwise on purpose: `section: title`, and why. There are none.
const DIFFERENT: [(&str, &str); 0] = [];

#[test]
fn every_official_case_has_its_official_answer() {
    let cases = specification::cases();
    assert_eq!(cases.len(), CASES);
    let different: BTreeMap<&str, &str> = DIFFERENT.into_iter().collect();
    let failures: Vec<String> = cases
        .iter()
        .filter(|case| !different.contains_key(name(case).as_str()))
        .filter_map(failure)
        .collect();
    assert!(failures.is_empty(), "{} cases differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn the_suite_has_the_shape_that_the_readme_tells() {
    let cases = specification::cases();
    let errors = cases.iter().filter(|case| matches!(case.expected, Expected::Error(_))).count();
    let messages = cases.iter().filter(|case| matches!(case.expected, Expected::Error(Some(_)))).count();
    assert_eq!((errors, messages), (467, 397));
}

fn failure(case: &Case) -> Option<String> {
    let rendered = render(&case.template, &case.context);
    let wrong = match (&case.expected, &rendered) {
        (Expected::Result(expected), Ok(result)) => !same(expected, result),
        (Expected::Error(Some(expected)), Err(message)) => expected != message,
        (Expected::Error(None), Err(_)) => false,
        (Expected::Result(_), Err(_)) | (Expected::Error(_), Ok(_)) => true,
    };
    wrong.then(|| format!("{}: {} gave {rendered:?}", name(case), case.template))
}

fn name(case: &Case) -> String {
    format!("{}: {}", case.section, case.title)
}

fn render(template: &Json, context: &Json) -> Result<Json, String> {
    let limits = Limits::default();
    let template = Template::parse(template, limits).map_err(|error| error.to_string())?;
    let context = Context::new(context, &limits).map_err(|error| error.to_string())?;
    let now = Now::from_rfc3339(NOW).expect("a time");
    template.render(&context, &Functions::none(), &now).map_err(|error| error.to_string())
}
