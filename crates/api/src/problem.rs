//! Problems (RFC 9457): every code that an answer may carry, with its status and title.
//!
//! Codes are stable and never change their meaning; `detail` is for people and is never to be parsed.

use std::borrow::Cow;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Candidate;

/// The media type of a problem.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// What went wrong, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// A name for the kind of problem.
    #[serde(rename = "type")]
    pub kind: Box<str>,
    /// The same for every problem of this code.
    pub title: Cow<'static, str>,
    /// The HTTP status.
    pub status: u16,
    /// Stable and machine-readable.
    pub code: Cow<'static, str>,
    /// What happened here, for people.
    pub detail: Box<str>,
    /// What is wrong with which field.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    #[schema(value_type = Vec<FieldError>)]
    pub errors: Box<[FieldError]>,
    /// When to come back, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>)]
    pub retry_after_seconds: Option<NonZeroU32>,
    /// Whom a name may mean, if several are called so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Candidate>>)]
    #[allow(
        clippy::box_collection,
        reason = "a problem is carried by every result, and hardly ever has any"
    )]
    pub candidates: Option<Box<Vec<Candidate>>>,
    /// The name of a peer that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    #[allow(
        clippy::box_collection,
        reason = "a problem is carried by every result, and hardly ever has one"
    )]
    pub peer: Option<Box<String>>,
}

/// What is wrong with one field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldError {
    /// What kind of mistake.
    #[serde(rename = "type")]
    pub kind: Cow<'static, str>,
    /// Where: `body`, `query`, `path` or `header`, then keys and indexes.
    pub loc: Vec<String>,
    /// For people.
    pub msg: String,
}

impl FieldError {
    /// A mistake in this place.
    pub fn new(kind: &'static str, loc: &[&str], msg: impl Into<String>) -> Self {
        let loc = loc.iter().map(|&part| part.to_owned()).collect();
        Self { kind: Cow::Borrowed(kind), loc, msg: msg.into() }
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident $code:literal $status:literal $title:literal;)*) => {
        /// Every code of a problem.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ProblemCode {
            $($(#[$doc])* $name,)*
        }

        impl ProblemCode {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stable word.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// The HTTP status.
            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }

            /// The same for every problem of this code.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)* }
            }

            const fn uri(self) -> &'static str {
                match self { $(Self::$name => concat!("urn:longhaul:problem:", $code),)* }
            }
        }
    };
}

