//! What has happened to a job. Facts are past tense and never edited; variants are added, never repurposed.

use serde::{Deserialize, Serialize};

use super::attempt::{Release, Trigger};
use super::cancel::{CancelAnswer, CancelTry};
use super::details::Details;
use super::holder::Holder;
use super::intent::Intent;
use super::spec::NewJob;
use super::state::{AfterExternal, JobStateName};
use crate::body::BodyRef;
use crate::kind::Removal;
use crate::{AttemptId, OperationId, OwnerId, Timestamp};

/// One thing that happened to a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobFact {
    /// It was accepted.
    Created(Box<NewJob>),
    /// An attempt took it.
    Dispatched {
        /// The new attempt.
        attempt_id: AttemptId,
        /// Its number.
        number: u32,
        /// Who took it.
        owner: OwnerId,
        /// What made it.
        #[serde(default, skip_serializing_if = "crate::is_default")]
        trigger: Trigger,
        /// To whom it was handed. Facts of older versions do not say.
        #[serde(default, skip_serializing_if = "crate::is_default")]
        holder: Holder,
    },
    /// The executor has it.
    Delivered,
    /// The executor works on it.
    Started(Details),
    /// It paused for input.
    InputAwaited(Details),
    /// It paused for a decision.
    Blocked(Details),
    /// It is about to be given to a service.
    SubmitIntended(Box<Intent>),
    /// It went on outside.
    Deferred {
        /// The operation that follows it.
        operation_id: OperationId,
        /// What its result means.
        then: AfterExternal,
    },
    /// What it waited for outside has come, and the executor goes on.
    ExternalArrived(Details),
    /// It got its answer.
    Answered(AnswerKept),
    /// Its executor was called again.
    Resumed,
    /// The executor told about it, and the state stayed.
    Noted(Details),
    /// It is done.
    Completed(Details),
    /// It is over without success.
    Failed(Details),
    /// It will be tried again.
    Requeued {
        /// Not before.
        due_at: Timestamp,
        /// Why.
        cause: RequeueCause,
        /// What the attempt said.
        #[serde(default, skip_serializing_if = "crate::is_default")]
        details: Details,
    },
    /// It was put on hold.
    Paused {
        /// Who asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The pause ended.
    Unpaused {
        /// Who asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Someone asked to stop it.
    CancelRequested {
        /// Who.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// Why.
        reason: String,
        /// When waiting for a confirmation ends; never if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit_at: Option<Timestamp>,
    },
    /// Someone asked for that again.
    CancelRepeated {
        /// Who.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// Why.
        reason: String,
    },
    /// It was asked for so many more times, beyond the repeats that are kept one by one.
    CancelRepeatsCounted {
        /// How often since the count before.
        count: u32,
    },
    /// The cancel was passed on to whoever does the work, or could not be.
    CancelTried(CancelTry),
    /// Its executor answered the cancel, and the state stayed.
    CancelAnswered(CancelAnswer),
    /// It is stopped.
    Cancelled(Conclusion<CancelCause>),
    /// Its time is over.
    Expired(Conclusion<ExpiryCause>),
    /// What it needs is missing.
    BecameUnavailable(Conclusion<Unavailability>),
    /// An attempt that was not current reported; nothing else changed.
    StaleReportKept(StaleReport),
    /// So many more reports of attempts that were not current came, beyond those that are kept one by one.
    StaleReportsCounted {
        /// How many since the count before.
        count: u32,
    },
    /// It was seen what became of the executor of an attempt that had ended otherwise.
    ExecutorReleased {
        /// The number of the attempt.
        attempt: u32,
        /// What became of it.
        release: Release,
    },
    /// Store time jumped by a step of the clock; what measures passed time was moved with it.
    TimersMoved {
        /// By so many microseconds; negative if time went back.
        by_micros: i64,
    },
    /// Its bodies were deleted.
    Purged,
    /// It was kept long enough; the stream ends here and goes.
    Retired,
}

impl JobFact {
    /// How the names begin under which they are stored.
    pub(crate) const KIND_PREFIXES: &'static [&'static str] = &["job."];

    /// The name and version under which it is stored: never changed once it was released.
    pub(crate) const fn kind_name(&self) -> &'static str {
        match self {
            Self::Created(_) => "job.created/1",
            Self::Dispatched { .. } => "job.dispatched/1",
            Self::Delivered => "job.delivered/1",
            Self::Started(_) => "job.started/1",
            Self::InputAwaited(_) => "job.input_awaited/1",
            Self::Blocked(_) => "job.blocked/1",
            Self::SubmitIntended(_) => "job.submit_intended/1",
            Self::Deferred { .. } => "job.deferred/1",
            Self::ExternalArrived(_) => "job.external_arrived/1",
            Self::Answered(_) => "job.answered/1",
            Self::Resumed => "job.resumed/1",
            Self::Noted(_) => "job.noted/1",
            Self::Completed(_) => "job.completed/1",
            Self::Failed(_) => "job.failed/1",
            Self::Requeued { .. } => "job.requeued/1",
            Self::Paused { .. } => "job.paused/1",
            Self::Unpaused { .. } => "job.unpaused/1",
            Self::CancelRequested { .. } => "job.cancel_requested/1",
            Self::CancelRepeated { .. } => "job.cancel_repeated/1",
            Self::CancelRepeatsCounted { .. } => "job.cancel_repeats_counted/1",
            Self::CancelTried(_) => "job.cancel_tried/1",
            Self::CancelAnswered(_) => "job.cancel_answered/1",
            Self::Cancelled(_) => "job.cancelled/1",
            Self::Expired(_) => "job.expired/1",
            Self::BecameUnavailable(_) => "job.became_unavailable/1",
            Self::StaleReportKept(_) => "job.stale_report_kept/1",
            Self::StaleReportsCounted { .. } => "job.stale_reports_counted/1",
            Self::ExecutorReleased { .. } => "job.executor_released/1",
            Self::TimersMoved { .. } => "job.timers_moved/1",
            Self::Purged => "job.purged/1",
            Self::Retired => "job.retired/1",
        }
    }

    /// Whether the attempt of which it tells is over with it.
    pub const fn ends_attempt(&self) -> bool {
        matches!(
            self,
            Self::Completed(_)
                | Self::Failed(_)
                | Self::Requeued { .. }
                | Self::Cancelled(_)
                | Self::Expired(_)
                | Self::BecameUnavailable(_)
        )
    }

    /// What it takes away.
    pub(crate) const fn removal(&self) -> Removal {
        if matches!(self, Self::Retired) {
            Removal::Record
        } else if matches!(self, Self::Purged) {
            Removal::Bodies
        } else {
            Removal::Nothing
        }
    }
}

