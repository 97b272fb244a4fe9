//! Takes secrets out of whatever leaves a connector, however they were written: as they are, escaped, or in base64.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// A text that may stand in a JSON string as it is.
const STANDS_FOR: &str = "[secret ";

/// Known secrets, and how they look.
#[derive(Clone, Default)]
pub(crate) struct Mask {
    secrets: Vec<Known>,
}

#[derive(Clone)]
struct Known {
    name: String,
    /// The secret itself, to be found in every reading of a text.
    value: Vec<u8>,
    /// Its forms in base64, to be found in the text as it is.
    encoded: Vec<Vec<u8>>,
}

impl Mask {
    /// Of these, by name.
    pub(crate) fn of<'s>(secrets: impl IntoIterator<Item = (&'s str, &'s str)>) -> Self {
        let known = |(name, value): (&str, &str)| Known {
            name: name.to_owned(),
            value: value.as_bytes().to_vec(),
            encoded: in_base64(value.as_bytes()),
        };
        Self { secrets: secrets.into_iter().map(known).collect() }
    }

    /// Whether there is nothing to take out.
    pub(crate) fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// Whether a secret stands in these bytes, as it is or in base64.
    pub(crate) fn shows_in(&self, bytes: &[u8]) -> bool {
        let is_there = |form: &Vec<u8>| bytes.windows(form.len().max(1)).any(|window| window == form);
        self.secrets.iter().any(|known| is_there(&known.value) || known.encoded.iter().any(is_there))
    }

    /// The bytes of the longest form of a secret.
    pub(crate) fn longest(&self) -> usize {
        let forms = self.secrets.iter().flat_map(|known| known.encoded.iter().chain([&known.value]));
        forms.map(Vec::len).max().unwrap_or_default()
    }

    /// The text without secrets.
    pub(crate) fn text(&self, text: String) -> String {
        let mut masked = text;
        for known in &self.secrets {
            let mut ranges = Vec::new();
            for reading in readings(&masked) {
                ranges.extend(reading.find(&known.value));
            }
            let plain = Reading::plain(&masked);
            ranges.extend(known.encoded.iter().flat_map(|form| plain.find(form)));
            masked = replaced(&masked, ranges, &format!("{STANDS_FOR}{}]", known.name));
        }
        masked
    }

    /// JSON without secrets: still JSON, if it was.
    pub(crate) fn json(&self, json: Vec<u8>) -> Vec<u8> {
        if self.secrets.is_empty() {
            return json;
        }
        let text = String::from_utf8_lossy(&json).into_owned();
        let masked = self.text(text.clone());
        if masked == text || serde_json::from_str::<serde::de::IgnoredAny>(&masked).is_ok() {
            return masked.into_bytes();
        }
        // A secret stood where no text may stand: as a number, or across the end of a string.
        serde_json::Value::String(masked).to_string().into_bytes()
    }
}

/// How often a text that was quoted as JSON may have been quoted again: a log line in an answer in an error.
const MAX_QUOTINGS: usize = 3;

/// All ways to read a text.
fn readings(text: &str) -> Vec<Reading> {
    let plain = Reading::plain(text);
    let mut readings = vec![plain.percent()];
    let mut quoted = plain.json();
    for _ in 1..MAX_QUOTINGS {
        let again = quoted.json();
        // A reading in which nothing is quoted any more says the same again.
        if again.bytes == quoted.bytes {
            break;
        }
        readings.push(quoted.percent());
        readings.push(std::mem::replace(&mut quoted, again));
    }
    readings.push(quoted.percent());
    readings.extend([quoted, plain]);
    readings
}

/// One way to read a text: what it says, and where in the text each byte of that stands.
struct Reading {
    bytes: Vec<u8>,
    starts: Vec<usize>,
    end: usize,
}

impl Reading {
    fn plain(text: &str) -> Self {
        Self { bytes: text.as_bytes().to_vec(), starts: (0..text.len()).collect(), end: text.len() }
    }

    /// `%41` and `+` as in URLs and forms.
    fn percent(&self) -> Self {
        self.decoded(|rest| match rest {
            [b'%', high, low, ..] => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let byte = digit(*high)? * 16 + digit(*low)?;
                Some((vec![u8::try_from(byte).ok()?], 3))
            }
            [b'+', ..] => Some((vec![b' '], 1)),
            _ => None,
        })
    }

    /// Escapes of JSON.
    fn json(&self) -> Self {
        self.decoded(|rest| match rest {
            [b'\\', b'u', digits @ ..] if digits.len() >= 4 => {
                let code = u32::from_str_radix(std::str::from_utf8(&digits[..4]).ok()?, 16).ok()?;
                let mut bytes = [0; 4];
                Some((char::from_u32(code)?.encode_utf8(&mut bytes).as_bytes().to_vec(), 6))
            }
            [b'\\', b'n', ..] => Some((vec![b'\n'], 2)),
            [b'\\', b'r', ..] => Some((vec![b'\r'], 2)),
            [b'\\', b't', ..] => Some((vec![b'\t'], 2)),
            [b'\\', escaped @ (b'"' | b'\\' | b'/'), ..] => Some((vec![*escaped], 2)),
            _ => None,
        })
    }

    /// What this reading says once it is read again; the places stay those of the text.
    fn decoded(&self, decode: impl Fn(&[u8]) -> Option<(Vec<u8>, usize)>) -> Self {
        let source = &self.bytes;
        let mut reading = Self { bytes: Vec::with_capacity(source.len()), starts: Vec::new(), end: self.end };
        let mut at = 0;
        while at < source.len() {
            let (bytes, length) = decode(&source[at..]).unwrap_or_else(|| (vec![source[at]], 1));
            reading.starts.extend(std::iter::repeat_n(self.starts[at], bytes.len()));
            reading.bytes.extend(bytes);
            at += length;
        }
        reading
    }

    /// Where in the text these bytes are said.
    fn find(&self, bytes: &[u8]) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        if bytes.is_empty() {
            return found;
        }
        let mut at = 0;
        while let Some(next) = self.bytes[at..].windows(bytes.len()).position(|window| window == bytes) {
            let (first, after) = (at + next, at + next + bytes.len());
            found.push((self.starts[first], self.starts.get(after).copied().unwrap_or(self.end)));
            at = after;
        }
        found
    }
}