codes! {
    /// The body is not JSON.
    MalformedJson "malformed_json" 400 "The body is not JSON";
    /// The body is not UTF-8.
    InvalidUtf8 "invalid_utf8" 400 "The body is not UTF-8";
    /// The header `Host` is missing, came twice, or names no host.
    InvalidHost "invalid_host" 400 "The header Host is not valid";
    /// A value is outside its set.
    InvalidValue "invalid_value" 400 "A value is not one of those allowed";
    /// Two fields exclude each other.
    FieldsExclusive "fields_exclusive" 400 "Two fields exclude each other";
    /// A report on a dispatched job without its attempt.
    AttemptRequired "attempt_required" 400 "The attempt is required";
    /// The job is over, and its state stays.
    Terminal "terminal" 400 "The job is over";
    /// No token, or a wrong one.
    Unauthenticated "unauthenticated" 401 "A valid token is required";
    /// The role may not do this.
    Forbidden "forbidden" 403 "The token may not do this";
    /// A scope is missing.
    ScopeRequired "scope_required" 403 "The token lacks a scope";
    /// The attempt was handed to someone else, or the daemon runs it itself.
    AttemptNotYours "attempt_not_yours" 403 "The attempt was not handed to this caller";
    /// Another circle than the token's.
    CircleForbidden "circle_forbidden" 403 "The token is bound to another circle";
    /// No such thing, or not for this token.
    NotFound "not_found" 404 "There is no such thing";
    /// Nobody has this id or name in the circle; nothing was stored.
    AssignedPeerNotFound "assigned_peer_not_found" 404 "There is no such peer to assign it to";
    /// Nobody has this id or name in the circle.
    PeerNotFound "peer_not_found" 404 "There is no such peer";
    /// No such route.
    NoSuchRoute "no_such_route" 404 "There is no such route";
    /// The route has no such method.
    MethodNotAllowed "method_not_allowed" 405 "The route has no such method";
    /// The state has no move to the one asked for.
    TransitionRefused "transition_refused" 409 "The state has no such move";
    /// Another attempt is current, or none.
    StaleAttempt "stale_attempt" 409 "The attempt is not the current one";
    /// The state does not allow it.
    NotRunnable "not_runnable" 409 "The job cannot be run now";
    /// No executor does it: it waits for a worker that pulls it.
    WaitsForPuller "waits_for_puller" 409 "The job waits for a worker to pull it";
    /// The state does not allow it.
    NotRetryable "not_retryable" 409 "The job cannot be retried now";
    /// What it was asked to do was deleted on request.
    Purged "purged" 409 "The job was purged";
    /// Someone has paused it.
    Paused "paused" 409 "The job is paused";
    /// It is not queued.
    NotPausable "not_pausable" 409 "Only a queued job can be paused";
    /// Someone asked to stop it.
    CancelPending "cancel_pending" 409 "A cancel is pending";
    /// Somebody has asked to cancel the job, and it is over: it is not begun again.
    CancelRequested "cancel_requested" 409 "The job was asked to stop";
    /// It waits for an answer, and no report takes its place.
    AnswerRequired "answer_required" 409 "The job waits for an answer";
    /// It waits for no answer.
    NotAwaitingInput "not_awaiting_input" 409 "The job waits for no answer";
    /// It is not over yet.
    NotTerminal "not_terminal" 409 "The job is not over yet";
    /// Templates make jobs, and are none.
    RecurringTemplate "recurring_template" 409 "A recurring template is not a job";
    /// Several have this name in the circle; nothing was stored.
    AmbiguousAssignedPeer "ambiguous_assigned_peer" 409 "Several peers have this name";
    /// Several have this name in the circle.
    AmbiguousPeer "ambiguous_peer" 409 "Several peers have this name";
    /// Another token has registered the id in this circle.
    PeerIdTaken "peer_id_taken" 409 "The peer's id is another's";
    /// The ask was closed before; a message reaches nobody.
    AskClosed "ask_closed" 410 "The ask is closed";
    /// Someone holds the record.
    LeaseHeld "lease_held" 409 "Someone holds the record";
    /// The claim is another's by now, or has another version.
    ClaimLost "claim_lost" 409 "The claim was lost";
    /// The run went on from the step that failed, or was stopped: it is not done again.
    StepMovedOn "step_moved_on" 409 "The run has moved on";
    /// No step of the run has failed.
    NothingToRetry "nothing_to_retry" 409 "Nothing has failed";
    /// The rules said no in another way.
    Refused "refused" 409 "The state does not allow it";
    /// The same key with another request.
    IdempotencyKeyReused "idempotency_key_reused" 409 "The idempotency key was used for another request";
    /// It cannot be stopped; the detail is the stored reason.
    NotCancelable "not_cancelable" 409 "It cannot be stopped";
    /// The body did not come in time.
    RequestTimeout "request_timeout" 408 "The request took too long to come";
    /// Too large.
    BodyTooLarge "body_too_large" 413 "The body is too large";
    /// Not JSON by its own word.
    UnsupportedMediaType "unsupported_media_type" 415 "The body must be JSON";
    /// A field is missing, unknown or of the wrong type.
    InvalidRequest "invalid_request" 422 "The request is not valid";
    /// The same key twice in one object.
    DuplicateKey "duplicate_key" 422 "A key occurs twice";
    /// U+0000 or half a surrogate pair.
    InvalidText "invalid_text" 422 "A text holds what cannot be stored";
    /// Nested too deep.
    TooDeep "too_deep" 422 "The JSON is nested too deep";
    /// A value is over its limit.
    TooLarge "too_large" 422 "A value is over its limit";
    /// A policy asks for the impossible.
    InvalidPolicy "invalid_policy" 422 "A policy asks for the impossible";
    /// The deadline has passed already.
    DeadlineElapsed "deadline_elapsed" 422 "The deadline has passed already";
    /// There are no calendars yet.
    CalendarsUnavailable "calendars_unavailable" 422 "Recurring jobs are not available";
    /// The daemon reads no files for callers.
    PromptFileRefused "prompt_file_refused" 422 "Prompt files are not read";
    /// The header is not a key.
    InvalidIdempotencyKey "invalid_idempotency_key" 422 "The idempotency key is not valid";
    /// The cursor is none of ours.
    InvalidCursor "invalid_cursor" 422 "The cursor is not valid";
    /// The capability gives no handles.
    SyncOnly "sync_only" 422 "The capability is only called synchronously";
    /// The capability only gives handles.
    AsyncOnly "async_only" 422 "The capability is only called asynchronously";
    /// Its service was asked just now.
    TooSoon "too_soon" 429 "It was asked about just now";
    /// Too much of this work is open; nothing was accepted.
    TooManyOpen "too_many_open" 429 "Too much work is open";
    /// A defect of ours.
    Internal "internal" 500 "Something is broken here";
    /// A stored body is not what its record says; none of it is shown.
    BodyDamaged "body_damaged" 500 "A stored body is damaged";
    /// Too much waits; come back later.
    Busy "busy" 503 "Too much waits";
    /// Too many at once; come back later.
    Overloaded "overloaded" 503 "Too much is asked at once";
    /// Too many streams at once; come back later.
    TooManyStreams "too_many_streams" 503 "Too many streams are open";
    /// The disk is full.
    StoreFull "store_full" 503 "The disk is full";
    /// The outcome is unknown; repeat with the same key.
    OutcomeUnknown "outcome_unknown" 503 "The outcome is unknown";
    /// The store cannot be reached.
    StoreUnavailable "store_unavailable" 503 "The store is unavailable";
    /// The daemon stops.
    ShuttingDown "shutting_down" 503 "The daemon stops";
}

