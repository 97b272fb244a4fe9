//! Tokens of an expression, read one at a time: what lies behind a mistake is never looked at.

use crate::error::{Error, Outcome};
use crate::excerpt::excerpt;
use crate::identifier::{continues_identifier, starts_identifier};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Number,
    Identifier,
    String,
    True,
    False,
    Null,
    In,
    Power,
    Plus,
    Minus,
    Times,
    Divide,
    OpenBracket,
    CloseBracket,
    Dot,
    OpenParen,
    CloseParen,
    OpenBrace,
    CloseBrace,
    Colon,
    Comma,
    GreaterEqual,
    LessEqual,
    Less,
    Greater,
    Equal,
    NotEqual,
    Not,
    And,
    Or,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'s> {
    pub(crate) kind: Kind,
    pub(crate) text: &'s str,
    /// Byte offset in the source.
    pub(crate) start: usize,
}

/// Two characters before one: `**` is not `*`.
pub(super) const SYMBOLS: [(&str, Kind); 23] = [
    ("**", Kind::Power),
    (">=", Kind::GreaterEqual),
    ("<=", Kind::LessEqual),
    ("==", Kind::Equal),
    ("!=", Kind::NotEqual),
    ("&&", Kind::And),
    ("||", Kind::Or),
    ("+", Kind::Plus),
    ("-", Kind::Minus),
    ("*", Kind::Times),
    ("/", Kind::Divide),
    ("[", Kind::OpenBracket),
    ("]", Kind::CloseBracket),
    (".", Kind::Dot),
    ("(", Kind::OpenParen),
    (")", Kind::CloseParen),
    ("{", Kind::OpenBrace),
    ("}", Kind::CloseBrace),
    (":", Kind::Colon),
    (",", Kind::Comma),
    ("<", Kind::Less),
    (">", Kind::Greater),
    ("!", Kind::Not),
];

pub(crate) struct Tokens<'s> {
    source: &'s str,
    /// Where the source begins in its string; only errors need it.
    base: usize,
    position: usize,
}

impl<'s> Tokens<'s> {
    pub(crate) fn new(source: &'s str, base: usize) -> Tokens<'s> {
        Tokens { source, base, position: 0 }
    }

    /// The next token, or `None` at the end.
    pub(crate) fn next(&mut self) -> Outcome<Option<Token<'s>>> {
        let rest = self.source[self.position..].trim_start();
        let start = self.source.len() - rest.len();
        self.position = start;
        if rest.is_empty() {
            return Ok(None);
        }
        let Some((kind, length)) = recognise(rest) else {
            let (source, rest) = (excerpt(self.source), excerpt(rest));
            return Err(
                Error::syntax(format!("Unexpected input for '{source}' at '{rest}'")).at(self.base + start)
            );
        };
        self.position += length;
        Ok(Some(Token { kind, text: &rest[..length], start }))
    }

    /// Where the source ends.
    pub(crate) fn end(&self) -> usize {
        self.source.len()
    }
}

fn recognise(rest: &str) -> Option<(Kind, usize)> {
    let bytes = rest.as_bytes();
    match bytes.first()? {
        b'0'..=b'9' => Some((Kind::Number, number_length(bytes))),
        quote @ (b'"' | b'\'') => {
            let inner = bytes[1..].iter().position(|byte| byte == quote)?;
            Some((Kind::String, inner + 2))
        }
        first if starts_identifier(*first) => {
            let length = bytes.iter().take_while(|byte| continues_identifier(**byte)).count();
            Some((word(&rest[..length]), length))
        }
        _ => SYMBOLS
            .iter()
            .find(|(symbol, _)| rest.starts_with(symbol))
            .map(|(symbol, kind)| (*kind, symbol.len())),
    }
}

/// Digits, and a fraction if digits follow the point.
fn number_length(bytes: &[u8]) -> usize {
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(0);
    if bytes.get(whole) != Some(&b'.') {
        return whole;
    }
    match digits(whole + 1) {
        0 => whole,
        fraction => whole + 1 + fraction,
    }
}

fn word(text: &str) -> Kind {
    match text {
        "true" => Kind::True,
        "false" => Kind::False,
        "null" => Kind::Null,
        "in" => Kind::In,
        _ => Kind::Identifier,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(source: &str) -> Vec<Kind> {
        let mut tokens = Tokens::new(source, 0);
        std::iter::from_fn(|| tokens.next().unwrap()).map(|token| token.kind).collect()
    }

    #[test]
    fn keywords_are_whole_words() {
        assert_eq!(
            kinds("in insight truey null_"),
            [Kind::In, Kind::Identifier, Kind::Identifier, Kind::Identifier]
        );
    }

    #[test]
    fn the_longer_symbol_wins() {
        assert_eq!(kinds("**>=!=!"), [Kind::Power, Kind::GreaterEqual, Kind::NotEqual, Kind::Not]);
    }

    #[test]
    fn a_point_without_digits_ends_a_number() {
        assert_eq!(kinds("1.a"), [Kind::Number, Kind::Dot, Kind::Identifier]);
        assert_eq!(kinds("1.25"), [Kind::Number]);
    }

    #[test]
    fn a_mistake_is_found_where_it_stands() {
        let mut tokens = Tokens::new("a é", 10);
        tokens.next().unwrap();
        let error = tokens.next().unwrap_err();
        assert_eq!(error.to_string(), "SyntaxError: Unexpected input for 'a é' at 'é'");
        assert_eq!(error.location().offset(), Some(12));
    }
}
