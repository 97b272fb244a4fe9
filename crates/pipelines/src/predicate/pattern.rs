//! A regular expression that matches a whole text, in time linear in it.

use regex::{Regex, RegexBuilder};

const MAX_PATTERN_BYTES: usize = 1_024;
const MAX_COMPILED_BYTES: usize = 262_144;

/// A pattern, ready for use.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    written: String,
    compiled: Regex,
}

impl Pattern {
    /// Compiles a pattern, or says what is wrong with it.
    pub(super) fn parse(written: &str) -> Result<Self, String> {
        if written.len() > MAX_PATTERN_BYTES {
            return Err(format!("a pattern has at most {MAX_PATTERN_BYTES} bytes"));
        }
        // By itself first: `a)|(b` would only make sense between our own parentheses.
        compile(written)?;
        Ok(Self { compiled: compile(&format!(r"\A(?:{written})\z"))?, written: written.to_owned() })
    }

    /// Whether the whole text is as the pattern says.
    pub(super) fn matches(&self, text: &str) -> bool {
        self.compiled.is_match(text)
    }

    /// The pattern as it was written.
    pub(super) fn as_str(&self) -> &str {
        &self.written
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

fn compile(pattern: &str) -> Result<Regex, String> {
    let mut builder = RegexBuilder::new(pattern);
    builder.size_limit(MAX_COMPILED_BYTES).dfa_size_limit(MAX_COMPILED_BYTES);
    builder.build().map_err(|error| {
        let told = error.to_string();
        let reason = told.lines().last().unwrap_or_default();
        format!("{pattern:?} is no pattern: {}", reason.trim_start_matches("error: "))
    })
}
