//! Answers: bytes of JSON, word for word as they were rendered.

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use serde::Serialize;

/// Whether the same was answered before under the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    Now,
    Before,
}

/// An answer with this value.
pub(crate) fn json(value: &impl Serialize) -> Response {
    bytes(render(value), Given::Now)
}

/// The same, for what is accepted and goes on.
pub(crate) fn accepted(mut response: Response) -> Response {
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// The bytes of an answer.
pub(crate) fn render(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("answers have only string keys")
}

/// An answer of these bytes.
pub(crate) fn bytes(body: impl Into<Body>, given: Given) -> Response {
    let mut response = Response::new(body.into());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if given == Given::Before {
        headers.insert(HeaderName::from_static(api::IDEMPOTENT_REPLAYED), HeaderValue::from_static("true"));
    }
    response
}
