//! Why something may not happen. Each refusal has a stable code that callers may rely on.

use thiserror::Error;

use crate::Timestamp;
use crate::job::JobStateName;

/// One entry per refusal: its sentence for people, what it names, and its stable code.
macro_rules! refusals {
    ($($(#[$meta:meta])* $Refusal:ident $({ $($named:tt)* })? = $code:literal,)+) => {
        /// The domain said no; nothing changed.
        #[derive(Clone, Debug, PartialEq, Eq, Error)]
        pub enum Refusal {
            $($(#[$meta])* $Refusal $({ $($named)* })?,)+
        }

        impl Refusal {
            /// Every stable code.
            pub const CODES: &[&str] = &[$($code),+];

            /// The stable code.
            pub const fn code(&self) -> &'static str {
                match self {
                    $(Self::$Refusal { .. } => $code,)+
                }
            }
        }
    };
}

refusals! {
    /// There is no such record.
    #[error("there is no such record")]
    UnknownRecord = "unknown_record",
    /// The id is in no form that names a record.
    #[error("the id names no kind of record: {}", crate::record::id_forms())]
    UnknownIdForm = "unknown_id_form",
    /// The command is for another kind of record.
    #[error("the command is for another kind of record")]
    WrongRecordKind = "wrong_record_kind",
    /// The record is there already.
    #[error("a record with this id exists already")]
    AlreadyExists = "already_exists",
    /// A text is not JSON.
    #[error("the text is not valid JSON")]
    InvalidJson = "invalid_json",
    /// A key stands twice in one object.
    #[error("a key stands twice in one JSON object")]
    DuplicateKey = "duplicate_key",
    /// A text holds the character U+0000.
    #[error("a text holds the character U+0000, which cannot be stored")]
    NulInJson = "nul_in_json",
    /// A value is over its limit.
    #[error("{what} is over its limit of {limit}")]
    TooLarge {
        /// Which value.
        what: &'static str,
        /// The limit, in characters, bytes or items.
        limit: usize,
    } = "too_large",
    /// A body stands where another belongs.
    #[error("a body named {given} stands where the {expected} belongs")]
    WrongBody {
        /// What belongs there.
        expected: &'static str,
        /// What stands there.
        given: &'static str,
    } = "wrong_body",
    /// Someone has paused the job.
    #[error("the job is paused; resume it first")]
    Paused = "paused",
    /// Only a queued job can be paused.
    #[error("a {state} job cannot be paused; only a queued one can")]
    NotPausable {
        /// The state that it is in.
        state: JobStateName,
    } = "not_pausable",
    /// Only whoever has taken the record may order this.
    #[error("only whoever has taken the record may order this; take its claim first")]
    ClaimRequired = "claim_required",
    /// An earlier request to the service is open.
    #[error("an earlier request to the service is open; ask again under its key")]
    SubmitOpen = "submit_open",
    /// Nothing of it may run outside.
    #[error("nothing of this operation may still run outside; there is nothing to settle")]
    NotOrphaned = "not_orphaned",
    /// A policy asks for the impossible.
    #[error("the policy field {field} is outside what the host allows")]
    InvalidPolicy {
        /// Which field.
        field: &'static str,
    } = "invalid_policy",
    /// The deadline has passed already.
    #[error("the deadline has passed already")]
    DeadlineElapsed = "deadline_elapsed",
    /// It is too early.
    #[error("not due before {due_at:?}")]
    NotDue {
        /// When it may happen.
        due_at: Timestamp,
    } = "not_due",
    /// The state has no move to the one asked for.
    #[error("a {from} job cannot become {to}")]
    TransitionRefused {
        /// The state that it is in.
        from: JobStateName,
        /// The state asked for.
        to: JobStateName,
    } = "transition_refused",
    /// The job is over, and its state stays.
    #[error("the job is already {state}; a terminal state cannot be changed")]
    Terminal {
        /// The state that stays.
        state: JobStateName,
    } = "terminal",
    /// The job is not over yet.
    #[error("the job is {state}, not over yet")]
    NotTerminal {
        /// The state that it is in.
        state: JobStateName,
    } = "not_terminal",
    /// An attempt holds the job.
    #[error("an attempt holds the job, which is {state}")]
    LeaseHeld {
        /// The state that it is in.
        state: JobStateName,
    } = "lease_held",
    /// A job in this state cannot be run.
    #[error("a job cannot be run from state {state}")]
    NotRunnable {
        /// The state that it is in.
        state: JobStateName,
    } = "not_runnable",
    /// The operator leaves events of this type to those who claim them.
    #[error("events of this type are settled by whoever claims them, and not by the router")]
    SettledByClaimants = "settled_by_claimants",
    /// The job waits for someone who pulls it.
    #[error(
        "the job waits for a worker to pull it, and nobody can be told to do it now: start a worker that pulls it, or report it with PATCH"
    )]
    WaitsForPuller = "waits_for_puller",
    /// A job in this state cannot be retried.
    #[error("a job cannot be retried from state {state}")]
    NotRetryable {
        /// The state that it is in.
        state: JobStateName,
    } = "not_retryable",
    /// What it was asked to do was deleted on request.
    #[error("what the job was asked to do was deleted by a purge; create a new job")]
    Purged = "purged",
    /// A dispatched job is reported on only with its attempt's id.
    #[error("attempt_id is required for reports on a dispatched job")]
    AttemptRequired = "attempt_required",
    /// The attempt is not the current one.
    #[error("stale attempt_id: another attempt is current, or none")]
    StaleAttempt = "stale_attempt",
    /// The attempt was handed to someone else.
    #[error(
        "the attempt was not handed to you: only its worker reports on it; what the daemon runs itself takes no report"
    )]
    AttemptNotYours = "attempt_not_yours",
    /// It waits for an answer, and no report takes its place.
    #[error("the job waits for an answer; only an answer ends the wait")]
    AnswerRequired = "answer_required",
    /// Someone asked to cancel it.
    #[error("a cancel is pending")]
    CancelPending = "cancel_pending",
    /// Someone asked to cancel it, and it is over.
    #[error("someone asked to cancel this job, and it is not begun again; create a new job")]
    CancelRequested = "cancel_requested",
    /// Nobody asked to cancel it.
    #[error("no cancel is pending")]
    NoCancelPending = "no_cancel_pending",
    /// It waits for no answer.
    #[error("the job is {state} and waits for no answer")]
    NotAwaitingInput {
        /// The state that it is in.
        state: JobStateName,
    } = "not_awaiting_input",
    /// The operation cannot be cancelled.
    #[error("the operation cannot be cancelled: {reason}")]
    NotCancelable {
        /// Why not, as its executor or the host's policy says.
        reason: String,
    } = "not_cancelable",
    /// The operation is not over yet.
    #[error("the operation is not over yet")]
    OperationOpen = "operation_open",
    /// The event waits for its router.
    #[error("the event is not settled yet")]
    EventOpen = "event_open",
    /// The event is settled.
    #[error("the event is settled; there is nothing left to do with it")]
    EventSettled = "event_settled",
    /// The run is not over yet.
    #[error("the run is not over yet")]
    RunOpen = "run_open",
    /// The run of a step has gone on without it.
    #[error("the run has gone on since the step ended; start the pipeline again")]
    StepMovedOn = "step_moved_on",
    /// Another owner holds the claim.
    #[error("another owner holds the claim")]
    ClaimHeld = "claim_held",
    /// The claim went to another owner.
    #[error("the claim went to another owner; stop and write nothing")]
    ClaimLost = "claim_lost",
}
