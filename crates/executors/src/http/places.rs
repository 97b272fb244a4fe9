//! Where the requests of a connector lead, as far as its file says it: what comes before the first `${` of a URL.
//!
//! A URL that can lead nowhere is a mistake. One that leads to an address that is not public and not allowed is a doubt: the file can
//! be read, and that request will be refused when it is made.

use serde_json::Value;
use serde_saphyr::Spanned;
use url::Url;

use super::file::ConnectorFile;
use super::members::Stage;
use crate::outbound::{Target, closed_to};
use config_file::Mistake;

const SCHEMES: [&str; 2] = ["http://", "https://"];

/// Refuses URLs that lead nowhere, and tells which will be refused.
pub(super) fn doubts(name: &str, file: &ConnectorFile, allow: &[Target]) -> Result<Vec<Mistake>, Mistake> {
    let mut doubts = Vec::new();
    for (request, stage, written) in urls(file) {
        let Value::String(text) = &written.value else { continue };
        let wrong = |told: String| Mistake::at(name, &written.defined, format!("{request}.url: {told}"));
        let Some(place) = place(text, stage).map_err(wrong)? else { continue };
        let Some(class) = closed_to(&place, allow) else { continue };
        let (host, port) =
            (place.host_str().unwrap_or_default(), place.port_or_known_default().unwrap_or_default());
        doubts.push(wrong(format!(
            "{host} is {class}: the request will be refused when it is made, unless the key allow lists {host}:{port}"
        )));
    }
    Ok(doubts)
}

fn urls(file: &ConnectorFile) -> Vec<(&'static str, Stage, &Spanned<Value>)> {
    let asks = [
        ("lookup", Stage::Giving, &file.lookup),
        ("status", Stage::Asking, &file.status),
        ("result", Stage::Asking, &file.result),
    ];
    let mut urls = vec![("submit", Stage::Giving, &file.submit.url)];
    for (request, stage, ask) in asks {
        urls.extend(ask.as_ref().map(|ask| (request, stage, &ask.value.url)));
    }
    urls.extend(file.cancel.as_ref().map(|cancel| ("cancel", Stage::Asking, &cancel.url)));
    urls
}

/// Scheme, host and port, if they are written out.
fn place(text: &str, stage: Stage) -> Result<Option<Url>, String> {
    let (literal, goes_on) = text.split_once("${").map_or((text, false), |(literal, _)| (literal, true));
    let Some((scheme, rest)) = literal.split_once("://") else {
        return if may_lack_scheme(literal, goes_on, stage) { Ok(None) } else { Err(no_scheme(text)) };
    };
    if !SCHEMES.contains(&format!("{}://", scheme.to_ascii_lowercase()).as_str()) {
        return Err(no_scheme(text));
    }
    let end = rest.find(['/', '?', '#', '\\']);
    if end.is_none() && goes_on {
        return Ok(None);
    }
    let authority = &rest[..end.unwrap_or(rest.len())];
    let url = Url::parse(&format!("{scheme}://{authority}/"));
    let url = url.map_err(|error| format!("{:?} cannot be read: {error}", without_user(text)))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it holds a user name or password: use a header".to_owned());
    }
    Ok(Some(url))
}

/// Whether a URL may begin so: with what only a job knows, or, once there is an origin, with a path.
fn may_lack_scheme(literal: &str, goes_on: bool, stage: Stage) -> bool {
    let beginning = literal.to_ascii_lowercase();
    if goes_on && SCHEMES.iter().any(|scheme| scheme.starts_with(&beginning)) {
        return true;
    }
    let first = literal.split(['/', '?', '#']).next().unwrap_or_default();
    let like_a_scheme =
        first.contains(':') || (!first.is_empty() && literal[first.len()..].starts_with("//"));
    stage == Stage::Asking && !like_a_scheme
}

fn no_scheme(text: &str) -> String {
    format!("{:?} does not begin with https:// or http://", without_user(text))
}

/// A URL as it may be shown: without what stands before an `@`, which may be a password.
pub(super) fn without_user(text: &str) -> String {
    let Some((before, after)) = text.rsplit_once('@') else { return text.to_owned() };
    let scheme = before.split_once("://").map(|(scheme, _)| format!("{scheme}://")).unwrap_or_default();
    format!("{scheme}…@{after}")
}
