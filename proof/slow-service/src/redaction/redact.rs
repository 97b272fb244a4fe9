//! The redaction itself: rules that a reader can follow, in place of a model.
//!
//! Pure. Addresses, long numbers and the terms of the policy are replaced; the strict profile also replaces names. How good
//! a redaction is, is not what this reference is about.

use serde_json::{Value, json};

const PROFILES: [&str; 2] = ["standard", "strict"];
const LONG_NUMBER_DIGITS: usize = 5;

/// The response to a request that was checked.
pub fn redact(request: &Value) -> Value {
    let profile = request["redaction/profile"].as_str().unwrap_or_default();
    if !PROFILES.contains(&profile) {
        return response("policy-denied", None);
    }
    let terms: Vec<String> = request["policy/constraints"]["terms"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_lowercase)
        .collect();
    let raw = request["raw/private-material"].as_str().unwrap_or_default();
    let mut words = Vec::new();
    let mut replaced = 0;
    let mut begins = true;
    for word in raw.split_whitespace() {
        let mask = mask(word, &terms, profile == "strict" && !begins);
        begins = word.ends_with(['.', '!', '?']);
        replaced += usize::from(mask.is_some());
        words.push(mask.unwrap_or(word));
    }
    if replaced == words.len() {
        return response("unsafe-output", None);
    }
    let draft = json!({"text": words.join(" "), "replaced": replaced});
    match request["disclosure/target"].as_str() {
        Some("operator-review-only") => response("needs-human-review", Some(draft)),
        Some(_) | None => response("draft-ready", Some(draft)),
    }
}

fn mask(word: &str, terms: &[String], names_too: bool) -> Option<&'static str> {
    let bare = word.trim_matches(|letter: char| !letter.is_alphanumeric());
    let digits = word.chars().filter(char::is_ascii_digit).count();
    if word.contains('@') {
        Some("[address]")
    } else if digits >= LONG_NUMBER_DIGITS {
        Some("[number]")
    } else if terms.contains(&bare.to_lowercase()) {
        Some("[term]")
    } else if names_too && bare.starts_with(char::is_uppercase) {
        Some("[name]")
    } else {
        None
    }
}

fn response(status: &str, draft: Option<Value>) -> Value {
    let mut response =
        json!({"schema": "whisper-redaction-prepare-response.v1", "schema/v": 1, "status": status});
    if let Some(draft) = draft {
        response["redaction/draft"] = draft;
    }
    response
}

#[cfg(test)]
mod tests {
    use super::super::contract::validate_response;
    use super::*;

    fn request(raw: &str, profile: &str, target: &str) -> Value {
        json!({
            "raw/private-material": raw,
            "redaction/profile": profile,
            "policy/constraints": {"terms": ["Harbour"]},
            "disclosure/target": target,
        })
    }

    #[track_caller]
    fn check(request: &Value, status: &str, text: Option<&str>) {
        let response = redact(request);
        assert_eq!(validate_response(&response), Ok(()));
        assert_eq!(response["status"], status);
        assert_eq!(response["redaction/draft"]["text"].as_str(), text);
    }

    #[test]
    fn addresses_long_numbers_terms_and_in_the_strict_profile_names_are_replaced() {
        let raw = "Write to ann@example.org or 030-123456 at the harbour, says Ann. Then wait";
        let masked = "Write to [address] or [number] at the [term] says Ann. Then wait";
        check(&request(raw, "standard", "public-whisper-candidate"), "draft-ready", Some(masked));
        let strict = "Write to [address] or [number] at the [term] says [name] Then wait";
        check(&request(raw, "strict", "private-summary"), "draft-ready", Some(strict));
    }

    #[test]
    fn what_may_not_go_out_says_why_and_has_no_draft() {
        let target = "public-whisper-candidate";
        check(&request("a b", "lenient", target), "policy-denied", None);
        check(&request("a@b c@d", "standard", target), "unsafe-output", None);
        check(&request("a b", "standard", "operator-review-only"), "needs-human-review", Some("a b"));
    }
}
