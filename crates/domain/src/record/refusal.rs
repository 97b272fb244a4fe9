//! Why something may not happen. Each refusal has a stable code that callers may rely on.

use thiserror::Error;

use crate::Timestamp;
use crate::job::JobStateName;

/// The domain said no; nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// There is no such record.
    #[error("there is no such record")]
    UnknownRecord,
    /// The id is in no form that names a record.
    #[error("the id names no kind of record: {}", crate::record::id_forms())]
    UnknownIdForm,
    /// The command is for another kind of record.
    #[error("the command is for another kind of record")]
    WrongRecordKind,
    /// The record is there already.
    #[error("a record with this id exists already")]
    AlreadyExists,
    /// A text is not JSON.
    #[error("the text is not valid JSON")]
    InvalidJson,
    /// A key stands twice in one object.
    #[error("a key stands twice in one JSON object")]
    DuplicateKey,
    /// A text holds the character U+0000.
    #[error("a text holds the character U+0000, which cannot be stored")]
    NulInJson,
    /// A value is over its limit.
    #[error("{what} is over its limit of {limit}")]
    TooLarge {
        /// Which value.
        what: &'static str,
        /// The limit, in characters, bytes or items.
        limit: usize,
    },
    /// A body stands where another belongs.
    #[error("a body named {given} stands where the {expected} belongs")]
    WrongBody {
        /// What belongs there.
        expected: &'static str,
        /// What stands there.
        given: &'static str,
    },
    /// Only whoever has taken the record may order this.
    #[error("only whoever has taken the record may order this; take its claim first")]
    ClaimRequired,
    /// An earlier request to the service is open.
    #[error("an earlier request to the service is open; ask again under its key")]
    SubmitOpen,
    /// Nothing of it may run outside.
    #[error("nothing of this operation may still run outside; there is nothing to settle")]
    NotOrphaned,
    /// A policy asks for the impossible.
    #[error("the policy field {field} is outside what the host allows")]
    InvalidPolicy {
        /// Which field.
        field: &'static str,
    },
    /// The deadline has passed already.
    #[error("the deadline has passed already")]
    DeadlineElapsed,
    /// It is too early.
    #[error("not due before {due_at:?}")]
    NotDue {
        /// When it may happen.
        due_at: Timestamp,
    },
    /// The state has no move to the one asked for.
    #[error("a {from} job cannot become {to}")]
    TransitionRefused {
        /// The state that it is in.
        from: JobStateName,
        /// The state asked for.
        to: JobStateName,
    },
    /// The job is over, and its state stays.
    #[error("the job is already {state}; a terminal state cannot be changed")]
    Terminal {
        /// The state that stays.
        state: JobStateName,
    },
    /// The job is not over yet.
    #[error("the job is {state}, not over yet")]
    NotTerminal {
        /// The state that it is in.
        state: JobStateName,
    },
    /// An attempt holds the job.
    #[error("an attempt holds the job, which is {state}")]
    LeaseHeld {
        /// The state that it is in.
        state: JobStateName,
    },
    /// A job in this state cannot be run.
    #[error("a job cannot be run from state {state}")]
    NotRunnable {
        /// The state that it is in.
        state: JobStateName,
    },
    /// The operator leaves events of this type to those who claim them.
    #[error("events of this type are settled by whoever claims them, and not by the router")]
    SettledByClaimants,
    /// The job waits for someone who pulls it.
    #[error(
        "the job waits for a worker to pull it, and nobody can be told to do it now: start a worker that pulls it, or report it with PATCH"
    )]
    WaitsForPuller,
    /// A job in this state cannot be retried.
    #[error("a job cannot be retried from state {state}")]
    NotRetryable {
        /// The state that it is in.
        state: JobStateName,
    },
    /// What it was asked to do was deleted on request.
    #[error("what the job was asked to do was deleted by a purge; create a new job")]
    Purged,
    /// A dispatched job is reported on only with its attempt's id.
    #[error("attempt_id is required for reports on a dispatched job")]
    AttemptRequired,
    /// The attempt is not the current one.
    #[error("stale attempt_id: another attempt is current, or none")]
    StaleAttempt,
    /// The attempt was handed to someone else.
    #[error(
        "the attempt was not handed to you: only its worker reports on it; what the daemon runs itself takes no report"
    )]
    AttemptNotYours,
    /// It waits for an answer, and no report takes its place.
    #[error("the job waits for an answer; only an answer ends the wait")]
    AnswerRequired,
    /// Someone asked to cancel it.
    #[error("a cancel is pending")]
    CancelPending,
    /// Someone asked to cancel it, and it is over.
    #[error("someone asked to cancel this job, and it is not begun again; create a new job")]
    CancelRequested,
    /// Nobody asked to cancel it.
    #[error("no cancel is pending")]
    NoCancelPending,
    /// It waits for no answer.
    #[error("the job is {state} and waits for no answer")]
    NotAwaitingInput {
        /// The state that it is in.
        state: JobStateName,
    },
    /// The operation cannot be cancelled.
    #[error("the operation cannot be cancelled: {reason}")]
    NotCancelable {
        /// Why not, as its executor or the host's policy says.
        reason: String,
    },
    /// The operation is not over yet.
    #[error("the operation is not over yet")]
    OperationOpen,
    /// The event waits for its router.
    #[error("the event is not settled yet")]
    EventOpen,
    /// The event is settled.
    #[error("the event is settled; there is nothing left to do with it")]
    EventSettled,
    /// The run is not over yet.
    #[error("the run is not over yet")]
    RunOpen,
    /// The run of a step has gone on without it.
    #[error("the run has gone on since the step ended; start the pipeline again")]
    StepMovedOn,
    /// Another owner holds the claim.
    #[error("another owner holds the claim")]
    ClaimHeld,
    /// The claim went to another owner.
    #[error("the claim went to another owner; stop and write nothing")]
    ClaimLost,
}

