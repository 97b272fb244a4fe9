//! What is wrong with a YAML file that a person wrote, where, and what was probably meant.

mod limits;

use std::fmt;

pub use engine::hint;
pub use limits::FileLimits;
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Error, Location};

/// A mistake in a file that a person wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The file, as it was named.
    pub file: String,
    /// Line and column, counted from 1, if the mistake has a place.
    pub place: Option<(u64, u64)>,
    /// What is wrong.
    pub told: String,
}

impl Mistake {
    /// A mistake of the whole file.
    pub fn somewhere(file: impl fmt::Display, told: impl Into<String>) -> Self {
        Self { file: file.to_string(), place: None, told: told.into() }
    }

    /// A mistake in this place.
    pub fn at(file: impl fmt::Display, location: &Location, told: impl Into<String>) -> Self {
        let place = Some((location.line(), location.column()));
        Self { file: file.to_string(), place, told: told.into() }
    }

    /// What the reader of YAML found.
    pub fn of_yaml(file: impl fmt::Display, error: &Error) -> Self {
        let error = error.without_snippet();
        #[allow(
            clippy::wildcard_enum_match_arm,
            reason = "of the reader's many errors these are the ones that people make; the others are in its own words"
        )]
        let told = match error {
            Error::SerdeUnknownField { field, expected, .. } => match hint(field, expected).as_str() {
                "" => format!("unknown key {field:?}; known here: {}", expected.join(", ")),
                hint => format!("unknown key {field:?}{hint}"),
            },
            Error::SerdeUnknownVariant { variant, expected, .. } => {
                format!("{variant:?} is not one of: {}{}", expected.join(", "), hint(variant, expected))
            }
            Error::SerdeMissingField { field, .. } => format!("the key {field:?} is missing"),
            Error::DuplicateMappingKey { key: Some(key), .. } => format!("the key {key:?} occurs twice"),
            Error::Unexpected { expected, .. } => unexpected(expected),
            Error::Budget { breach, .. } => too_much(breach),
            Error::InvalidScalar { ty, .. } if ty.starts_with(['u', 'i']) => {
                "a whole number is expected here".to_owned()
            }
            other => plain(&other.to_string()),
        };
        let place = error.location().map(|location| (location.line(), location.column()));
        Self { file: file.to_string(), place, told }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some((line, column)) = self.place {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.told)
    }
}

impl std::error::Error for Mistake {}

#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "of the reader's many limits these are the ones that people meet; the others are all about size"
)]
fn too_much(breach: &BudgetBreach) -> String {
    match breach {
        BudgetBreach::Depth { depth } => {
            format!("lists and objects stand in each other here {depth} deep, which is too deep")
        }
        BudgetBreach::Anchors { .. } | BudgetBreach::Aliases { .. } => {
            "anchors (`&name`) and aliases (`*name`) are not allowed; write it out".to_owned()
        }
        BudgetBreach::Documents { .. } => {
            "there may be one document in the file; `---` begins another".to_owned()
        }
        _ => "the file is too large: it has too many entries".to_owned(),
    }
}

fn unexpected(expected: &str) -> String {
    match expected {
        "mapping start" => "keys with values are expected here, as { key: value }".to_owned(),
        "sequence start" => "a list is expected here, as [one, two]".to_owned(),
        other => format!("{other} is expected here"),
    }
}

/// The first line: the place is told by us.
fn plain(told: &str) -> String {
    let line = told.lines().next().unwrap_or_default();
    line.split(" at line ").next().unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn told(text: &str) -> String {
        let limits = FileLimits { bytes: 1_024, nesting: 4, nodes: 100 };
        let read = limits.parse::<serde_json::Value>("f.yaml", text);
        read.expect_err("it is over a limit").to_string()
    }

    #[test]
    fn what_is_over_a_limit_is_told_in_the_words_of_whoever_wrote_it() {
        let deep = told("a: [[[[[[1]]]]]]");
        assert!(deep.contains("stand in each other here 5 deep"), "{deep}");
        let anchor = told("a: &x 1\nb: 2\n");
        assert!(anchor.contains("anchors (`&name`)"), "{anchor}");
        let many = told(&"- 1\n".repeat(200));
        assert!(many.contains("too many entries"), "{many}");
    }
}