impl ProblemCode {
    /// Reads the stable word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == word)
    }

    /// A problem of this code.
    pub fn because(self, detail: impl Into<String>) -> Problem {
        Problem {
            kind: Box::from(self.uri()),
            title: Cow::Borrowed(self.title()),
            status: self.status(),
            code: Cow::Borrowed(self.as_str()),
            detail: detail.into().into_boxed_str(),
            errors: Box::default(),
            retry_after_seconds: None,
            candidates: None,
            peer: None,
        }
    }
}

impl Problem {
    /// The same problem, with the time to come back.
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after_seconds = NonZeroU32::new(seconds);
        self
    }

    /// The same problem, with those that a name may mean.
    pub fn between(mut self, candidates: Vec<Candidate>) -> Self {
        self.candidates = Some(Box::new(candidates));
        self
    }

    /// The same problem, with the name of the peer that it is about.
    pub fn about_peer(mut self, name: &str) -> Self {
        self.peer = Some(Box::new(name.to_owned()));
        self
    }

    /// The same problem, with a mistake in a field.
    pub fn at(mut self, error: FieldError) -> Self {
        let mut errors = self.errors.into_vec();
        errors.push(error);
        self.errors = errors.into_boxed_slice();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_its_own_and_can_be_read_back() {
        for code in ProblemCode::ALL {
            assert_eq!(ProblemCode::parse(code.as_str()), Some(*code));
            assert!((400..600).contains(&code.status()), "{code:?}");
        }
    }

    #[test]
    fn a_problem_reads_as_rfc_9457_says() {
        let problem = ProblemCode::InvalidRequest.because("the request is not valid").at(FieldError::new(
            "extra_forbidden",
            &["body", "tilte"],
            "unknown field",
        ));
        assert_eq!(
            serde_json::to_string(&problem).unwrap(),
            r#"{"type":"urn:longhaul:problem:invalid_request","title":"The request is not valid","status":422,"code":"invalid_request","detail":"the request is not valid","errors":[{"type":"extra_forbidden","loc":["body","tilte"],"msg":"unknown field"}]}"#
        );
    }
}