/// An end with its cause and what was said with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conclusion<C> {
    /// Why it ended so.
    pub cause: C,
    /// What was said with it.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub details: Details,
}

/// Why a job was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelCause {
    /// No executor had been reached.
    NeverStarted,
    /// The executor, the operation or the doer confirmed it.
    Confirmed,
    /// Nobody confirmed it in time: the work may still run.
    TimedOut,
    /// The attempt's lease ended while a cancel was pending: the work may still run.
    LeaseLost,
    /// Nobody knows whether a service has the work since the last attempt: it may run there.
    SubmitUnknown,
}

/// Why a job expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpiryCause {
    /// Its deadline or lifetime passed.
    TimeOver,
    /// Its operation outlived what the host granted.
    OperationExpired,
    /// Its doer said so.
    Reported,
}

/// Why a job is unavailable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unavailability {
    /// The lease ended without a heartbeat; a late report of the same attempt may still land.
    LeaseLost,
    /// The executor or the doer said so.
    Reported,
}

/// Why a job is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequeueCause {
    /// The attempt failed and attempts are left.
    AttemptFailed,
    /// The lease ended without a heartbeat and attempts are left.
    LeaseLost,
    /// Nobody knows whether a service took the work; it is asked again under the same key.
    SubmitUnknown,
    /// Someone asked for another attempt of work that is pulled.
    Asked,
}

/// An answer to a waiting job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerKept {
    /// The answer's body.
    pub answer: BodyRef,
}

/// A report that changed nothing but is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaleReport {
    /// The attempt that reported.
    pub attempt_id: AttemptId,
    /// What it said the state was.
    pub state: JobStateName,
    /// When it came. Filled from the fact's own time.
    #[serde(default)]
    pub at: Timestamp,
    /// What it said of its result.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub details: Details,
}
