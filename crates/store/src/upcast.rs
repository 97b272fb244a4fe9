//! Lifts facts of earlier releases to today's. The ledger itself is never edited, and its checksums are over the text that it holds.
//!
//! A changed kind gets a new number and an arm here; `tests/releases/` keeps the facts of every release. What a service said stands in
//! facts of earlier versions, where no purge reaches it: it is left out wherever such a fact is read or shown.

use std::borrow::Cow;

use serde_json::Value;

/// How the note of a job begins whose operation expired after a failed poll.
const LAST_POLL_FAILED: &str = "the last poll failed: ";

/// Today's kind and payload of a fact as it was stored.
pub fn lift<'a>(kind: &'a str, payload: &'a str) -> (Cow<'a, str>, Cow<'a, str>) {
    // Every kind is at its first version.
    let payload = without_words(kind, payload).map_or(Cow::Borrowed(payload), Cow::Owned);
    (Cow::Borrowed(kind), payload)
}

/// The payload without what a service said of a failed poll; nothing if it holds no such words.
fn without_words(kind: &str, payload: &str) -> Option<String> {
    let (member, mark) = match kind {
        "external_production_polled/1" => ("polled", "\"message\""),
        "operation.late_polled/1" => ("late_polled", "\"message\""),
        "job.expired/1" => ("expired", LAST_POLL_FAILED),
        _ => return None,
    };
    if !payload.contains(mark) {
        return None;
    }
    let mut whole: Value = serde_json::from_str(payload).ok()?;
    let fact = whole.get_mut(member)?;
    if kind == "job.expired/1" {
        // Anyone may have written the note of another end.
        fact.get("cause").filter(|cause| *cause == "operation_expired")?;
        let note = fact.get_mut("details")?.get_mut("note")?;
        let (code, shown) = note.as_str()?.strip_prefix(LAST_POLL_FAILED)?.split_once(": ")?;
        if is_public(shown) {
            return None;
        }
        *note = format!("{LAST_POLL_FAILED}{code}").into();
    } else {
        fact.get_mut("error")?.as_object_mut()?.remove("message")?;
    }
    Some(whole.to_string())
}

/// Whether this is what we say of a failed poll ourselves: the status of the answer, the digest of what was said, or both.
fn is_public(shown: &str) -> bool {
    let is_status = |text: &str| {
        text.strip_prefix("HTTP ")
            .is_some_and(|status| status.parse::<u16>().is_ok_and(|_| status.len() == 3))
    };
    let is_digest = |text: &str| {
        text.strip_prefix("sha256:").is_some_and(|digest| domain::Digest::from_hex(digest).is_some())
    };
    match shown.split_once(", ") {
        Some((status, digest)) => is_status(status) && is_digest(digest),
        None => is_status(shown) || is_digest(shown),
    }
}
