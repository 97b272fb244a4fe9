//! Tokens of an expression, read one at a time: what lies behind a mistake is never looked at.

use crate::error::{Error, Outcome};
use crate::excerpt::excerpt;
use crate::identifier::{continues_identifier, starts_identifier};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Number,
    Identifier,
    /// With its quotes: its text is never that of a symbol.
    String,
    /// A keyword or an operator: the text says which.
    Symbol,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'s> {
    pub(crate) kind: Kind,
    pub(crate) text: &'s str,
    /// Byte offset in the source.
    pub(crate) start: usize,
}

const KEYWORDS: [&str; 4] = ["true", "false", "null", "in"];

/// Two characters before one: `**` is not `*`.
pub(super) const SYMBOLS: [&str; 23] = [
    "**", ">=", "<=", "==", "!=", "&&", "||", "+", "-", "*", "/", "[", "]", ".", "(", ")", "{", "}", ":",
    ",", "<", ">", "!",
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
            let is_keyword = KEYWORDS.contains(&&rest[..length]);
            Some((if is_keyword { Kind::Symbol } else { Kind::Identifier }, length))
        }
        _ => {
            let symbol = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol))?;
            Some((Kind::Symbol, symbol.len()))
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(source: &str) -> Vec<(Kind, &str)> {
        let mut tokens = Tokens::new(source, 0);
        std::iter::from_fn(|| tokens.next().unwrap()).map(|token| (token.kind, token.text)).collect()
    }

    #[test]
    fn keywords_are_whole_words() {
        let kinds: Vec<Kind> = tokens("in insight truey null_").iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [Kind::Symbol, Kind::Identifier, Kind::Identifier, Kind::Identifier]);
    }

    #[test]
    fn the_longer_symbol_wins() {
        assert_eq!(tokens("**>=!=!"), ["**", ">=", "!=", "!"].map(|symbol| (Kind::Symbol, symbol)));
    }

    #[test]
    fn a_point_without_digits_ends_a_number() {
        assert_eq!(tokens("1.a"), [(Kind::Number, "1"), (Kind::Symbol, "."), (Kind::Identifier, "a")]);
        assert_eq!(tokens("1.25"), [(Kind::Number, "1.25")]);
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
