//! Strings with `${..}` in them, as values and as keys. `$${` stands for a plain `${`.

use serde_json::Value as Json;

use super::Compiler;
use crate::error::Outcome;
use crate::expression::parse_until_brace;
use crate::node::{Interpolation, Key, Node, Piece};

impl Compiler {
    pub(super) fn text(&mut self, text: &str) -> Outcome<Node> {
        Ok(match self.pieces(text)? {
            Pieces::Plain(plain) => Node::Literal(Json::String(plain)),
            Pieces::Mixed(interpolation) => Node::Interpolation(interpolation),
        })
    }

    pub(super) fn key(&mut self, text: &str) -> Outcome<Key> {
        Ok(match self.pieces(text)? {
            Pieces::Plain(plain) => Key::Fixed(plain.into()),
            Pieces::Mixed(interpolation) => Key::Interpolation(interpolation),
        })
    }

    fn pieces(&mut self, text: &str) -> Outcome<Pieces> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = 0;
        while let Some(found) = text[rest..].find("${") {
            let dollar = rest + found;
            let begin = dollar + 2;
            if text[rest..dollar].ends_with('$') {
                // The dollar before is the escape; it goes, the brace stays plain.
                plain.push_str(&text[rest..dollar]);
                plain.push('{');
                rest = begin;
                continue;
            }
            plain.push_str(&text[rest..dollar]);
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain).into()));
            }
            let source = &text[begin..];
            match parse_until_brace(source, begin, self.levels) {
                Ok((program, end)) => {
                    pieces.push(Piece::Expression { program, source: source[..end].into() });
                    rest = begin + end + 1;
                }
                Err(error) => {
                    pieces.push(Piece::Fault(self.deferred(error)?));
                    return Ok(Pieces::Mixed(Interpolation { pieces }));
                }
            }
        }
        plain.push_str(&text[rest..]);
        if pieces.is_empty() {
            return Ok(Pieces::Plain(plain));
        }
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain.into()));
        }
        Ok(Pieces::Mixed(Interpolation { pieces }))
    }
}

enum Pieces {
    Plain(String),
    Mixed(Interpolation),
}
