//! What the headers of a request say: who asks, under which key, and how long the caller would wait.

use std::time::Duration;

use api::ProblemCode;
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};

use crate::Result;
use crate::request_context::{Headers, bad_key, check_key};
use crate::wait::MAX_WAIT_SECONDS;

/// The longest token that is looked at.
const MAX_BEARER_BYTES: usize = 512;

/// The headers for whoever reads them as they came.
pub(super) fn neutral(headers: &HeaderMap) -> Headers {
    headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap_or_default())).collect()
}

/// The bearer token.
pub(super) fn bearer(headers: &HeaderMap) -> Result<&str> {
    let missing = || ProblemCode::Unauthenticated.because("send the header `Authorization: Bearer <token>`");
    let value = headers.get(AUTHORIZATION).ok_or_else(missing)?.to_str().map_err(|_| missing())?;
    let (scheme, token) = value.split_once(' ').ok_or_else(missing)?;
    if !scheme.eq_ignore_ascii_case("bearer") || token.len() > MAX_BEARER_BYTES {
        return Err(missing());
    }
    Ok(token.trim())
}

/// The idempotency key: quoted as the standard says, or bare as people send it.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>> {
    let Some(value) = headers.get(api::IDEMPOTENCY_KEY) else { return Ok(None) };
    let text = value.to_str().map_err(|_| bad_key("header"))?.trim();
    if text.contains('\t') {
        return Err(bad_key("header"));
    }
    let bare = match text.strip_prefix('"') {
        Some(quoted) => quoted.strip_suffix('"').ok_or_else(|| bad_key("header"))?,
        None => text,
    };
    check_key(bare, "header")?;
    Ok(Some(bare.to_owned()))
}

/// How long the caller would like to wait: `Prefer: wait=10`. What cannot be understood is no preference.
pub(super) fn preferred_wait(headers: &HeaderMap) -> Option<Duration> {
    let lines = headers.get_all("prefer").into_iter().filter_map(|line| line.to_str().ok());
    let mut waits = lines.flat_map(|line| line.split(',')).filter_map(|preference| {
        let (name, value) = preference.split(';').next()?.split_once('=')?;
        let is_wait = name.trim().eq_ignore_ascii_case("wait");
        is_wait.then(|| value.trim().trim_matches('"').parse::<u64>().ok())?
    });
    waits.next().map(|seconds| Duration::from_secs(seconds.min(MAX_WAIT_SECONDS)))
}

/// Whether the body is said to be JSON.
pub(super) fn says_json(headers: &HeaderMap) -> bool {
    let Some(media_type) = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()) else {
        return false;
    };
    let media_type = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    media_type == "application/json"
        || media_type.starts_with("application/") && media_type.ends_with("+json")
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn only_a_wait_that_can_be_understood_is_a_preference() {
        for (line, seconds) in [
            ("wait=10", Some(10)),
            ("respond-async, Wait = \"7\"; x=1", Some(7)),
            ("wait=100000", Some(MAX_WAIT_SECONDS)),
            ("wait=0", Some(0)),
            ("wait", None),
            ("wait=-1", None),
            ("return=minimal", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("prefer", HeaderValue::from_static(line));
            assert_eq!(preferred_wait(&headers), seconds.map(Duration::from_secs), "{line}");
        }
        assert_eq!(preferred_wait(&HeaderMap::new()), None);
    }
}
