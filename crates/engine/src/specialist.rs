//! The specialist: the one trait behind every executor.
//!
//! **The idempotence contract.**
//!
//! - `produce` may be called again: after a crash for the same job with another attempt, after an answer for the same attempt.
//!   Whatever it does outside must be keyed by the job's id, the attempt's id or the key of [`Link::intend`], so that a repeated call
//!   finds the work that is there instead of starting it twice. A result is applied once in any case.
//! - `poll` is a question, never an action: the same question may be asked twice, also when the first one died with its process. What it
//!   does besides, a download for instance, it must itself make safe to repeat.
//! - `cancel` may be asked again as long as nobody has heard the answer.

pub(crate) mod link;

use std::borrow::Cow;
use std::sync::Arc;

use domain::job::{CancelAnswer, Job, JobSpec};
use domain::operation::{Operation, PollError};
use domain::{AttemptId, Timestamp};
use futures::future::BoxFuture;

use crate::{Deferral, Link, Polled, Produced};

/// What can do a job.
pub trait Specialist: Send + Sync {
    /// Who this is, for the record: an operation is never looked up by it.
    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed("builtin")
    }

    /// What is always so of it.
    fn traits(&self) -> ExecutorTraits {
        ExecutorTraits::default()
    }

    /// Does the work of one attempt, leaves it to someone outside, or says why not. Ends soon after `link` says stop.
    fn produce(&self, assignment: Assignment, link: Link) -> BoxFuture<'_, Produced>;

    /// Asks how work that it left outside is going. An error says nothing about the work: it is asked again later.
    fn poll(&self, _outside: Outside) -> BoxFuture<'_, Result<Polled, PollError>> {
        let code = "poll_not_supported".to_owned();
        let message = "this executor leaves nothing outside and cannot be asked".to_owned();
        Box::pin(async { Err(PollError { code, message, ..PollError::default() }) })
    }

    /// Takes over work that whoever pulled a job gave to its service: what `poll` and `cancel` need to find it. By default it cannot.
    fn adopt(&self, _assignment: &Assignment, _work: ForeignWork) -> Result<Deferral, String> {
        Err("this executor does not take over work that others began".to_owned())
    }

    /// The lane in which its jobs queue, unless they name one; its own by default.
    fn lane(&self) -> Option<Cow<'_, str>> {
        None
    }

    /// Lets an attempt that a worker found in. If it is left alone for now, says until when its job waits: it is not attempted.
    fn let_in(&self, _now: Timestamp) -> Result<Admission, Timestamp> {
        Ok(Admission::default())
    }

    /// Until when it is left alone; none if an attempt would be let in.
    fn left_alone_until(&self, _now: Timestamp) -> Option<Timestamp> {
        None
    }

    /// Why it cannot be used on this node, if it cannot: then it lets nobody in.
    fn left_out_because(&self) -> Option<&str> {
        None
    }

    /// Why its program cannot be started on this node, if that can be said before there is a job: then it is listed as not available.
    fn missing_program(&self) -> Option<String> {
        None
    }

    /// Why it would not do such a job, as far as that can be said before anything is stored.
    fn unfit(&self, _spec: &JobSpec) -> Option<Unfit> {
        None
    }

    /// What a callback of the service says of the work, if its callbacks carry the answer. Otherwise a callback only means that there
    /// is news, and the service is asked.
    fn read_callback(&self, _body: &[u8]) -> Option<Polled> {
        None
    }

    /// Whether a callback was sent by the service itself, if the service signs what it sends.
    fn admits_callback(&self, _callback: SignedWebhook<'_>, _now: Timestamp) -> bool {
        true
    }

    /// Why no work that it leaves outside can be stopped there, if none can.
    fn not_cancelable_because(&self) -> Option<String> {
        None
    }

    /// Asks to stop work that it left outside.
    fn cancel(&self, _outside: Outside) -> BoxFuture<'_, CancelReply> {
        let why = "this executor cannot stop what it left outside".to_owned();
        Box::pin(async { CancelReply::not_asked(CancelAnswer::Refused(why)) })
    }
}

