//! A reply, or a problem, as an answer of HTTP.

use std::convert::Infallible;

use api::Problem;
use api::ductile::DuctileError;
use api::problem::MEDIA_TYPE;
use axum::body::Body;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_TYPE, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use futures::StreamExt;

use crate::operations::Dialect;
use crate::reply::{Content, Given, Outcome, Reply};

/// Seconds after which whoever was turned away for load may come back.
pub(super) const RETRY_AFTER_SECONDS: &str = "1";

const OCTETS: &str = "application/octet-stream";

/// The answer of HTTP.
pub(super) fn respond(reply: Reply) -> Response {
    let (media_type, body) = match reply.content {
        Content::Json(bytes) => ("application/json", Body::from(bytes)),
        Content::Bytes { media_type, bytes } => (media_type, Body::from(bytes)),
        Content::Events(events) => ("text/event-stream", Body::from_stream(events.map(Ok::<_, Infallible>))),
    };
    let mut response = Response::new(body);
    *response.status_mut() = match reply.outcome {
        Outcome::Done => StatusCode::OK,
        Outcome::Accepted => StatusCode::ACCEPTED,
        Outcome::Conflict => StatusCode::CONFLICT,
        Outcome::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if media_type == OCTETS {
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    }
    if media_type == "text/event-stream" {
        headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    }
    if reply.given == Given::Before {
        headers.insert(HeaderName::from_static(api::IDEMPOTENT_REPLAYED), HeaderValue::from_static("true"));
    }
    if let Some(seconds) = reply.retry_after_seconds {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    let texts = [
        (LOCATION, reply.location),
        (
            HeaderName::from_static("preference-applied"),
            reply.waited.map(|wait| format!("wait={}", wait.as_secs())),
        ),
        (HeaderName::from_static(api::ATTEMPT_ID), reply.attempt_id),
    ];
    for (name, text) in texts {
        if let Some(value) = text.and_then(|text| HeaderValue::from_str(&text).ok()) {
            headers.insert(name, value);
        }
    }
    response
}

/// The answer that carries a problem, in the form that its client reads.
pub(super) fn refuse(problem: &Problem, dialect: Dialect) -> Response {
    // Ductile knows no 422: what is wrong with a request is 400, what is too much of it 413.
    let (status, mut response) = match (dialect, problem.status, &*problem.code) {
        (Dialect::Own, status, _) => {
            let body = serde_json::to_vec(problem).expect("a problem has only string keys");
            let mut response = Response::new(Body::from(body));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
            (status, response)
        }
        (Dialect::Ductile, status, code) => {
            let error = respond(Reply::json(&DuctileError { error: problem.detail.to_string() }));
            let status = match (status, code) {
                (422, "too_large") => 413,
                (422, _) => 400,
                (status, _) => status,
            };
            (status, error)
        }
    };
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    if problem.status == 401 {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    match problem.retry_after_seconds {
        Some(seconds) => {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds.get()));
        }
        None if problem.status == 503 => {
            headers.insert(RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_SECONDS));
        }
        None => {}
    }
    response
}
