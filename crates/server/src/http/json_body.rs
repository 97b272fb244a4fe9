//! The door: a body is read once, checked byte by byte and made compact. What passes can be stored and given back word for word.
//!
//! Refused are: what is not UTF-8 or not JSON (400), the same key twice in one object, U+0000, half a surrogate pair, and nesting
//! over the limit (422). Numbers are never parsed: they stay as they were written.

use std::borrow::Cow;
use std::collections::BTreeSet;

use api::limits::MAX_NESTING;
use api::{FieldError, Problem, ProblemCode};

use crate::Result;

/// The compact text of a body that is fit to be kept.
pub(crate) fn admit(body: &[u8]) -> Result<String> {
    let text = std::str::from_utf8(body).map_err(|error| {
        ProblemCode::InvalidUtf8
            .because(format!("the body is not UTF-8 from byte {} on", error.valid_up_to()))
    })?;
    let mut scan = Scan { text, at: 0, compact: String::with_capacity(text.len()), path: Vec::new() };
    scan.skip_space();
    scan.value()?;
    scan.skip_space();
    if scan.at < text.len() {
        return Err(scan.malformed("something follows the value"));
    }
    Ok(scan.compact)
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
    compact: String,
    path: Vec<Step<'a>>,
}

enum Step<'a> {
    Key(Cow<'a, str>),
    Index(usize),
}