/// With a word in place of each range; ranges that touch are one.
fn replaced(text: &str, mut ranges: Vec<(usize, usize)>, word: &str) -> String {
    ranges.sort_unstable();
    let mut masked = String::with_capacity(text.len());
    let mut at = 0;
    for (start, end) in ranges {
        if start >= at {
            masked.push_str(&text[text.floor_char_boundary(at)..text.floor_char_boundary(start)]);
            masked.push_str(word);
        }
        at = at.max(end);
    }
    masked.push_str(&text[text.floor_char_boundary(at)..]);
    masked
}

/// How a secret looks in base64, alone or amid other bytes: what is the same whatever stands around it.
fn in_base64(secret: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for before in 0..3_usize {
        let padded = [vec![0; before], secret.to_vec()].concat();
        // The first characters hold bits of what stands before, the last of what stands after.
        let (skip, keep) = ((before * 8).div_ceil(6), padded.len() * 8 / 6);
        for encoded in [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)] {
            if keep > skip {
                forms.push(encoded.as_bytes()[skip..keep].to_vec());
            }
        }
    }
    forms.sort();
    forms.dedup();
    forms
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};
    use proptest::prelude::*;

    use super::Mask;

    const SECRET: &str = "s3cr3t/\"+tökén&?";

    fn mask() -> Mask {
        Mask::of([("token", SECRET)])
    }

    #[test]
    fn secret_is_taken_out_in_every_way_that_it_can_be_written() {
        let percent = |upper: bool| {
            SECRET
                .bytes()
                .map(move |byte| if upper { format!("%{byte:02X}") } else { format!("%{byte:02x}") })
        };
        let quoted = serde_json::Value::String(SECRET.to_owned()).to_string();
        let twice = serde_json::Value::String(quoted.clone()).to_string();
        let thrice = serde_json::Value::String(twice.clone()).to_string();
        for text in [
            SECRET.to_owned(),
            percent(true).collect(),
            percent(false).collect(),
            "s3cr3t%2F%22%2Bt%C3%B6k%C3%A9n%26%3F".to_owned(),
            "s3cr3t%2f\"%2bt%c3%b6kén&%3f".to_owned(),
            quoted,
            twice,
            thrice,
            r"s3cr3t\\/\\u0022\\u002bt\\u00f6k\\u00e9n&?".to_owned(),
            r"s3cr3t\/\u0022\u002bt\u00f6k\u00e9n&?".to_owned(),
            STANDARD.encode(SECRET),
            URL_SAFE.encode(SECRET),
            STANDARD.encode(format!("u:{SECRET}")),
            STANDARD.encode(format!("user:{SECRET}:more")),
            STANDARD.encode(format!("user1:{SECRET}")),
        ] {
            let masked = mask().text(format!("before {text} after"));
            assert!(masked.contains("[secret token]"), "{text}: {masked}");
            assert!(!masked.contains("s3cr3t") && !masked.contains("czNjcj"), "{masked}");
            assert!(masked.starts_with("before ") && masked.ends_with(" after"), "{masked}");
        }
    }

    #[test]
    fn json_stays_json() {
        let json = serde_json::json!({ "echo": SECRET, "list": [format!("Bearer {SECRET}")], SECRET: 1 });
        let masked = mask().json(json.to_string().into_bytes());
        let read: serde_json::Value = serde_json::from_slice(&masked).unwrap();
        assert_eq!(read["echo"], "[secret token]");
        assert_eq!(read["list"][0], "Bearer [secret token]");
        let numeric = Mask::of([("pin", "123456789")]).json(b"{\"pin\":123456789}".to_vec());
        assert!(serde_json::from_slice::<serde_json::Value>(&numeric).is_ok());
        assert!(!String::from_utf8(numeric).unwrap().contains("123456789"));
    }

    proptest! {
        #[test]
        fn nothing_else_is_touched_and_nothing_panics(text in "\\PC*") {
            prop_assume!(!text.contains("s3cr3t"));
            prop_assert_eq!(mask().text(text.clone()), text);
        }

        #[test]
        fn secret_amid_anything_is_gone(before in "\\PC{0,20}", after in "\\PC{0,20}") {
            let masked = mask().text(format!("{before}{SECRET}{after}"));
            prop_assert!(!masked.contains("s3cr3t"));
        }
    }
}
