//! Where an answer sends on to, and what goes along: nothing that was meant for the first origin alone.

use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName};

use super::{Answer, OutboundError, OutboundRequest};

/// Headers that say nothing about who asks.
const HARMLESS: [HeaderName; 2] = [ACCEPT, CONTENT_TYPE];

/// The request that an answer asks for in place of the first, if it does.
pub(super) fn next(
    request: &OutboundRequest,
    answer: &Answer,
) -> Result<Option<OutboundRequest>, OutboundError> {
    let refuse = |what: &str| Err(OutboundError::BadAnswer { what: what.to_owned() });
    let Some(repeat) = repeats(&request.method, answer.status) else { return Ok(None) };
    // Without a place to go it is an answer like any other.
    let Some(location) = answer.header("location") else { return Ok(None) };
    let Ok(url) = request.url.join(location) else {
        return refuse("it redirects to what is no URL");
    };
    if request.url.scheme() == "https" && url.scheme() != "https" {
        return refuse("it redirects from https to something else");
    }
    let elsewhere = url.origin() != request.url.origin();
    if repeat && elsewhere && !request.body.is_empty() {
        return refuse("it redirects a body to another origin");
    }
    let mut next = OutboundRequest { url, ..request.clone() };
    if !repeat {
        next.method = if request.method == Method::HEAD { Method::HEAD } else { Method::GET };
        next.body.clear();
        next.headers.retain(|(name, _)| *name != CONTENT_TYPE);
    }
    if elsewhere {
        next.headers.retain(|(name, _)| HARMLESS.contains(name));
    }
    Ok(Some(next))
}

/// Whether the same request is to be made there (`true`) or only looked at (`false`); nothing if it is no redirect.
fn repeats(method: &Method, status: u16) -> Option<bool> {
    match status {
        301 | 302 => Some(method != Method::POST),
        303 => Some(false),
        307 | 308 => Some(true),
        _ => None,
    }
}
