//! Work that goes on outside: how it begins, and what its end means for the job.

use crate::job::attempt::Release;
use crate::job::command::{LeftBy, OperationEnding, Retryable};
use crate::job::details::Details;
use crate::job::ends;
use crate::job::fact::{CancelCause, Conclusion, ExpiryCause, JobFact};
use crate::job::phase::{Phase, Waiting};
use crate::job::report;
use crate::job::state::{AfterExternal, Job, JobStateName};
use crate::operation::{CancelOrigin, NewOperation, OperationCommand, PollError};
use crate::planted::{Bug, planted};
use crate::policy::{KindPolicy, Persistence};
use crate::{AttemptId, Decision, Jitter, OperationId, Refusal, Timestamp};

pub(super) fn defer(
    job: &Job,
    attempt_id: &AttemptId,
    operation_id: &OperationId,
    operation: &NewOperation,
    then: AfterExternal,
    left_by: &LeftBy,
) -> Decision<JobFact> {
    let unwanted = |refusal| match left_by {
        LeftBy::Executor => orphaned(job, attempt_id, operation_id, operation, refusal),
        LeftBy::Doer(_) => {
            let evidence = late_evidence(job, attempt_id);
            Decision::Refused { refusal, evidence, consequences: Vec::new() }
        }
    };
    if let Err(refusal) = ends::handed_to(job, attempt_id, left_by.reporter()) {
        return refusal.into();
    }
    if let Err(refusal) = ends::current(job, attempt_id) {
        return unwanted(refusal);
    }
    match job.state.phase() {
        Phase::Held(_) => {
            let deferred = JobFact::Deferred { operation_id: operation_id.clone(), then };
            // It belongs to this job and this attempt, and the job's own end bounds it, whatever its executor says.
            let limit_at = job.expires_at().filter(|_| !planted(Bug::OperationOutlivesJob));
            let deadline_at = crate::time::earliest(operation.deadline_at, limit_at);
            // What a worker outside has left there goes with no daemon.
            let by_worker = job.last_attempt().is_some_and(|attempt| attempt.owner.outside_name().is_some());
            let persistence = if by_worker { Persistence::Durable } else { operation.policy.persistence };
            let operation = NewOperation {
                job_id: job.id.clone(),
                circle: job.spec.circle.clone(),
                attempt_id: attempt_id.clone(),
                deadline_at,
                policy: KindPolicy { persistence, ..operation.policy.clone() },
                ..operation.clone()
            };
            let accept = OperationCommand::Accept(Box::new(operation));
            let decision = match &job.intent {
                // It asked a service anew, and left open what was asked before.
                Some(open) if open.operation_id != *operation_id => {
                    Decision::fact(deferred).then(open.operation_id.clone(), ends::unknown_outside(job, open))
                }
                Some(_) | None => Decision::fact(deferred),
            };
            let decision = decision.then(operation_id.clone(), accept);
            match &job.cancel {
                None => decision,
                Some(cancel) => decision.then(
                    operation_id.clone(),
                    OperationCommand::RequestCancel {
                        by: cancel.by.clone(),
                        reason: cancel.reason.clone(),
                        origin: CancelOrigin::ParentJob,
                    },
                ),
            }
        }
        Phase::Waiting(Waiting::External { operation, .. }) if operation == operation_id => Decision::Nothing,
        Phase::Queued { .. } | Phase::Waiting(_) | Phase::Ended(_) => {
            unwanted(ends::no_move(job, JobStateName::AwaitingExternal))
        }
    }
}

/// The executor has left work outside, and the job does not wait for it: what may still run there is written down.
fn orphaned(
    job: &Job,
    attempt_id: &AttemptId,
    operation_id: &OperationId,
    operation: &NewOperation,
    refusal: Refusal,
) -> Decision<JobFact> {
    // A later attempt asks for the same work under the same key: it is not lost.
    if job.intent.as_ref().is_some_and(|intent| intent.operation_id == *operation_id) {
        return refusal.into();
    }
    let evidence = late_evidence(job, attempt_id);
    // Reports are kept up to a limit; what may still run outside is always written down.
    if evidence.is_none() && !report::may_be_ours(job, attempt_id) {
        return refusal.into();
    }
    let operation = NewOperation {
        job_id: job.id.clone(),
        circle: job.spec.circle.clone(),
        attempt_id: attempt_id.clone(),
        deadline_at: None,
        ..operation.clone()
    };
    let orphan =
        OperationCommand::AcceptOrphan { operation: Box::new(operation), reason: refusal.code().to_owned() };
    Decision::Refused { refusal, evidence, consequences: Vec::new() }.then(operation_id.clone(), orphan)
}

/// What is kept of the word that work was left outside for which the job does not wait.
fn late_evidence(job: &Job, attempt_id: &AttemptId) -> Option<JobFact> {
    report::evidence(job, attempt_id, JobStateName::AwaitingExternal, &Details::because("deferred"))
}

/// A job that has moved on takes no notice: the operation's own record keeps how it ended.
pub(super) fn conclude_operation(
    job: &Job,
    operation_id: &OperationId,
    ending: &OperationEnding,
    jitter: Jitter,
    now: Timestamp,
) -> Decision<JobFact> {
    let then = match job.state.phase() {
        Phase::Waiting(Waiting::External { operation, then }) if operation == operation_id => then,
        Phase::Waiting(_) | Phase::Queued { .. } | Phase::Held(_) | Phase::Ended(_) => {
            return Decision::Nothing;
        }
    };
    match ending {
        OperationEnding::Completed(result) => {
            let details = Details { result: result.clone(), ..Details::default() };
            Decision::fact(match then {
                AfterExternal::Finish => JobFact::Completed(over_outside(details)),
                // What went on outside is over and nobody goes on: the cancel is confirmed.
                AfterExternal::Resume if job.cancel.is_some() => cancelled_outside(),
                AfterExternal::Resume => JobFact::ExternalArrived(details),
            })
        }
        OperationEnding::Failed { reason, result, retryable } => {
            let details = Details { result: result.clone(), ..Details::because(reason) };
            Decision::fact(ends::failed_or_requeued(job, over_outside(details), *retryable, jitter, now))
        }
        OperationEnding::GivenUp { reason, result } => {
            let details = Details { result: result.clone(), ..Details::because(reason) };
            Decision::fact(ends::failed_or_requeued(job, details, Retryable::No, jitter, now))
        }
        OperationEnding::TimedOut(again) => Decision::fact(ends::failed_or_requeued(
            job,
            over_outside(Details::because("operation_timed_out")),
            *again,
            jitter,
            now,
        )),
        OperationEnding::Unknown => Decision::fact(JobFact::Failed(Details::because("operation_unknown"))),
        OperationEnding::Cancelled if job.cancel.is_some() => Decision::fact(cancelled_outside()),
        OperationEnding::Cancelled => {
            let details = Details::because("operation_cancelled_outside");
            Decision::fact(JobFact::Failed(over_outside(details)))
        }
        OperationEnding::Expired { last_error } => {
            let note = last_error.as_ref().map(PollError::told);
            let details = Details { note, ..Details::default() };
            Decision::fact(JobFact::Expired(Conclusion { cause: ExpiryCause::OperationExpired, details }))
        }
    }
}

/// The service has said that nothing of the work runs there any more.
fn over_outside(details: Details) -> Details {
    Details { release: Some(Release::Ended), ..details }
}

fn cancelled_outside() -> JobFact {
    let details = over_outside(Details::default());
    JobFact::Cancelled(Conclusion { cause: CancelCause::Confirmed, details })
}
