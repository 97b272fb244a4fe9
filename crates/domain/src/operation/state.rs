//! The state of an operation: what it belongs to, what the service last said, and how it ended.
//!
//! There is no stored status: it derives from the end, or from what was last reported.

use serde::{Deserialize, Serialize};

use super::command::{Cancelability, PollError};
use super::fact::{Accepted, Ending, ExpiryCause, Settlement};
use super::orphan::Aftermath;
use crate::body::BodyRef;
use crate::job::{CancelAnswer, KeptCancelAnswer};
use crate::planted::{Bug, planted};
use crate::policy::{KindPolicy, LifeLimit};
use crate::words::words;
use crate::{AttemptId, JobId, Json, OperationId, Timestamp};

/// Work going on outside, folded from its facts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Its id.
    #[serde(skip)]
    pub id: OperationId,
    /// What it belongs to.
    pub link: OperationLink,
    /// The service's own id of the work: private.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<BodyRef>,
    /// Whether it can be stopped.
    pub cancelability: Cancelability,
    /// What the host granted when it was accepted.
    #[serde(with = "crate::policy::stored")]
    pub policy: KindPolicy,
    /// What the service last reported.
    pub reported: ReportedStatus,
    /// Seconds between polls: of the newest fact that carried them.
    pub interval_seconds: u32,
    /// Seconds between polls as the service last asked for, where that is or was not what is granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_retry_after_seconds: Option<i64>,
    /// A text for people: of the newest fact that carried one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_hint: Option<String>,
    /// The newest progress object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Json>,
    /// Polls so far; never attempts of the job.
    pub polls: u32,
    /// Failed polls in a row.
    pub errors_in_row: u32,
    /// The error of the last poll, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<PollError>,
    /// When the service took the work.
    pub dispatched_at: Timestamp,
    /// The newest poll or resolution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_polled_at: Option<Timestamp>,
    /// The next poll.
    pub next_poll_at: Timestamp,
    /// The end of its life; only ever comes nearer.
    pub expires_at: Timestamp,
    /// What bounds its life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounded_by: Option<LifeLimit>,
    /// The life that was asked for, if less was granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_ttl_seconds: Option<u64>,
    /// The service's own id of the work, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_job_id: Option<String>,
    /// The request to stop it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<OperationCancel>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// How it is known that nothing of it runs outside any more, although the host had given it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Settlement>,
    /// What came of asking about it after it was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aftermath: Option<Aftermath>,
    /// What is worth knowing and changed nothing, newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
    /// The first different texts that its service said in errors and refusals: private.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<BodyRef>,
    /// Whether what its service said was deleted on request: from then on nothing more of it is kept.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub purged: bool,
    /// When anything last happened to it.
    pub updated_at: Timestamp,
}

/// What an operation belongs to. None of it ever changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationLink {
    /// The job.
    pub job_id: JobId,
    /// The attempt.
    pub attempt_id: AttemptId,
    /// The kind that its specialist is looked up by.
    pub kind: String,
    /// The specialist that dispatched it: for the record only.
    pub specialist: String,
    /// The circle of its job, for which its specialist is looked up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circle: Option<String>,
}

/// What a service may report of open work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportedStatus {
    /// Not begun.
    Pending,
    /// Begun.
    Running,
}

words! {
    /// The eight statuses of a deferred operation.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    #[allow(missing_docs, reason = "the words of the contract")]
    pub enum OperationStatus {
        Pending = "pending",
        Running = "running",
        Completed = "completed",
        Failed = "failed",
        TimedOut = "timed-out",
        Cancelled = "cancelled",
        Expired = "expired",
        Unknown = "unknown",
    }
}

/// The request to stop an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationCancel {
    /// When.
    pub requested_at: Timestamp,
    /// By whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why.
    pub reason: String,
    /// How often the service was asked.
    pub tries: u32,
    /// How often it was asked because of earlier requests.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub tries_before: u32,
    /// When it is asked (again); never if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_try_at: Option<Timestamp>,
    /// What it answered, newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<KeptCancelAnswer>,
}

/// How an operation ended, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// When: set once.
    pub at: Timestamp,
    /// How.
    pub how: How,
}

/// How an operation ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// As the service said.
    Resolved(Ending),
    /// Stopped on request.
    Cancelled,
    /// Given up by the host.
    Expired(ExpiryCause),
}

/// Something worth knowing that changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// When.
    pub at: Timestamp,
    /// A stable code.
    pub code: String,
    /// What it was about.
    pub message: String,
}

/// The error code of work whose executor nobody has: its service has said nothing of it.
pub const SPECIALIST_UNREGISTERED: &str = "specialist_unregistered";

/// The error code of a poll that was not answered in the time that the host grants.
pub const POLL_TIMED_OUT: &str = "poll_timed_out";
/// The error code of an executor whose own time limit was over first.
const TIMED_OUT: &str = "timed_out";

/// What is known of an operation's service from its last poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollHistory {
    /// It was answered, whatever the answer was.
    Answered,
    /// There was none.
    NeverPolled,
    /// It was not answered in time.
    Hung,
}

/// The diagnostic of a status that came after the end.
pub(super) const LATE_STATUS_IGNORED: &str = "late-status-ignored";
/// The diagnostic of a hint that was negative or not a whole number of seconds.
pub(super) const HINT_INVALID: &str = "hint-invalid";