impl<'a> Scan<'a> {
    fn value(&mut self) -> Result<()> {
        match self.peek() {
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'"') => self.string().map(|_| ()),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            Some(_) => Err(self.malformed("a value was expected")),
            None => Err(self.malformed("it ends where a value was expected")),
        }
    }

    fn object(&mut self) -> Result<()> {
        self.open(b'{')?;
        let mut keys = BTreeSet::new();
        if self.closes(b'}') {
            return Ok(());
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.malformed("a key was expected"));
            }
            let key = self.string()?;
            self.path.push(Step::Key(key.clone()));
            if !keys.insert(key) {
                return Err(self.unfit(ProblemCode::DuplicateKey, "duplicate_key", "the key occurs twice"));
            }
            self.skip_space();
            self.expect(b':')?;
            self.skip_space();
            self.value()?;
            self.path.pop();
            if self.closes(b'}') {
                return Ok(());
            }
            self.expect(b',')?;
        }
    }

    fn array(&mut self) -> Result<()> {
        self.open(b'[')?;
        if self.closes(b']') {
            return Ok(());
        }
        for index in 0.. {
            self.skip_space();
            self.path.push(Step::Index(index));
            self.value()?;
            self.path.pop();
            if self.closes(b']') {
                return Ok(());
            }
            self.expect(b',')?;
        }
        Ok(())
    }

    fn open(&mut self, mark: u8) -> Result<()> {
        if self.path.len() >= MAX_NESTING {
            let told = format!("it is nested deeper than {MAX_NESTING}");
            return Err(self.unfit(ProblemCode::TooDeep, "too_deep", &told));
        }
        self.mark(mark);
        Ok(())
    }

    /// Whether the end of an object or array comes next; it is taken then.
    fn closes(&mut self, end: u8) -> bool {
        self.skip_space();
        let closes = self.peek() == Some(end);
        if closes {
            self.mark(end);
        }
        closes
    }

    /// A string, with its meaning.
    fn string(&mut self) -> Result<Cow<'a, str>> {
        let start = self.at;
        self.skip(1);
        let mut escaped = false;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(0..0x20) => return Err(self.malformed("a control character stands in a string")),
                Some(_) => self.skip(1),
                None => return Err(self.malformed("a string does not end")),
            }
        }
        self.skip(1);
        self.compact.push_str(&self.text[start..self.at]);
        if !escaped {
            return Ok(Cow::Borrowed(&self.text[start + 1..self.at - 1]));
        }
        let meaning = serde_json::from_str(&self.text[start..self.at]);
        meaning.map(Cow::Owned).map_err(|_| self.malformed("a string cannot be read"))
    }

    fn escape(&mut self) -> Result<()> {
        match self.text.as_bytes().get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.skip(2),
            Some(b'u') => match self.unit()? {
                0 => {
                    return Err(self.unfit(
                        ProblemCode::InvalidText,
                        "null_character",
                        "U+0000 cannot be stored",
                    ));
                }
                0xD800..=0xDBFF => match self.unit() {
                    Ok(0xDC00..=0xDFFF) => {}
                    Ok(_) | Err(_) => return Err(self.half_a_pair()),
                },
                0xDC00..=0xDFFF => return Err(self.half_a_pair()),
                _ => {}
            },
            Some(_) | None => return Err(self.malformed("a backslash is followed by nothing known")),
        }
        Ok(())
    }

    /// `\uXXXX`, which is taken.
    fn unit(&mut self) -> Result<u16> {
        let digits = self.text.get(self.at..self.at + 6).and_then(|unit| unit.strip_prefix("\\u"));
        let unit = digits
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u16::from_str_radix(digits, 16).ok());
        let unit = unit.ok_or_else(|| self.malformed("four hex digits were expected"))?;
        self.skip(6);
        Ok(unit)
    }

    fn number(&mut self) -> Result<()> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.skip(1);
        }
        match self.peek() {
            Some(b'0') => self.skip(1),
            Some(b'1'..=b'9') => self.digits()?,
            Some(_) | None => return Err(self.malformed("a digit was expected")),
        }
        if self.peek() == Some(b'.') {
            self.skip(1);
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.skip(1);
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.skip(1);
            }
            self.digits()?;
        }
        self.compact.push_str(&self.text[start..self.at]);
        Ok(())
    }

    fn digits(&mut self) -> Result<()> {
        let rest = &self.text.as_bytes()[self.at..];
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return Err(self.malformed("a digit was expected"));
        }
        self.at += count;
        Ok(())
    }

    fn word(&mut self, word: &'static str) -> Result<()> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.malformed("a value was expected"));
        }
        self.at += word.len();
        self.compact.push_str(word);
        Ok(())
    }

    fn expect(&mut self, wanted: u8) -> Result<()> {
        if self.peek() == Some(wanted) {
            self.mark(wanted);
            return Ok(());
        }
        Err(self.malformed(&format!("{:?} was expected", char::from(wanted))))
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Moves on over a mark that also stands in the compact text.
    fn mark(&mut self, mark: u8) {
        self.compact.push(char::from(mark));
        self.at += 1;
    }

    /// Moves on within a string or a number, which goes into the compact text whole, at its end.
    fn skip(&mut self, count: usize) {
        self.at += count;
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn malformed(&self, what: &str) -> Problem {
        ProblemCode::MalformedJson.because(format!("the body is not JSON at byte {}: {what}", self.at))
    }

    fn half_a_pair(&self) -> Problem {
        self.unfit(ProblemCode::InvalidText, "lone_surrogate", "half a surrogate pair cannot be stored")
    }

    fn unfit(&self, code: ProblemCode, kind: &'static str, what: &str) -> Problem {
        let mut error = FieldError::new(kind, &["body"], what);
        error.loc.extend(self.path.iter().map(|step| match step {
            Step::Key(key) => key.to_string(),
            Step::Index(index) => index.to_string(),
        }));
        code.because(format!("{what}, at byte {}", self.at)).at(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &[u8]) -> (String, Vec<String>) {
        let problem = admit(body).unwrap_err();
        (problem.code.into_owned(), problem.errors.into_iter().flat_map(|error| error.loc).collect())
    }

    #[test]
    fn white_space_goes_and_everything_else_stays_word_for_word() {
        let body =
            b" { \"a b\" : [ 1.50 , 18446744073709551615,\n 1e999, \"\\\" { x\\\\\", true ,null,{} ] } ";
        let compact = r#"{"a b":[1.50,18446744073709551615,1e999,"\" { x\\",true,null,{}]}"#;
        assert_eq!(admit(body).unwrap(), compact);
    }

    #[test]
    fn what_is_not_json_is_malformed() {
        for body in [
            "",
            " ",
            "{",
            "[1,]",
            "{\"a\":}",
            "{\"a\" 1}",
            "nul",
            "1 2",
            "01",
            "-",
            "1.",
            "1e",
            "+1",
            "'a'",
            "\"a",
            "\"\\x\"",
            "\"\u{1}\"",
            "{a:1}",
            "\u{feff}{}",
            "[1 2]",
            "{\"a\":1,}",
        ] {
            assert_eq!(refused(body.as_bytes()).0, "malformed_json", "{body:?}");
        }
        assert_eq!(refused(b"\"\xff\"").0, "invalid_utf8");
    }

    #[test]
    fn the_same_key_twice_is_found_however_it_is_written_and_its_place_is_named() {
        let (code, loc) = refused(br#"{"x":[{"a":1,"\u0061":2}]}"#);
        assert_eq!(
            (code.as_str(), loc),
            ("duplicate_key", ["body", "x", "0", "a"].map(str::to_owned).to_vec())
        );
        assert!(admit(br#"{"a":{"a":1},"b":{"a":1}}"#).is_ok());
    }

    #[test]
    fn what_no_database_keeps_is_refused() {
        assert_eq!(refused(br#"{"a":"x\u0000"}"#).0, "invalid_text");
        assert_eq!(refused(br#"{"a\u0000":1}"#).0, "invalid_text");
        assert_eq!(refused(br#"["\ud800"]"#).0, "invalid_text");
        assert_eq!(refused(br#"["\ud800\u0041"]"#).0, "invalid_text");
        assert_eq!(refused(br#"["\udc00"]"#).0, "invalid_text");
        assert!(admit(br#"["\ud83d\ude00"]"#).is_ok());
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(admit(nested(MAX_NESTING).as_bytes()).is_ok());
        assert_eq!(refused(nested(MAX_NESTING + 1).as_bytes()).0, "too_deep");
        assert_eq!(refused("[".repeat(100_000).as_bytes()).0, "too_deep");
    }
}
