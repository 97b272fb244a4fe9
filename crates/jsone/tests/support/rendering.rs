//! Short ways to render in tests.

#![allow(dead_code)]

use jsone::{Context, Error, Functions, Limits, Now, Template, Usage};
use serde_json::{Value as Json, json};

/// The official suite's clock.
pub const NOW: &str = "2017-01-19T16:27:20.974Z";

pub fn now() -> Now {
    Now::from_rfc3339(NOW).expect("a time")
}

/// Renders with the default limits and no host functions.
pub fn render(template: &Json, context: &Json) -> Result<Json, Error> {
    render_within(template, context, Limits::default()).0
}

/// Evaluates one expression.
pub fn eval(expression: &str, context: &Json) -> Result<Json, Error> {
    render(&json!({"$eval": expression}), context)
}

pub fn render_within(template: &Json, context: &Json, limits: Limits) -> (Result<Json, Error>, Usage) {
    render_with(template, context, &Functions::none(), limits)
}

pub fn render_with(
    template: &Json,
    context: &Json,
    functions: &Functions,
    limits: Limits,
) -> (Result<Json, Error>, Usage) {
    let template = match Template::parse(template, limits) {
        Ok(template) => template,
        Err(error) => return (Err(error), Usage::default()),
    };
    match Context::new(context, &limits) {
        Ok(context) => template.render_metered(&context, functions, &now()),
        Err(error) => (Err(error), Usage::default()),
    }
}

/// The same JSON value nested that many times, built without recursion.
pub fn nested(levels: usize, inner: Json, wrap: fn(Json) -> Json) -> Json {
    (0..levels).fold(inner, |json, _| wrap(json))
}

/// Drops a value of any depth; `serde_json` would recurse.
pub fn dismantle(json: Json) {
    let mut rest = vec![json];
    while let Some(next) = rest.pop() {
        match next {
            Json::Array(items) => rest.extend(items),
            Json::Object(entries) => rest.extend(entries.into_iter().map(|(_, value)| value)),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
        }
    }
}
