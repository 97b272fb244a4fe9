//! What operations answer, whichever way they were asked. Bytes of JSON are word for word as they were rendered.
//!
//! `http/respond.rs` makes an answer of HTTP of it; no handler does.

use std::borrow::Cow;
use std::time::Duration;

use futures::stream::BoxStream;
use serde::Serialize;

/// An answer.
pub(crate) struct Reply {
    pub(crate) outcome: Outcome,
    pub(crate) content: Content,
    pub(crate) given: Given,
    /// When to ask again.
    pub(crate) retry_after_seconds: Option<u64>,
    /// Where what was accepted is followed.
    pub(crate) location: Option<String>,
    /// The wait that was granted.
    pub(crate) waited: Option<Duration>,
    /// The attempt that the content is of.
    pub(crate) attempt_id: Option<String>,
}

/// What became of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// It is stored, and goes on.
    Accepted,
    /// It was rejected, and the content is the record of that: it is at odds with an earlier one.
    Conflict,
    /// The same, for what is wrong by itself.
    Invalid,
}

/// Whether the same was answered before under the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    Now,
    Before,
}

/// What an answer brings.
pub(crate) enum Content {
    Json(Cow<'static, [u8]>),
    /// Bytes of another kind.
    Bytes {
        media_type: &'static str,
        bytes: Vec<u8>,
    },
    /// Server-sent events, as long as they come.
    Events(BoxStream<'static, String>),
}

impl Reply {
    /// An answer with this value.
    pub(crate) fn json(value: &impl Serialize) -> Self {
        Self::rendered(render(value), Given::Now)
    }

    /// An answer of JSON that is rendered already.
    pub(crate) fn rendered(bytes: impl Into<Cow<'static, [u8]>>, given: Given) -> Self {
        Self { given, ..Self::of(Content::Json(bytes.into())) }
    }

    /// An answer that brings this.
    pub(crate) const fn of(content: Content) -> Self {
        Self {
            outcome: Outcome::Done,
            content,
            given: Given::Now,
            retry_after_seconds: None,
            location: None,
            waited: None,
            attempt_id: None,
        }
    }

    /// The same, for what is stored and goes on.
    pub(crate) fn accepted(self) -> Self {
        Self { outcome: Outcome::Accepted, ..self }
    }
}

/// The bytes of an answer.
pub(crate) fn render(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("answers have only string keys")
}
