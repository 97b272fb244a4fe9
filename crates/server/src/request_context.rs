//! A request as the operations see it: who asks, for what, with which words.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use api::limits::{DEFAULT_PAGE, MAX_KEY_CHARS, MAX_PAGE};
use api::{FieldError, Problem, ProblemCode};

use crate::Result;
use crate::access::authenticate::Principal;
use crate::http::slots::Slot;
use crate::operations::Operation;
use crate::problem::{at, read};

/// A request that was let in and whose body is fit to be kept.
pub(crate) struct RequestContext {
    pub(crate) operation: &'static Operation,
    pub(crate) principal: Arc<Principal>,
    /// The id in the path, if the route has one.
    pub(crate) id: String,
    /// What of it, if the route has that too.
    pub(crate) name: String,
    pub(crate) query: String,
    /// The idempotency key of the header, if there is one.
    pub(crate) key: Option<String>,
    pub(crate) last_event_id: Option<String>,
    /// How long the caller would like to wait.
    pub(crate) wait: Option<Duration>,
    /// The compact text of the body, if there is one.
    pub(crate) body: Option<String>,
    /// The slot that it holds until it is answered; what waits gives it back, what goes on keeps it.
    pub(crate) slot: Option<Slot>,
    /// What was sent to a route that takes anything, as it came.
    pub(crate) raw: Option<Raw>,
}

/// A request as it came: what is signed is signed byte for byte.
#[derive(Default)]
pub(crate) struct Raw {
    pub(crate) headers: Headers,
    pub(crate) body: Vec<u8>,
}

/// The headers of a request, in their order. A value that is no text is empty.
#[derive(Default)]
pub(crate) struct Headers(Vec<(String, String)>);

impl Headers {
    /// The first value under this name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| &**value)
    }
}

impl<'h> FromIterator<(&'h str, &'h str)> for Headers {
    fn from_iter<I: IntoIterator<Item = (&'h str, &'h str)>>(headers: I) -> Self {
        Self(headers.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}

impl RequestContext {
    /// The body in the form that the operation takes.
    pub(crate) fn read<T: serde::de::DeserializeOwned>(&self) -> Result<T> {
        match &self.body {
            Some(body) => read(body),
            None => Err(ProblemCode::InvalidRequest
                .because("the request needs a JSON body")
                .at(FieldError::new("missing", &["body"], "a JSON body is required"))),
        }
    }

    /// The same, where the body may be left out.
    pub(crate) fn read_or_default<T: serde::de::DeserializeOwned + Default>(&self) -> Result<T> {
        if self.body.is_some() { self.read() } else { Ok(T::default()) }
    }

    /// The text of a query parameter; the last one counts, and an empty one is as if it were left out.
    pub(crate) fn parameter(&self, name: &str) -> Option<Cow<'_, str>> {
        self.value(name).filter(|value| !value.is_empty())
    }

    /// The same for a number, which is never empty.
    pub(crate) fn value(&self, name: &str) -> Option<Cow<'_, str>> {
        let named = form_urlencoded::parse(self.query.as_bytes()).filter(|(key, _)| key == name);
        named.last().map(|(_, value)| value)
    }

    /// How many rows are asked for.
    pub(crate) fn limit(&self) -> Result<usize> {
        let Some(text) = self.value("limit") else { return Ok(DEFAULT_PAGE) };
        match text.parse() {
            Ok(limit @ 1..=MAX_PAGE) => Ok(limit),
            Ok(_) | Err(_) => {
                let told = format!("limit must be a number from 1 to {MAX_PAGE}");
                Err(at(ProblemCode::InvalidRequest, "int_range", &["query", "limit"], told))
            }
        }
    }
}

/// Refuses U+0000 beside the body. No record has one, and PostgreSQL takes no such text: an id with one names nothing.
pub(crate) fn check_text<'p>(
    operation: &Operation,
    mut path: impl Iterator<Item = &'p str>,
    query: &str,
) -> Result<()> {
    if path.any(|part| part.contains('\0')) {
        return Err(ProblemCode::NotFound.because("no id has U+0000 in it"));
    }
    let is_nul = |(_, value): (Cow<'_, str>, Cow<'_, str>)| value.contains('\0');
    if operation.reads_query && form_urlencoded::parse(query.as_bytes()).any(is_nul) {
        let told = "U+0000 cannot be stored: nothing has it";
        return Err(at(ProblemCode::InvalidText, "null_character", &["query"], told));
    }
    Ok(())
}

/// Refuses a key that is empty or too long.
pub(crate) fn check_key(key: &str, place: &str) -> Result<()> {
    if key.is_empty() || key.chars().count() > MAX_KEY_CHARS { Err(bad_key(place)) } else { Ok(()) }
}

/// The problem of a key that cannot be one.
pub(crate) fn bad_key(place: &str) -> Problem {
    let told = format!(
        "an idempotency key is 1 to {MAX_KEY_CHARS} characters; in the header printable ASCII, in double quotes or without"
    );
    let name = if place == "header" { "Idempotency-Key" } else { "idempotency_key" };
    at(ProblemCode::InvalidIdempotencyKey, "invalid_idempotency_key", &[place, name], told)
}
