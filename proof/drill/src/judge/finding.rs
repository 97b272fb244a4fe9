//! What should not be, in words: the rule that was broken, the record, and how.

use std::fmt;

use serde::Serialize;

/// One thing that should not be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    /// The rule, as a short sentence.
    pub rule: &'static str,
    /// The record or the key.
    pub record: String,
    /// What was found.
    pub what: String,
}

impl Finding {
    /// What was found of a record, against a rule.
    pub fn new(rule: &'static str, record: impl Into<String>, what: impl Into<String>) -> Self {
        Self { rule, record: record.into(), what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.rule, self.record, self.what)
    }
}
