//! What may be ordered of a job.

use super::attempt::{Release, Trigger};
use super::cancel::{CancelAnswer, CancelTry};
use super::details::{Details, ResultRefs};
use super::holder::{Holder, Reporter};
use super::intent::Intent;
use super::spec::NewJob;
use super::state::{AfterExternal, JobStateName};
use crate::body::BodyRef;
use crate::operation::{NewOperation, PollError};
use crate::{AttemptId, Jitter, OperationId, OwnerId, Timestamp};

/// An order to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobCommand {
    /// Accept it.
    Create(Box<NewJob>),
    /// Take it for a new attempt.
    Dispatch(Dispatch),
    /// Another attempt of pulled work was asked for: it goes back to those who pull, whatever its due time.
    QueueAgain {
        /// What was asked.
        trigger: Trigger,
    },
    /// Call its executor again within the current attempt, with what has come in.
    Resume {
        /// The attempt that goes on.
        attempt_id: AttemptId,
    },
    /// The executor has it, and will report.
    Deliver {
        /// The current attempt.
        attempt_id: AttemptId,
    },
    /// The executor is alive; the first one starts delivered work.
    Heartbeat {
        /// The current attempt.
        attempt_id: AttemptId,
        /// Who is alive.
        by: Reporter,
    },
    /// The executor, or the doer of unmanaged work, says where it is.
    Report(Box<Report>),
    /// The executor is about to give the work to a service.
    IntendSubmit {
        /// The current attempt.
        attempt_id: AttemptId,
        /// What it is about to do.
        intent: Box<Intent>,
    },
    /// The executor gave the work to a service, and nobody knows whether it arrived.
    LoseSubmit {
        /// The current attempt.
        attempt_id: AttemptId,
        /// What there is to say of it.
        details: Box<Details>,
        /// Before when another attempt is not wanted, if whoever should do it has said so.
        not_before: Option<Timestamp>,
        /// For the wait before another attempt.
        jitter: Jitter,
    },
    /// The executor left the work outside, under a handle.
    Defer {
        /// The current attempt.
        attempt_id: AttemptId,
        /// The id of the operation that follows it.
        operation_id: OperationId,
        /// The operation.
        operation: Box<NewOperation>,
        /// What its result means.
        then: AfterExternal,
        /// Who has left it there.
        left_by: LeftBy,
    },
    /// The operation that it waits for is over.
    ConcludeOperation {
        /// Which operation.
        operation_id: OperationId,
        /// How it ended.
        ending: OperationEnding,
        /// For the wait before another attempt.
        jitter: Jitter,
    },
    /// Somebody answered what it waits for.
    Answer {
        /// The answer.
        answer: BodyRef,
    },
    /// Hold it while it is queued: nothing begins it.
    Pause {
        /// Who asks.
        by: Option<String>,
        /// Why.
        reason: Option<String>,
    },
    /// End the pause.
    Unpause {
        /// Who asks.
        by: Option<String>,
        /// Why.
        reason: Option<String>,
    },
    /// Stop it.
    RequestCancel {
        /// Who asks.
        by: Option<String>,
        /// Why.
        reason: String,
    },
    /// Stop it, if it can be stopped: work that cannot be is refused with the reason.
    CancelOrRefuse {
        /// Who asks.
        by: Option<String>,
        /// Why.
        reason: String,
    },
    /// The cancel was passed on to whoever does the work, or could not be.
    RecordCancelTry {
        /// The attempt whose work it is.
        attempt_id: AttemptId,
        /// What came of it.
        tried: CancelTry,
    },
    /// It was asked to stop so many more times than are kept one by one.
    CountCancelRepeats {
        /// How often since the count before.
        count: u32,
    },
    /// The executor of the current attempt answered the cancel.
    RecordCancelAnswer {
        /// The current attempt.
        attempt_id: AttemptId,
        /// What it answered.
        answer: CancelAnswer,
        /// What was seen to become of it.
        release: Option<Release>,
    },
    /// It was seen what became of the executor of an attempt that others had ended.
    RecordRelease {
        /// Which attempt.
        attempt_id: AttemptId,
        /// What became of it.
        release: Release,
    },
    /// The time for confirming a cancel is over.
    TimeOutCancel,
    /// Its owner's lease ended without a heartbeat. Only whoever took the claim over may say so.
    LoseLease {
        /// The attempt whose lease it was.
        attempt_id: AttemptId,
        /// For the wait before another attempt.
        jitter: Jitter,
        /// Who was lost, for people.
        error: Option<BodyRef>,
    },
    /// Someone outside has taken longer with it than an attempt may. Only whoever took the claim over may say so.
    TimeOutAttempt {
        /// The attempt whose time it was.
        attempt_id: AttemptId,
        /// For the wait before another attempt.
        jitter: Jitter,
    },
    /// So many more stale reports came than are kept one by one.
    CountStaleReports {
        /// How many since the count before.
        count: u32,
    },
    /// Its deadline or lifetime is over.
    Expire,
    /// Its bodies were deleted on request.
    Purge,
    /// Move what measures passed time: store time has jumped by a step of the clock.
    MoveTimers {
        /// By so many microseconds; negative if time went back.
        by_micros: i64,
    },
    /// It was kept long enough.
    Retire,
}

