//! What may be ordered of an operation, and what its service may answer.

use serde::{Deserialize, Serialize};

use super::state::{OperationStatus, ReportedStatus};
use crate::body::{BodyName, BodyRef};
use crate::job::{CancelAnswer, ResultRefs, Retryable};
use crate::limits::{MAX_LABEL_BYTES, MAX_NOTE_BYTES, check_text, cut};
use crate::policy::{Hint, KindPolicy, LifeLimit};
use crate::{AttemptId, Jitter, JobId, Json, Refusal, Timestamp};

/// An order to an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperationCommand {
    /// The service took the work and gave a handle.
    Accept(Box<NewOperation>),
    /// The service took the work, but the job does not wait for it any more: it may run there, and is only written down.
    AcceptOrphan {
        /// The operation.
        operation: Box<NewOperation>,
        /// Why the job does not wait, short.
        reason: String,
    },
    /// The service was polled, or called back.
    RecordPoll(Box<Poll>),
    /// Stop it.
    RequestCancel {
        /// Who asks.
        by: Option<String>,
        /// Why.
        reason: String,
        /// Whether a caller or the job asks.
        origin: CancelOrigin,
    },
    /// The service answered the cancel.
    RecordCancelAnswer {
        /// What it answered.
        answer: CancelAnswer,
        /// How it was told: the status of the answer, or why there was none.
        told: Option<String>,
        /// What the service said with it: private.
        said: Option<BodyRef>,
        /// For the wait before the next try.
        jitter: Jitter,
    },
    /// Somebody has looked outside and vouches that nothing of it runs there any more.
    Settle {
        /// Who.
        by: Option<String>,
        /// What they found.
        note: String,
    },
    /// The life that the host granted is over.
    Expire,
    /// The daemon that left it outside is gone, and it does not outlive that one.
    Lose,
    /// Its job has ended without it.
    Abandon {
        /// Why.
        reason: String,
    },
    /// Move what measures passed time: store time has jumped by a step of the clock.
    MoveTimers {
        /// By so many microseconds; negative if time went back.
        by_micros: i64,
    },
    /// Delete what its service said.
    Purge,
    /// It was kept long enough.
    Retire,
}

/// Who asks an operation to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelOrigin {
    /// A caller, who is told if it cannot.
    Caller,
    /// A caller who looks after what may still run outside, and is told also if it is nothing of that.
    OrphanLedger,
    /// The job, whose own cancel goes on either way.
    ParentJob,
}

/// Work that a service took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewOperation {
    /// The job that it belongs to.
    pub job_id: JobId,
    /// The attempt that it belongs to.
    pub attempt_id: AttemptId,
    /// Its kind: what the policy and the lookup of its specialist go by.
    pub kind: String,
    /// The specialist that dispatched it; kept for the record, never used to look one up.
    pub specialist: String,
    /// The circle of its job.
    pub circle: Option<String>,
    /// The service's own id of the work: private. None if nobody knows whether the service took it.
    pub handle: Option<BodyRef>,
    /// Whether it can be stopped.
    pub cancelability: Cancelability,
    /// When to ask first.
    pub retry_after: Hint,
    /// When the service gives up.
    pub fail_after: Hint,
    /// How long the action may take at most.
    pub action_ttl: Hint,
    /// The caller's deadline.
    pub deadline_at: Option<Timestamp>,
    /// A text for people.
    pub progress_hint: Option<String>,
    /// What the host grants to this kind.
    pub policy: KindPolicy,
    /// What the `max_ttl_seconds` of that policy stands for; the policy itself if absent.
    pub ttl_limit: Option<LifeLimit>,
    /// The service's own id of the work, if people may read and search it.
    pub external_job_id: Option<String>,
    /// For the first wait.
    pub jitter: Jitter,
}

/// Whether an operation can be stopped: exactly one of the two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cancelability {
    /// Its service has a cancel.
    #[default]
    Cancelable,
    /// It has none, and this is why.
    NotCancelable(String),
}

impl Cancelability {
    /// Refuses what is over a limit.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        match self {
            Self::Cancelable => Ok(()),
            Self::NotCancelable(reason) => check_text("cancel/unavailable-reason", reason, MAX_NOTE_BYTES),
        }
    }
}

