//! What is wrong with a file that a person wrote, where, and what was probably meant. Used by connectors and by the configuration.

use std::fmt;

use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Error, Location};

/// Words that differ by more are not taken for each other.
const MAX_DISTANCE: usize = 3;
/// A shorter word begins like too many others.
const MIN_BEGINNING: usize = 4;

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

/// The nearest word that is known, if it is near: one that begins like it, or one that is spelt almost like it.
pub fn hint(word: &str, known: &[&str]) -> String {
    // Whoever wrote a word did not mean the same word.
    let known: Vec<&&str> = known.iter().filter(|known| **known != word).collect();
    let longer = known.iter().filter(|known| word.len() >= MIN_BEGINNING && known.starts_with(word));
    if let [only] = longer.collect::<Vec<_>>()[..] {
        return format!("; did you mean {only:?}?");
    }
    let nearest = known.iter().map(|known| (distance(word, known), known)).min();
    match nearest {
        Some((far, known)) if far <= MAX_DISTANCE.min(word.len() / 2 + 1) => {
            format!("; did you mean {known:?}?")
        }
        Some(_) | None => String::new(),
    }
}

/// How many letters must be changed, put in, taken out or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
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
        let options = serde_saphyr::options! {
            with_snippet: false,
            budget: serde_saphyr::budget! { max_documents: 1, max_depth: 4, max_nodes: 100, max_aliases: 0, max_anchors: 0 },
        };
        let read = serde_saphyr::from_str_with_options::<serde_json::Value>(text, options);
        Mistake::of_yaml("f.yaml", &read.expect_err("it is over a limit")).to_string()
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
