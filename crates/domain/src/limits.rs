//! Every limit of the records, by name. A command that passes one is refused with `too_large` and changes nothing.
//!
//! A text is counted in characters (Unicode scalar values), as `maxLength` of a JSON Schema does, so that the API document can say the
//! limit; JSON is counted in bytes. What is cut to a limit is cut to that many bytes, which are never more characters.

/// An id, of ours or given.
pub const MAX_ID_BYTES: usize = 128;
/// A short label: kind, lane, executor, circle, phase, reason, tag.
pub const MAX_LABEL_BYTES: usize = 256;
/// A title.
pub const MAX_TITLE_BYTES: usize = 1_024;
/// A note on progress, an error message, a cancel reason, a progress hint.
pub const MAX_NOTE_BYTES: usize = 2_048;
/// A result's summary.
pub const MAX_SUMMARY_BYTES: usize = 4_096;
/// The progress object; anything larger belongs in a body.
pub const MAX_PROGRESS_BYTES: usize = 2_048;
/// How a job shall be carried out, as its creator says; anything larger belongs in its request.
pub const MAX_EXECUTION_BYTES: usize = 4_096;
/// Tags on one job.
pub const MAX_TAGS: usize = 32;
/// Bodies written by one command.
pub const MAX_BODIES: usize = 16;
/// Answers within one attempt.
pub const MAX_ANSWERS: usize = 100;
/// One body: request, prompt, input, result, handle.
pub const MAX_BODY_BYTES: usize = 1_048_576;

/// Progress notes kept on the record, newest last.
pub const KEPT_NOTES: usize = 100;
/// Attempts kept whole on the record; older ones are only counted.
pub const KEPT_ATTEMPTS: usize = 50;
/// Stale reports kept as evidence; later ones are refused without a trace on the record.
pub const KEPT_EVIDENCE: usize = 20;
/// Answers of executors to one cancel kept on the record.
pub const KEPT_CANCEL_ANSWERS: usize = 10;
/// Repeated requests to stop a job that are facts of their own; later ones are counted.
pub const KEPT_CANCEL_REPEATS: usize = 10;
/// Different texts of a service's errors and refusals kept with one operation.
pub const KEPT_TEXTS: usize = 8;

/// Refuses a text over its limit, and one with U+0000: every text of a record comes by here, and a database that has it in a view
/// cannot read the view any more.
pub fn check_text(what: &'static str, text: &str, limit: usize) -> Result<(), crate::Refusal> {
    // No text has more characters than bytes: the short ones, which are nearly all, are not counted.
    if text.len() > limit && text.chars().count() > limit {
        return Err(crate::Refusal::TooLarge { what, limit });
    }
    if text.contains('\0') { Err(crate::Refusal::NulInJson) } else { Ok(()) }
}

/// Refuses JSON over so many bytes.
pub fn check_bytes(what: &'static str, text: &str, limit: usize) -> Result<(), crate::Refusal> {
    if text.len() > limit {
        return Err(crate::Refusal::TooLarge { what, limit });
    }
    check_text(what, text, limit)
}

/// Refuses an optional text in the same way.
pub fn check_optional(what: &'static str, text: Option<&str>, limit: usize) -> Result<(), crate::Refusal> {
    text.map_or(Ok(()), |text| check_text(what, text, limit))
}

/// Refuses a text that is part of the key of an index, and so is bounded in bytes. Its characters count as much as the widest of them,
/// which, unlike a number of bytes, a pattern in the API document can say.
pub fn check_indexed(what: &'static str, text: Option<&str>, limit: usize) -> Result<(), crate::Refusal> {
    let Some(text) = text else { return Ok(()) };
    let widest = text.chars().map(char::len_utf8).max().unwrap_or(1);
    if text.chars().count() * widest > limit {
        return Err(crate::Refusal::TooLarge { what, limit });
    }
    check_text(what, text, limit)
}

/// Refuses optional JSON over so many bytes.
pub fn check_optional_bytes(
    what: &'static str,
    text: Option<&str>,
    limit: usize,
) -> Result<(), crate::Refusal> {
    text.map_or(Ok(()), |text| check_bytes(what, text, limit))
}

/// The longest prefix of whole characters within the limit.
pub fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// Appends to a bounded history, dropping the oldest.
pub fn keep_last<T>(history: &mut Vec<T>, item: T, limit: usize) {
    if history.len() >= limit {
        history.drain(..=history.len() - limit);
    }
    history.push(item);
}

pub mod limit;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Refusal;

    #[test]
    fn text_is_counted_in_characters_and_json_in_bytes() {
        let over = Err(Refusal::TooLarge { what: "text", limit: 4 });
        for (text, as_text, as_bytes) in [
            ("four", Ok(()), Ok(())),
            ("fives", over.clone(), over.clone()),
            ("\u{e9}\u{20ac}\u{1f600}x", Ok(()), over.clone()),
            ("\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}", over.clone(), over.clone()),
        ] {
            assert_eq!(check_text("text", text, 4), as_text, "{text:?}");
            assert_eq!(check_bytes("text", text, 4), as_bytes, "{text:?}");
        }
        assert_eq!(check_bytes("text", "\0", 4), Err(Refusal::NulInJson));
    }

    #[test]
    fn indexed_text_counts_its_widest_character() {
        for (text, fits) in [
            ("", true),
            ("four", true),
            ("\u{e9}\u{e9}", true),
            ("\u{e9}ab", false),
            ("\u{20ac}", true),
            ("\u{1f600}", true),
            ("\u{1f600}a", false),
        ] {
            assert_eq!(check_indexed("text", Some(text), 4).is_ok(), fits, "{text:?}");
            assert!(!fits || text.len() <= 4);
        }
    }
}