/// What is always so of an executor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is independent of the others")]
pub struct ExecutorTraits {
    /// Whether its input is an event with its context, as plugins are given it, and not a plain payload.
    pub takes_events: bool,
    /// Whether its jobs that are steps of a run begin with files that only the node of an earlier step can read.
    pub needs_its_node: bool,
    /// Whether its input says what is run. No event may say that: such a step of a pipeline is given what its file says, and nothing else.
    pub runs_its_input: bool,
    /// Whether it is a backend: jobs name it with the folder that it is started in.
    pub is_backend: bool,
    /// Whether nothing of its work has begun before a service has taken it.
    pub begins_outside: bool,
    /// Whether its services are given addresses to call back: then what came before the operation was written down is looked for.
    pub is_called_back: bool,
    /// Whether it would give its services an address to call back, and has none to give.
    pub lacks_callback_url: bool,
}

/// That an attempt may begin. Kept until the attempt is over, however it ends.
#[derive(Default)]
pub struct Admission {
    _held: Option<Box<dyn Send + Sync>>,
}

impl Admission {
    /// With something that is dropped when the attempt is over.
    pub fn holding(held: impl Send + Sync + 'static) -> Self {
        Self { _held: Some(Box::new(held)) }
    }
}

/// What came of asking to stop work that goes on outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancelReply {
    /// What it means.
    pub answer: CancelAnswer,
    /// How it was told: the status of the answer, or why there was none. Short, and nothing that a service wrote.
    pub told: Option<String>,
}

impl CancelReply {
    /// How an answer is told when no service was asked. What a refusal told so says stands in the connector's file or the code.
    pub const NOT_ASKED: &'static str = "not asked";

    /// An answer, and how it was told.
    pub fn told(answer: CancelAnswer, told: impl Into<String>) -> Self {
        Self { answer, told: Some(told.into()) }
    }

    /// An answer of ours: no service was asked.
    pub fn not_asked(answer: CancelAnswer) -> Self {
        Self::told(answer, Self::NOT_ASKED)
    }
}

impl From<CancelAnswer> for CancelReply {
    fn from(answer: CancelAnswer) -> Self {
        Self { answer, told: None }
    }
}

/// One attempt of one job, and what it needs.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The job.
    pub job: Arc<Job>,
    /// The attempt: the fence of every report, and the key for whatever is done outside.
    pub attempt_id: AttemptId,
    /// 1 for the first.
    pub attempt_number: u32,
    /// The input, as JSON; `null` if the job has none.
    pub input: Vec<u8>,
    /// What to do, in words, if the job has any.
    pub prompt: Option<Vec<u8>>,
    /// What it was answered so far, oldest first, when it is called again.
    pub answers: Vec<Vec<u8>>,
    /// The result of the work outside that it waited for, when it is called again.
    pub arrived: Option<Vec<u8>>,
}

/// Why an executor would not do a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// The field of the request that it is about.
    pub field: &'static str,
    /// Stable.
    pub code: &'static str,
    /// For people.
    pub told: String,
}

/// Work at a service that someone else gave to it.
#[derive(Clone, Debug)]
pub struct ForeignWork {
    /// The service's own id of it; `null` if a location is enough.
    pub id: serde_json::Value,
    /// Where it is asked about, as the service said.
    pub location: Option<String>,
}

/// A message by Standard Webhooks as it came, with its three headers.
#[derive(Clone, Copy, Debug)]
pub struct SignedWebhook<'a> {
    /// `webhook-id`.
    pub id: &'a str,
    /// `webhook-timestamp`.
    pub timestamp: &'a str,
    /// `webhook-signature`.
    pub signatures: &'a str,
    /// The body, byte for byte.
    pub body: &'a [u8],
}

/// Work that goes on outside, as the record has it.
#[derive(Clone, Debug)]
pub struct Outside {
    /// The operation.
    pub operation: Arc<Operation>,
    /// What the specialist kept when it left the work there.
    pub handle: Vec<u8>,
}