impl Refusal {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::UnknownRecord => "unknown_record",
            Self::UnknownIdForm => "unknown_id_form",
            Self::WrongRecordKind => "wrong_record_kind",
            Self::AlreadyExists => "already_exists",
            Self::InvalidJson => "invalid_json",
            Self::DuplicateKey => "duplicate_key",
            Self::NulInJson => "nul_in_json",
            Self::TooLarge { .. } => "too_large",
            Self::WrongBody { .. } => "wrong_body",
            Self::ClaimRequired => "claim_required",
            Self::SubmitOpen => "submit_open",
            Self::NotOrphaned => "not_orphaned",
            Self::InvalidPolicy { .. } => "invalid_policy",
            Self::DeadlineElapsed => "deadline_elapsed",
            Self::NotDue { .. } => "not_due",
            Self::TransitionRefused { .. } => "transition_refused",
            Self::Terminal { .. } => "terminal",
            Self::NotTerminal { .. } => "not_terminal",
            Self::LeaseHeld { .. } => "lease_held",
            Self::NotRunnable { .. } => "not_runnable",
            Self::SettledByClaimants => "settled_by_claimants",
            Self::WaitsForPuller => "waits_for_puller",
            Self::NotRetryable { .. } => "not_retryable",
            Self::Purged => "purged",
            Self::AttemptRequired => "attempt_required",
            Self::StaleAttempt => "stale_attempt",
            Self::AttemptNotYours => "attempt_not_yours",
            Self::AnswerRequired => "answer_required",
            Self::CancelPending => "cancel_pending",
            Self::CancelRequested => "cancel_requested",
            Self::NoCancelPending => "no_cancel_pending",
            Self::NotAwaitingInput { .. } => "not_awaiting_input",
            Self::NotCancelable { .. } => "not_cancelable",
            Self::OperationOpen => "operation_open",
            Self::EventOpen => "event_open",
            Self::EventSettled => "event_settled",
            Self::RunOpen => "run_open",
            Self::StepMovedOn => "step_moved_on",
            Self::ClaimHeld => "claim_held",
            Self::ClaimLost => "claim_lost",
        }
    }
}
