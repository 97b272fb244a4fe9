//! Cancel: a request first; terminal only when confirmed, or when its time is over.

use crate::job::CANCEL_LIMIT_SECONDS;
use crate::job::cancel::CancelAnswer;
use crate::job::ends::{self, cancelled};
use crate::job::fact::{CancelCause, JobFact};
use crate::job::state::{Job, JobState};
use crate::limits::{MAX_LABEL_BYTES, MAX_NOTE_BYTES, check_optional, check_text};
use crate::operation::{CancelOrigin, OperationCommand};
use crate::planted::{Bug, planted};
use crate::{AttemptId, Decision, Refusal, Timestamp};

pub(super) fn request_cancel(job: &Job, by: Option<&str>, reason: &str, now: Timestamp) -> Decision<JobFact> {
    if let Err(refusal) = check_text("cancel reason", reason, MAX_NOTE_BYTES)
        .and_then(|()| check_optional("cancel requester", by, MAX_LABEL_BYTES))
    {
        return refusal.into();
    }
    let requested = JobFact::CancelRequested {
        by: by.map(str::to_owned),
        reason: reason.to_owned(),
        limit_at: now.plus_seconds(CANCEL_LIMIT_SECONDS),
    };
    match &job.state {
        JobState::Queued { .. } if job.intent.is_none() => {
            Decision::facts([requested, cancelled(CancelCause::NeverStarted)])
        }
        // What it waited for has come, and nobody has it yet.
        JobState::Running if job.goes_on_with_another() => {
            Decision::facts([requested, cancelled(CancelCause::Confirmed)])
        }
        // A service may have it since the last attempt: only the orphan ledger can say so.
        JobState::Queued { .. } => {
            let mut decision =
                ends::abandoning(job, cancelled(CancelCause::SubmitUnknown), "cancel_unconfirmed");
            if let Decision::Facts { facts, .. } = &mut decision {
                facts.insert(0, requested);
            }
            decision
        }
        JobState::Completed
        | JobState::Failed
        | JobState::Cancelled
        | JobState::Expired
        | JobState::Unavailable { .. }
            if planted(Bug::CancelOverwritesTerminal) =>
        {
            Decision::fact(cancelled(CancelCause::Confirmed))
        }
        JobState::Dispatching
        | JobState::Delivered
        | JobState::Running
        | JobState::AwaitingInput
        | JobState::AwaitingExternal { .. }
        | JobState::Blocked
            if job.cancel.is_some() =>
        {
            Decision::Nothing
        }
        JobState::Dispatching
        | JobState::Delivered
        | JobState::Running
        | JobState::AwaitingInput
        | JobState::Blocked => Decision::fact(requested),
        JobState::AwaitingExternal { .. } if planted(Bug::CancelNotPassedOn) => Decision::fact(requested),
        JobState::AwaitingExternal { operation, .. } => Decision::fact(requested).then(
            operation.clone(),
            OperationCommand::RequestCancel {
                by: by.map(str::to_owned),
                reason: reason.to_owned(),
                origin: CancelOrigin::ParentJob,
            },
        ),
        // A late cancel changes nothing and gets the same answer every time.
        JobState::Completed
        | JobState::Failed
        | JobState::Cancelled
        | JobState::Expired
        | JobState::Unavailable { .. } => Decision::Nothing,
    }
}

pub(super) fn record_cancel_answer(
    job: &Job,
    attempt_id: &AttemptId,
    answer: &CancelAnswer,
) -> Decision<JobFact> {
    if let Err(refusal) = answer.check().and_then(|()| ends::current(job, attempt_id)) {
        return refusal.into();
    }
    match job.state {
        JobState::Dispatching
        | JobState::Delivered
        | JobState::Running
        | JobState::AwaitingInput
        | JobState::AwaitingExternal { .. }
        | JobState::Blocked => match (answer, job.cancel.is_some()) {
            (_, false) => Refusal::NoCancelPending.into(),
            (CancelAnswer::Cancelled, true) => {
                ends::abandoning(job, cancelled(CancelCause::Confirmed), "cancelled")
            }
            (CancelAnswer::Accepted | CancelAnswer::Refused(_) | CancelAnswer::Unreachable, true) => {
                Decision::fact(JobFact::CancelAnswered(answer.clone()))
            }
        },
        JobState::Queued { .. } => Refusal::NoCancelPending.into(),
        JobState::Completed
        | JobState::Failed
        | JobState::Cancelled
        | JobState::Expired
        | JobState::Unavailable { .. } => Decision::Nothing,
    }
}

pub(super) fn time_out_cancel(job: &Job, now: Timestamp) -> Decision<JobFact> {
    match job.state {
        JobState::Dispatching
        | JobState::Delivered
        | JobState::Running
        | JobState::AwaitingInput
        | JobState::AwaitingExternal { .. }
        | JobState::Blocked => match &job.cancel {
            None => Refusal::NoCancelPending.into(),
            Some(cancel) if now < cancel.limit_at && !planted(Bug::CancelTimedOutEarly) => {
                Refusal::NotDue { due_at: cancel.limit_at }.into()
            }
            Some(_) => ends::abandoning(job, cancelled(CancelCause::TimedOut), "cancel_unconfirmed"),
        },
        JobState::Queued { .. } => Refusal::NoCancelPending.into(),
        JobState::Completed
        | JobState::Failed
        | JobState::Cancelled
        | JobState::Expired
        | JobState::Unavailable { .. } => Decision::Nothing,
    }
}
