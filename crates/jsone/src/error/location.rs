//! Where in a template something went wrong: the path to the value and the offset in its text.
//!
//! Two spellings of the path exist. The official one leaves operators out and shows keys as they were rendered;
//! the JSONPath leads to the very value in the template. Both come from the same segments, which hold only
//! excerpts of long keys; and both are cut in their middle when they are long, so that no template floods a log.

use std::fmt::Write as _;

use crate::excerpt::{both_ends, excerpt};
use crate::identifier::is_identifier;

/// One level of the way from the template's root to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// An entry of a plain object, with the key as it was rendered when that is known.
    Entry {
        /// The key as it stands in the template; its first 200 characters and an ellipsis if it is longer.
        key: String,
        /// The key that the official path shows.
        shown: String,
    },
    /// A key that the official path leaves out: the operand of an operator, or an entry whose key failed.
    Operand(String),
    /// An element of an array.
    Index(usize),
}

impl Segment {
    pub(crate) fn entry(written: &str, shown: &str) -> Segment {
        Segment::Entry { key: excerpt(written), shown: excerpt(shown) }
    }

    pub(crate) fn operand(key: &str) -> Segment {
        Segment::Operand(excerpt(key))
    }

    fn bytes(&self) -> usize {
        match self {
            Segment::Entry { key, shown } => key.len() + shown.len(),
            Segment::Operand(key) => key.len(),
            Segment::Index(_) => size_of::<usize>(),
        }
    }
}

/// A place in a template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    // Innermost first: an error collects its segments on the way out.
    outwards: Vec<Segment>,
    offset: Option<usize>,
}

impl Location {
    /// The segments from the root of the template to the value.
    pub fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.outwards.iter().rev()
    }

    /// The JSONPath of the value in the template, such as `$['$let'].x[0]`.
    ///
    /// For a mistake in a key it is the path of that key's entry. Long keys, and the middle of a long path, are
    /// cut and show an ellipsis.
    pub fn path(&self) -> String {
        let mut path = String::from("$");
        for segment in self.segments() {
            match segment {
                Segment::Entry { key, .. } | Segment::Operand(key) => push_key(&mut path, key, '\''),
                Segment::Index(index) => push_index(&mut path, *index),
            }
        }
        both_ends(path)
    }

    /// The path as the official implementations write it, such as `template.x[0]`; empty at the root.
    pub fn official(&self) -> String {
        let mut path = String::new();
        for segment in self.segments() {
            match segment {
                Segment::Entry { shown, .. } => push_key(&mut path, shown, '"'),
                Segment::Index(index) => push_index(&mut path, *index),
                Segment::Operand(_) => {}
            }
        }
        if path.is_empty() { path } else { both_ends(format!("template{path}")) }
    }

    /// The byte offset of the mistake in the string or key that holds the expression.
    pub fn offset(&self) -> Option<usize> {
        self.offset
    }

    /// How much text it holds.
    pub(crate) fn bytes(&self) -> usize {
        self.outwards.iter().map(Segment::bytes).sum()
    }

    pub(crate) fn enclose(&mut self, segment: Segment) {
        self.outwards.push(segment);
    }

    pub(crate) fn enclose_all(&mut self, inwards: &[Segment]) {
        self.outwards.extend(inwards.iter().rev().cloned());
    }

    /// Keeps the innermost offset: what is outside only knows where its own expression began.
    pub(crate) fn offset_or(&mut self, offset: usize) {
        self.offset.get_or_insert(offset);
    }
}

fn push_key(path: &mut String, key: &str, quote: char) {
    if is_identifier(key) {
        path.push('.');
        path.push_str(key);
        return;
    }
    path.push('[');
    path.push(quote);
    for character in key.chars() {
        match character {
            '\\' => path.push_str("\\\\"),
            '\n' => path.push_str("\\n"),
            '\r' => path.push_str("\\r"),
            '\t' => path.push_str("\\t"),
            _ if character == quote => {
                path.push('\\');
                path.push(quote);
            }
            _ if character.is_control() => {
                let _ = write!(path, "\\u{:04x}", u32::from(character));
            }
            _ => path.push(character),
        }
    }
    path.push(quote);
    path.push(']');
}

fn push_index(path: &mut String, index: usize) {
    let _ = write!(path, "[{index}]");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(inwards: &[Segment]) -> Location {
        let mut location = Location::default();
        location.enclose_all(inwards);
        location
    }

    #[test]
    fn the_official_path_leaves_operators_out() {
        let place = location(&[
            Segment::Operand("in".into()),
            Segment::Entry { key: "${k}".into(), shown: "a b".into() },
            Segment::Index(2),
        ]);
        assert_eq!(place.official(), "template[\"a b\"][2]");
        assert_eq!(place.path(), "$.in['${k}'][2]");
    }

    #[test]
    fn the_root_has_no_official_path() {
        assert_eq!(location(&[]).official(), "");
        assert_eq!(location(&[]).path(), "$");
    }

    #[test]
    fn a_key_cannot_forge_a_path() {
        let key = "a'].b['\u{1}".to_owned();
        assert_eq!(location(&[Segment::Operand(key)]).path(), r"$['a\'].b[\'\u0001']");
    }
}
