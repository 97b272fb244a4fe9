//! Templates of a connector: parsed once when its file is read, rendered within budgets.
//!
//! Request templates read `input`, `job`, `operation` and `secrets`; expressions on answers read `answer` alone, so that no answer can
//! ever be joined with a secret.

use std::fmt::Write as _;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::Timestamp;
use jsone::{Arity, Context, Functions, Limits, Now, Template};
use serde_json::{Value, json};

/// The names that requests may read.
pub(super) const REQUEST_NAMES: [&str; 4] = ["input", "job", "operation", "secrets"];
/// The names that expressions on answers may read.
pub(super) const ANSWER_NAMES: [&str; 1] = ["answer"];
/// What an answer has.
const ANSWER_MEMBERS: [&str; 4] = ["status", "headers", "location", "body"];

/// What one render may cost. Inputs and answers may be large; the templates themselves are a person's.
const LIMITS: Limits = Limits {
    template_bytes: 65_536,
    context_bytes: 16 * 1_048_576,
    steps: 5_000_000,
    depth: 120,
    output_bytes: 4 * 1_048_576,
    collection_size: 1_000_000,
    string_bytes: 4 * 1_048_576,
};

/// What templates may call beside the language's own: the basic helpers, `base64` and `uri`.
static FUNCTIONS: LazyLock<Functions> = LazyLock::new(|| {
    let mut functions = jsone::basic_helpers::lend_all();
    for (name, run) in [("base64", base64_text as jsone::Pure), ("uri", uri_component)] {
        functions.register(name, Arity::exactly(1), run).expect("none of the names is taken");
    }
    functions
});

/// Parses a template that reads these names only.
pub(super) fn parse(json: &Value, names: &[&str]) -> Result<Template, String> {
    let template = Template::parse_strict(json, LIMITS).map_err(|error| error.to_string())?;
    let known = |name: &str| names.contains(&name) || FUNCTIONS.names().any(|function| function == name);
    match template.reads().iter().find(|name| !known(name)) {
        None => Ok(template),
        Some(name) => {
            let hint = config_file::hint(name, names);
            Err(format!("there is nothing named {name:?} here{hint}; known: {}", names.join(", ")))
        }
    }
}

/// Parses an expression; anything but a text is a template.
pub(super) fn parse_expression(json: &Value) -> Result<Template, String> {
    let template = match json.as_str() {
        Some(expression) => parse(&json!({ "$eval": expression }), &ANSWER_NAMES)?,
        None => parse(json, &ANSWER_NAMES)?,
    };
    let unknown = |(of, member): &&(String, String)| {
        ANSWER_NAMES.contains(&of.as_str()) && !ANSWER_MEMBERS.contains(&member.as_str())
    };
    match template.reads_members().iter().find(unknown) {
        None => Ok(template),
        Some((of, member)) => {
            let (hint, known) = (config_file::hint(member, &ANSWER_MEMBERS), ANSWER_MEMBERS.join(", "));
            Err(format!("there is no {of}.{member}{hint}; {of} has: {known}"))
        }
    }
}

/// Renders, or says why not. What it says may hold an excerpt of a value: it must be masked like any answer.
pub(super) fn render(template: &Template, context: &Value, now: Timestamp) -> Result<Value, String> {
    rendered(template, context, now).map_err(|error| error.to_string())
}

/// What an expression finds: nothing where a property is missing, or where it cannot be evaluated.
pub(super) fn find(template: &Template, context: &Value, now: Timestamp) -> Option<Value> {
    rendered(template, context, now).ok().filter(|found| !found.is_null())
}

fn rendered(template: &Template, context: &Value, now: Timestamp) -> Result<Value, jsone::Error> {
    let context = Context::new(context, &LIMITS)?;
    let now = Now::from_unix_millis(now.micros() / 1_000).or_else(|| Now::from_unix_millis(0));
    template.render(&context, &FUNCTIONS, &now.expect("the beginning of time is a time"))
}

fn base64_text(arguments: &[Value]) -> Result<Value, String> {
    let [Value::String(text)] = arguments else { return Err("expects a text".to_owned()) };
    Ok(Value::String(STANDARD.encode(text)))
}

/// Everything but letters, digits and `-._~` escaped: safe in any part of a URL and in a form.
fn uri_component(arguments: &[Value]) -> Result<Value, String> {
    let text = match arguments {
        [Value::String(text)] => text.clone(),
        [Value::Number(number)] => number.to_string(),
        _ => return Err("expects a text or a number".to_owned()),
    };
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    Ok(Value::String(escaped))
}