/// One poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Poll {
    /// What came of it.
    pub answer: PollAnswer,
    /// For the wait before the next poll.
    pub jitter: Jitter,
}

/// What came of a poll: what the service says of the work, or why it says nothing. An executor answers with the output or the failure
/// itself; a command names what of it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PollAnswer<Output = ResultRefs, Failure = PollFailure> {
    /// Not over.
    Open(ReportedStatus, PollHints),
    /// Over, with a result.
    Completed(Output),
    /// Over, without.
    Failed(Failure),
    /// Its own time budget ran out.
    TimedOut,
    /// It was stopped.
    Cancelled,
    /// Its life there is over: the service has given it up.
    Expired,
    /// The service does not know it.
    Unknown,
    /// Nothing about the work: the poll failed, or the service has no time and may say when it will have.
    NotNow {
        /// What failed.
        error: PollError,
        /// When the service would like to be asked again, if it said so: never sooner, as far as the host goes along.
        retry_after: Hint,
    },
    /// No node has the executor that could ask. Only the host says so, never a service.
    NobodyToAsk(Failure),
}

impl<Output, Failure> PollAnswer<Output, Failure> {
    /// What it says of the work, if it says anything.
    pub const fn status(&self) -> Option<OperationStatus> {
        Some(match self {
            Self::Open(ReportedStatus::Pending, _) => OperationStatus::Pending,
            Self::Open(ReportedStatus::Running, _) => OperationStatus::Running,
            Self::Completed(_) => OperationStatus::Completed,
            Self::Failed(_) | Self::NobodyToAsk(_) => OperationStatus::Failed,
            Self::TimedOut => OperationStatus::TimedOut,
            Self::Cancelled => OperationStatus::Cancelled,
            Self::Expired => OperationStatus::Expired,
            Self::Unknown => OperationStatus::Unknown,
            Self::NotNow { .. } => return None,
        })
    }
}

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PollFailure {
    /// For people.
    pub failure_detail: String,
    /// For programs.
    pub error_code: Option<String>,
    /// The error object and the rest.
    pub result: ResultRefs,
    /// Whether another attempt may help.
    pub retryable: Retryable,
}

/// What came with "not over".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PollHints {
    /// When to ask again.
    pub retry_after: Hint,
    /// When the service gives up; may only shorten the operation's life.
    pub fail_after: Hint,
    /// A text for people.
    pub progress_hint: Option<String>,
    /// The progress object.
    pub progress: Option<Json>,
}

impl PollError {
    /// The code and what is public of it, in a sentence for people. It is a note in a fact of the job.
    pub fn told(&self) -> String {
        let (code, shown) = (&self.code, self.without_words().shown());
        let told = if shown.is_empty() { code.clone() } else { format!("{code}: {shown}") };
        cut(&format!("the last poll failed: {told}"), MAX_NOTE_BYTES).to_owned()
    }

    /// What is shown of it besides the code: the status and the digest of what was said. The words themselves only where they were
    /// read from the private body.
    pub fn shown(&self) -> String {
        let status = self.status.map(|status| format!("HTTP {status}"));
        let digest = self.said.map(|said| format!("sha256:{}", said.sha256));
        match (self.message.is_empty(), status, digest) {
            (false, _, _) => self.message.clone(),
            (true, Some(status), Some(digest)) => format!("{status}, {digest}"),
            (true, Some(one), None) | (true, None, Some(one)) => one,
            (true, None, None) => String::new(),
        }
    }

    /// The same without what was said, as facts and views hold it.
    pub(super) fn without_words(&self) -> Self {
        Self { message: String::new(), ..self.clone() }
    }

    /// Refuses what is over a limit.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        check_text("poll error code", &self.code, MAX_LABEL_BYTES)?;
        check_text("poll error message", &self.message, MAX_NOTE_BYTES)?;
        self.said.map_or(Ok(()), |said| said.check_named(BodyName::Error))
    }
}

/// Why a poll itself failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PollError {
    /// A short code.
    pub code: String,
    /// What was said of it, on its way to or from a private body (`said`). It is in no fact and no view. Facts of older
    /// versions may hold one: it is not read.
    #[serde(skip)]
    pub message: String,
    /// The status of the answer, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// What was said with it: a private body, of which only the digest is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<BodyRef>,
}