impl JobCommand {
    /// Whether only whoever has taken the claim may order it: else two runners could begin the same job, or one could take a
    /// live attempt for lost.
    pub const fn needs_claim(&self) -> bool {
        match self {
            Self::Dispatch(Dispatch { trigger: Trigger::Automatic, .. })
            | Self::LoseLease { .. }
            | Self::TimeOutAttempt { .. }
            | Self::Resume { .. } => true,
            Self::Dispatch(Dispatch {
                trigger: Trigger::Run | Trigger::Retry | Trigger::Continued, ..
            })
            | Self::Create(_)
            | Self::QueueAgain { .. }
            | Self::Deliver { .. }
            | Self::Heartbeat { .. }
            | Self::Report(_)
            | Self::IntendSubmit { .. }
            | Self::LoseSubmit { .. }
            | Self::Defer { .. }
            | Self::ConcludeOperation { .. }
            | Self::Answer { .. }
            | Self::Pause { .. }
            | Self::Unpause { .. }
            | Self::RequestCancel { .. }
            | Self::CancelOrRefuse { .. }
            | Self::RecordCancelTry { .. }
            | Self::CountCancelRepeats { .. }
            | Self::RecordCancelAnswer { .. }
            | Self::RecordRelease { .. }
            | Self::TimeOutCancel
            | Self::CountStaleReports { .. }
            | Self::Expire
            | Self::Purge
            | Self::MoveTimers { .. }
            | Self::Retire => false,
        }
    }
}

/// Who has left work outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeftBy {
    /// An executor of ours, which can do nothing more about it.
    Executor,
    /// Whoever pulled the job: it is told that nobody waits for the work, and has the work still.
    Doer(Reporter),
}

impl LeftBy {
    /// Who says so.
    pub(super) const fn reporter(&self) -> &Reporter {
        match self {
            Self::Executor => &Reporter::Daemon,
            Self::Doer(reporter) => reporter,
        }
    }
}

/// Takes a job for a new attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// The id of the new attempt.
    pub attempt_id: AttemptId,
    /// Who takes it.
    pub owner: OwnerId,
    /// To whom it is handed.
    pub holder: Holder,
    /// What made it.
    pub trigger: Trigger,
}

/// Where an executor says the job is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The attempt that it is about; none for unmanaged work.
    pub attempt_id: Option<AttemptId>,
    /// Who reports.
    pub by: Reporter,
    /// The state reported; the current one only adds notes.
    pub state: JobStateName,
    /// The rest.
    pub details: Details,
    /// Whether a failure may be tried again.
    pub retryable: Retryable,
    /// For the wait before another attempt.
    pub jitter: Jitter,
    /// What it says of the request that the attempt was about to make to a service, if an intent is open.
    pub submit: SubmitWord,
}

/// What whoever ends an attempt knows of a request that may have reached a service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SubmitWord {
    /// Nothing: the service may have it.
    #[default]
    Unsaid,
    /// Nothing goes on there because of it: whoever made the request has its answer.
    Settled,
}

/// Whether a failure may be tried again by the job's policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retryable {
    /// If attempts are left.
    Yes,
    /// If attempts are left, and not before this time: whoever should do it has said so.
    NotBefore(Timestamp),
    /// The executor says that it is of no use.
    No,
}

/// How an operation ended, as its job needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperationEnding {
    /// With a result.
    Completed(ResultRefs),
    /// Without.
    Failed {
        /// Why, short.
        reason: String,
        /// The error object and the rest.
        result: ResultRefs,
        /// Whether another attempt may help.
        retryable: Retryable,
    },
    /// Nobody asks about it any more, and nobody has seen it end.
    GivenUp {
        /// Why, short.
        reason: String,
        /// The error object and the rest.
        result: ResultRefs,
    },
    /// Its own time budget ran out; whether its operator wants it submitted again.
    TimedOut(Retryable),
    /// It was stopped.
    Cancelled,
    /// The life that the host granted is over.
    Expired {
        /// What the last poll failed with, if it did.
        last_error: Option<PollError>,
    },
    /// The service does not know it.
    Unknown,
}
