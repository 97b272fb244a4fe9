//! What comes of an attempt, and of a question about work outside.

use domain::Json;
use domain::job::{AfterExternal, AttemptLimit, Retryable};
use domain::limit::{LimitValue, NamedLimit};
use domain::operation::{Cancelability, PollAnswer, SPECIALIST_UNREGISTERED};
use domain::policy::Hint;

use crate::{Stage, StateUpdate, WorkResult};

/// What came of an attempt.
#[derive(Clone, Debug)]
pub enum Produced {
    /// It is done.
    Completed(Output),
    /// It is not.
    Failed(Failure),
    /// What it needs is not there.
    Unavailable(Failure),
    /// Somebody else has it now and will report.
    Delivered,
    /// It needs an answer first.
    AwaitingInput {
        /// The question, as JSON.
        question: Vec<u8>,
    },
    /// It goes on outside, and is asked about from now on.
    Deferred(Deferral),
    /// A request under an intent may have arrived at its service, and nobody knows.
    SubmitUnknown(Failure),
    /// It has stopped, as asked.
    Stopped,
    /// The same, with what there is to see of it.
    StoppedWith(Failure),
    /// Something that is none of these; what it was.
    Unexpected(String),
}

/// Work that goes on outside: what its service said when it took it. Every time in it is a hint, clamped by the host.
#[derive(Clone, Debug, Default)]
pub struct Deferral {
    /// Whatever `poll` and `cancel` need to find the work again: opaque to the engine, private, never shown.
    pub handle: Vec<u8>,
    /// The service's own id of the work, if whoever sees the record may read it and search for it.
    pub external_job_id: Option<String>,
    /// Whether it can be stopped.
    pub cancelability: Cancelability,
    /// When to ask first.
    pub retry_after: Hint,
    /// When the service gives up.
    pub fail_after: Hint,
    /// How long such work may take at most.
    pub action_ttl: Hint,
    /// A text for people.
    pub progress_hint: Option<String>,
    /// What its result means for the job.
    pub then: AfterExternal,
}

/// What came of a question about work outside, as its executor has it.
pub type Polled = PollAnswer<Output, Failure>;

/// A result.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// For people.
    pub summary: Option<String>,
    /// The data, as JSON.
    pub data: Option<Vec<u8>>,
    /// The list of artifacts, as JSON.
    pub artifacts: Option<Vec<u8>>,
    /// The events that came with it, in their order; the data lists them under `events`.
    pub emitted: Vec<Emitted>,
    /// Whether its attempt left files for the steps that follow it in its run.
    pub left_files: bool,
    /// What its plugin remembers of it.
    pub state: Option<StateUpdate>,
}

/// An event that came with a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// Its type.
    pub kind: String,
    /// Its payload: a JSON object.
    pub payload: Vec<u8>,
    /// What names the same thing.
    pub dedupe_key: Option<String>,
    /// What is carried with everything that follows from it: a JSON object. What was carried so far, if it says nothing.
    pub correlation: Option<Json>,
}

/// A failure.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Short and machine-readable.
    pub reason: String,
    /// For people.
    pub message: String,
    /// More of it for machines: a JSON object.
    pub details: Option<Box<serde_json::Value>>,
    /// Whether another attempt may help.
    pub retryable: Retryable,
    /// When another attempt would be welcome, if whoever should do it has said so: only a hint, clamped by the host.
    pub retry_after: Hint,
    /// What there is to see of it: the list of artifacts, as JSON.
    pub artifacts: Option<Vec<u8>>,
    /// What caused it, if that makes a difference.
    pub cause: Option<Box<FailureCause>>,
}

/// What caused a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureCause {
    /// A limit of ours.
    Limit(AttemptLimit),
    /// A service, which chose the reason.
    Service {
        /// What is recorded in place of a reason that repeats the job's input.
        usual_reason: &'static str,
    },
}

impl Deferral {
    /// With this handle; it can be stopped, and nothing is hinted.
    pub fn new(handle: Vec<u8>) -> Self {
        Self { handle, ..Self::default() }
    }
}

impl Output {
    /// It, as far as anything follows from it; the end of its job.
    pub(crate) fn work_result(&self) -> WorkResult {
        WorkResult {
            emitted: self.emitted.clone(),
            data: self.data.clone(),
            left_files: self.left_files,
            stage: Stage::Last,
        }
    }
}

impl Failure {
    /// A failure that another attempt may mend.
    pub fn transient(reason: &str, message: impl Into<String>) -> Self {
        Self {
            reason: reason.to_owned(),
            message: message.into(),
            details: None,
            retryable: Retryable::Yes,
            retry_after: Hint::Absent,
            artifacts: None,
            cause: None,
        }
    }

    /// No executor of this name has come within the grace after the start.
    pub(crate) fn unregistered(message: String, grace_seconds: u64) -> Self {
        let grace = LimitValue::Seconds(grace_seconds);
        Self::permanent(SPECIALIST_UNREGISTERED, message)
            .limited_by(NamedLimit::fixed("missing_executor_grace_seconds", grace))
    }

    /// The same, caused by a limit of ours.
    #[must_use]
    pub fn limited_by(self, limit: impl Into<AttemptLimit>) -> Self {
        Self { cause: Some(Box::new(FailureCause::Limit(limit.into()))), ..self }
    }

    /// The limit of ours that caused it, if one did.
    pub fn limit(&self) -> Option<&AttemptLimit> {
        match self.cause.as_deref()? {
            FailureCause::Limit(limit) => Some(limit),
            FailureCause::Service { .. } => None,
        }
    }

    /// What is recorded in place of a reason that a service chose and that repeats the job's input.
    pub(crate) fn usual_reason(&self) -> Option<&'static str> {
        match self.cause.as_deref()? {
            FailureCause::Service { usual_reason } => Some(usual_reason),
            FailureCause::Limit(_) => None,
        }
    }

    /// The one name for an answer that a specialist may not give to `poll`; what it was.
    pub fn unexpected_poll(what: &str) -> Self {
        let message = format!(
            "the poll was answered with {what}; expected is one of Open, Completed, Failed, TimedOut, Expired, Cancelled, Unknown and NotNow"
        );
        Self::permanent("poll_returned_unexpected_type", message)
    }

    /// A failure that no attempt will mend.
    pub fn permanent(reason: &str, message: impl Into<String>) -> Self {
        Self { retryable: Retryable::No, ..Self::transient(reason, message) }
    }
}