impl Operation {
    /// The operation right after its service took the work.
    pub fn new(id: OperationId, accepted: &Accepted, at: Timestamp) -> Self {
        let mut operation = Self {
            id,
            link: accepted.link.clone(),
            handle: accepted.handle,
            cancelability: accepted.cancelability.clone(),
            policy: accepted.policy.clone(),
            reported: ReportedStatus::Pending,
            interval_seconds: accepted.interval_seconds,
            asked_retry_after_seconds: accepted.asked_retry_after_seconds,
            progress_hint: accepted.progress_hint.clone(),
            progress: None,
            polls: 0,
            errors_in_row: 0,
            last_error: None,
            dispatched_at: at,
            last_polled_at: None,
            next_poll_at: accepted.next_poll_at,
            expires_at: accepted.expires_at,
            bounded_by: accepted.bounded_by,
            asked_ttl_seconds: accepted.asked_ttl_seconds,
            external_job_id: accepted.external_job_id.clone(),
            cancel: None,
            ended: None,
            settled: None,
            aftermath: None,
            diagnostics: Vec::new(),
            texts: Vec::new(),
            purged: false,
            updated_at: at,
        };
        if accepted.invalid_hint {
            operation.diagnose_hint(at);
        }
        operation
    }

    /// One of the eight statuses, derived.
    pub fn status(&self) -> OperationStatus {
        match (&self.ended, self.reported) {
            (Some(ended), _) => ended.how.status(),
            (None, ReportedStatus::Pending) => OperationStatus::Pending,
            (None, ReportedStatus::Running) => OperationStatus::Running,
        }
    }

    /// What came of the newest poll, or of the newest request to stop it.
    pub fn poll_history(&self) -> PollHistory {
        let hung = |error: &PollError| error.code == POLL_TIMED_OUT || error.code == TIMED_OUT;
        let late = self.aftermath.as_ref().map(|aftermath| aftermath.last_error.as_ref());
        let last_error = late.unwrap_or(self.last_error.as_ref());
        let stop = self.cancel.as_ref().and_then(|cancel| cancel.answers.last());
        let unreachable = stop.is_some_and(|kept| {
            kept.answer == CancelAnswer::Unreachable && self.last_polled_at.is_none_or(|at| at <= kept.at)
        });
        if (unreachable || last_error.is_some_and(hung)) && !planted(Bug::HungCountsAsAnswered) {
            PollHistory::Hung
        } else if self.polls == 0 && stop.is_none() {
            PollHistory::NeverPolled
        } else {
            PollHistory::Answered
        }
    }

    /// The bodies that it names: they are kept as long as it is, or until a purge.
    pub fn bodies(&self) -> impl Iterator<Item = &BodyRef> {
        self.handle.iter().chain(&self.texts)
    }

    /// When it ended.
    pub fn completed_at(&self) -> Option<Timestamp> {
        self.ended.as_ref().map(|ended| ended.at)
    }

    /// Why it failed, for people; only if it failed.
    pub fn failure_detail(&self) -> Option<&str> {
        match &self.ended.as_ref()?.how {
            How::Resolved(Ending::Completed { .. }) => None,
            How::Resolved(Ending::Failed { failure_detail, .. }) => Some(failure_detail),
            How::Resolved(Ending::TimedOut) => Some("the work outside ran out of its own time"),
            How::Resolved(Ending::Expired) => {
                Some("its service has given the work up: its life there is over")
            }
            How::Resolved(Ending::Unknown) => Some("the service does not know the work"),
            How::Resolved(Ending::NobodyToAsk) => Some("no node has the executor that could ask"),
            How::Cancelled => Some("cancelled"),
            How::Expired(ExpiryCause::LifetimeOver) => Some("the life granted by the host is over"),
            How::Expired(ExpiryCause::MaxAttemptsExhausted) => Some("max-attempts-exhausted"),
            How::Expired(ExpiryCause::Abandoned(reason)) => Some(reason),
            How::Expired(ExpiryCause::SubmitOutcomeUnknown) => {
                Some("nobody knows whether the service took the work")
            }
            How::Expired(ExpiryCause::VolatileLost) => {
                Some("the daemon that left it outside is gone, and its policy is persistence: volatile")
            }
        }
    }

    /// Why its service is not asked to stop it, if it is not.
    pub fn uncancelable_because(&self) -> Option<String> {
        match &self.cancelability {
            Cancelability::NotCancelable(reason) => Some(reason.clone()),
            Cancelability::Cancelable => self.policy.not_cancelable_because().map(str::to_owned),
        }
    }
}

impl How {
    const fn status(&self) -> OperationStatus {
        match self {
            Self::Resolved(Ending::Completed { .. }) => OperationStatus::Completed,
            Self::Resolved(Ending::Failed { .. } | Ending::NobodyToAsk) => OperationStatus::Failed,
            Self::Resolved(Ending::TimedOut) => OperationStatus::TimedOut,
            Self::Resolved(Ending::Unknown) => OperationStatus::Unknown,
            Self::Cancelled => OperationStatus::Cancelled,
            Self::Resolved(Ending::Expired) | Self::Expired(_) => OperationStatus::Expired,
        }
    }
}

impl OperationStatus {
    /// Whether the operation is over.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Pending | Self::Running => false,
            Self::Completed
            | Self::Failed
            | Self::TimedOut
            | Self::Cancelled
            | Self::Expired
            | Self::Unknown => true,
        }
    }
}

impl OperationCancel {
    /// How often the service was asked, whoever wanted it.
    pub const fn tries_in_all(&self) -> u32 {
        self.tries.saturating_add(self.tries_before)
    }
}
