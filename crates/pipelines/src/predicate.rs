//! Predicates: whether a pipeline starts, or a step is done, by what the event carries.
//!
//! `{path, op, value}`, `{all: [..]}`, `{any: [..]}` or `{not: ..}`. Integers are compared exactly. A value of the wrong kind is an error
//! and never simply false: whoever asks writes the reason down. Errors name paths and kinds, and no values: they end up in the ledger.

mod pattern;
mod read;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::fmt;

use jsone::compare_numbers;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value, json};

use super::path::{Path, Roots, kind_of};
use pattern::Pattern;

/// Whether something shall happen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum Predicate {
    /// What is said of one value.
    Test(Test),
    /// All of them hold; whatever stands behind the first that does not is not looked at.
    All(Vec<Self>),
    /// One of them holds; whatever stands behind it is not looked at.
    Any(Vec<Self>),
    /// It does not hold.
    Not(Box<Self>),
}

/// What is said of one value.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    path: Path,
    op: Op,
}

#[derive(Clone, Debug, PartialEq)]
enum Op {
    Exists,
    Eq(Value),
    Neq(Value),
    In(Vec<Value>),
    Than(Than, Number),
    /// Texts, whatever their case.
    Text(Part, String),
    Regex(Pattern),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Than {
    Gt,
    Gte,
    Lt,
    Lte,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Contains,
    StartsWith,
    EndsWith,
}

/// A value is not of the kind that its predicate compares.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {op} needs {needed}, and there is {found}")]
pub struct PredicateError {
    /// Where the value is.
    pub path: String,
    /// How it is compared.
    pub op: &'static str,
    /// What the comparison needs.
    pub needed: &'static str,
    /// What is there.
    pub found: &'static str,
}

impl Predicate {
    /// Whether it holds for what is there.
    pub fn evaluate(&self, roots: &Roots<'_>) -> Result<bool, PredicateError> {
        match self {
            Self::Test(test) => test.evaluate(roots),
            Self::All(parts) => first_that(parts, roots, false),
            Self::Any(parts) => first_that(parts, roots, true),
            Self::Not(part) => part.evaluate(roots).map(|holds| !holds),
        }
    }
}

/// This answer, if one part gives it.
fn first_that(parts: &[Predicate], roots: &Roots<'_>, answer: bool) -> Result<bool, PredicateError> {
    for part in parts {
        if part.evaluate(roots)? == answer {
            return Ok(answer);
        }
    }
    Ok(!answer)
}

impl Test {
    fn evaluate(&self, roots: &Roots<'_>) -> Result<bool, PredicateError> {
        let found = self.path.find(roots);
        let equal = |wanted: &Value| same(found.unwrap_or(&Value::Null), wanted);
        match &self.op {
            Op::Exists => Ok(found.is_some()),
            Op::Eq(wanted) => Ok(equal(wanted)),
            Op::Neq(wanted) => Ok(!equal(wanted)),
            Op::In(wanted) => Ok(wanted.iter().any(equal)),
            Op::Than(than, bound) => match found {
                Some(Value::Number(number)) => Ok(than.holds(compare_numbers(number, bound))),
                other => Err(self.unfit("a number", other)),
            },
            Op::Text(part, wanted) => self.text(found).map(|text| part.holds(text, wanted)),
            Op::Regex(pattern) => self.text(found).map(|text| pattern.matches(text)),
        }
    }

    fn text<'v>(&self, found: Option<&'v Value>) -> Result<&'v str, PredicateError> {
        found.and_then(Value::as_str).ok_or_else(|| self.unfit("a text", found))
    }

    fn unfit(&self, needed: &'static str, found: Option<&Value>) -> PredicateError {
        PredicateError { path: self.path.to_string(), op: self.op.name(), needed, found: kind_of(found) }
    }
}

/// Equal all the way down; numbers by what they are worth, so that 1 is 1.0.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b).is_eq(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

impl Than {
    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Gt => ordering.is_gt(),
            Self::Gte => ordering.is_ge(),
            Self::Lt => ordering.is_lt(),
            Self::Lte => ordering.is_le(),
        }
    }
}

impl Part {
    fn holds(self, text: &str, wanted: &str) -> bool {
        let (text, wanted) = (text.to_lowercase(), wanted.to_lowercase());
        match self {
            Self::Contains => text.contains(&wanted),
            Self::StartsWith => text.starts_with(&wanted),
            Self::EndsWith => text.ends_with(&wanted),
        }
    }
}

impl Op {
    const fn name(&self) -> &'static str {
        match self {
            Self::Exists => "exists",
            Self::Eq(_) => "eq",
            Self::Neq(_) => "neq",
            Self::In(_) => "in",
            Self::Than(Than::Gt, _) => "gt",
            Self::Than(Than::Gte, _) => "gte",
            Self::Than(Than::Lt, _) => "lt",
            Self::Than(Than::Lte, _) => "lte",
            Self::Text(Part::Contains, _) => "contains",
            Self::Text(Part::StartsWith, _) => "startswith",
            Self::Text(Part::EndsWith, _) => "endswith",
            Self::Regex(_) => "regex",
        }
    }

    /// What it compares with, as it was written.
    fn value(&self) -> Option<Value> {
        match self {
            Self::Exists => None,
            Self::Eq(wanted) | Self::Neq(wanted) => Some(wanted.clone()),
            Self::In(wanted) => Some(Value::Array(wanted.clone())),
            Self::Than(_, bound) => Some(Value::Number(bound.clone())),
            Self::Text(_, wanted) => Some(Value::String(wanted.clone())),
            Self::Regex(pattern) => Some(Value::String(pattern.as_str().to_owned())),
        }
    }
}

impl From<Predicate> for Value {
    fn from(predicate: Predicate) -> Self {
        match predicate {
            Predicate::Test(Test { path, op }) => match op.value() {
                None => json!({ "path": path.to_string(), "op": op.name() }),
                Some(value) => json!({ "path": path.to_string(), "op": op.name(), "value": value }),
            },
            Predicate::All(parts) => json!({ "all": parts }),
            Predicate::Any(parts) => json!({ "any": parts }),
            Predicate::Not(part) => json!({ "not": part }),
        }
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut joined = |parts: &[Self], word: &str| {
            parts.iter().enumerate().try_for_each(|(at, part)| {
                f.write_str(if at == 0 { "(" } else { word })?;
                part.fmt(f)
            })?;
            f.write_str(")")
        };
        match self {
            Self::Test(Test { path, op }) => {
                write!(f, "{path} {}", op.name())?;
                op.value().map_or(Ok(()), |value| write!(f, " {value}"))
            }
            Self::All(parts) => joined(parts, " and "),
            Self::Any(parts) => joined(parts, " or "),
            Self::Not(part) => write!(f, "not ({part})"),
        }
    }
}
