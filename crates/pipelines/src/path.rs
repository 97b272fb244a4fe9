//! Where a value is: `payload.a.b`, `context.x`, `config.y`. A number leads into a list.

use std::fmt;

use config_file::hint;
use serde_json::Value;

/// Names behind each other in one path.
const MAX_SEGMENTS: usize = 16;
const MAX_SEGMENT_BYTES: usize = 128;

/// What predicates and templates read.
#[derive(Clone, Copy, Debug)]
pub struct Roots<'v> {
    /// What the event carries.
    pub payload: &'v Value,
    /// What the run has carried so far.
    pub context: &'v Value,
    /// What the operator configured.
    pub config: &'v Value,
}

/// Where a path begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Root {
    Payload,
    Context,
    Config,
}

/// Where a value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path {
    root: Root,
    segments: Vec<String>,
}

impl Root {
    /// Where predicates may begin.
    pub(super) const ALL: [Self; 3] = [Self::Payload, Self::Context, Self::Config];
    /// Where what a step is given may begin.
    pub(super) const CARRIED: [Self; 2] = [Self::Payload, Self::Context];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Payload => "payload",
            Self::Context => "context",
            Self::Config => "config",
        }
    }
}

impl Path {
    /// Reads a path that begins in one of these roots.
    pub(super) fn parse(text: &str, roots: &[Root]) -> Result<Self, String> {
        let mut names = text.split('.');
        let begins = names.next().unwrap_or_default();
        let Some(root) = roots.iter().find(|root| root.as_str() == begins) else {
            let known: Vec<&str> = roots.iter().map(|root| root.as_str()).collect();
            let hint = hint(begins, &known);
            return Err(format!("{text:?}: a path begins with {}{hint}", known.join(" or ")));
        };
        let segments = segments(text, names)?;
        Ok(Self { root: *root, segments })
    }

    /// The value that is there.
    pub(super) fn find<'v>(&self, roots: &Roots<'v>) -> Option<&'v Value> {
        let root = match self.root {
            Root::Payload => roots.payload,
            Root::Context => roots.context,
            Root::Config => roots.config,
        };
        self.segments.iter().try_fold(root, |value, segment| match value {
            Value::Object(entries) => entries.get(segment),
            Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        })
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.root.as_str())?;
        self.segments.iter().try_for_each(|segment| write!(f, ".{segment}"))
    }
}

/// Checks the names of a path.
pub(super) fn segments<'t>(path: &str, names: impl Iterator<Item = &'t str>) -> Result<Vec<String>, String> {
    let segments: Vec<String> = names.map(str::to_owned).collect();
    if segments.len() > MAX_SEGMENTS {
        return Err(format!("{path:?}: a path has at most {MAX_SEGMENTS} names"));
    }
    let is_name = |segment: &String| {
        (1..=MAX_SEGMENT_BYTES).contains(&segment.len())
            && segment.chars().all(|character| character.is_alphanumeric() || "_-".contains(character))
    };
    if segments.iter().all(is_name) {
        return Ok(segments);
    }
    Err(format!("{path:?}: a path is names with dots between them; a name has letters, digits, _ and -"))
}

/// What a value is, in the words of the people who write pipelines.
pub(super) fn kind_of(value: Option<&Value>) -> &'static str {
    match value {
        None => "nothing",
        Some(Value::Null) => "null",
        Some(Value::Bool(_)) => "true or false",
        Some(Value::Number(_)) => "a number",
        Some(Value::String(_)) => "a text",
        Some(Value::Array(_)) => "a list",
        Some(Value::Object(_)) => "an object",
    }
}
