//! Reports: where an executor, or the doer of unmanaged work, says a job is.
//!
//! The order of the checks is part of the contract: limits, then the fence, then the state. A report of an attempt
//! that is not current is refused and kept as evidence, up to a limit.

use super::command::Report;
use super::decide::{dispatch, submit};
use super::details::Details;
use super::ends;
use super::fact::{CancelCause, Conclusion, ExpiryCause, JobFact, StaleReport, Unavailability};
use super::holder::Reporter;
use super::phase::{Ended, Held, Phase, Waiting};
use super::state::{Job, JobState, JobStateName};
use crate::limits::{KEPT_EVIDENCE, MAX_ID_BYTES, check_optional};
use crate::planted::{Bug, planted};
use crate::{AttemptId, Decision, Refusal, Timestamp};

pub(super) fn decide(job: &Job, report: &Report, now: Timestamp) -> Decision<JobFact> {
    let attempt_id = report.attempt_id.as_ref().map(AttemptId::as_str);
    let checked =
        check_optional("attempt_id", attempt_id, MAX_ID_BYTES).and_then(|()| report.details.check());
    if let Err(refusal) = checked {
        return refusal.into();
    }
    match fence(job, report) {
        Ok(()) => {}
        Err(refusal @ Refusal::StaleAttempt) => return refuse(job, report, refusal),
        Err(refusal) => return refusal.into(),
    }
    if job.purged_at.is_some() && report.details.bodies().next().is_some() {
        // Nobody would expect it to be kept again.
        return Refusal::Purged.into();
    }
    if report.state == job.state.name() {
        return same_state(job, report);
    }
    match arrival(job, report, now) {
        // The hand-over itself says nothing; what came with it is a note.
        Some(JobFact::Delivered) if may_become(job, report.state) && !report.details.is_empty() => {
            Decision::facts([JobFact::Delivered, JobFact::Noted(report.details.clone())])
        }
        Some(end) if may_become(job, report.state) && report.state.is_terminal() => {
            submit::closing(job, end, report.submit)
        }
        Some(fact) if may_become(job, report.state) => Decision::fact(fact),
        Some(_) | None if job.state.name().is_terminal() => {
            refuse(job, report, Refusal::Terminal { state: job.state.name() })
        }
        Some(_) | None => ends::no_move(job, report.state).into(),
    }
}

/// A dispatched job is fenced for ever, and only the holder of its attempt reports on it. A job that never was dispatched and that
/// no executor is to do is open to its worker without an attempt id.
fn fence(job: &Job, report: &Report) -> Result<(), Refusal> {
    match (job.last_attempt(), &report.attempt_id) {
        (None, None) if job.spec.executor.is_some() && report.by != Reporter::Daemon => {
            Err(Refusal::AttemptNotYours)
        }
        (None, None) => Ok(()),
        (Some(_), None) => Err(Refusal::AttemptRequired),
        (_, Some(attempt_id)) => ends::handed_to(job, attempt_id, &report.by)
            .and_then(|()| ends::current(job, attempt_id))
            .and_then(|()| gate(job, report)),
    }
}

/// Work that waits for an answer goes on only when someone who may give it has given it. Its worker may add notes, and confirm that
/// it has stopped when it was asked to.
fn gate(job: &Job, report: &Report) -> Result<(), Refusal> {
    let confirms_cancel = report.state == JobStateName::Cancelled && job.cancel.is_some();
    let stays = report.state == JobStateName::AwaitingInput;
    let is_passed = stays || confirms_cancel || planted(Bug::GatePassedByReport);
    match job.state.phase() {
        Phase::Waiting(Waiting::Input) if !is_passed => Err(Refusal::AnswerRequired),
        Phase::Waiting(_) | Phase::Queued { .. } | Phase::Held(_) | Phase::Ended(_) => Ok(()),
    }
}

/// Stale reports beyond those that are kept one by one are counted, whatever the job's state.
pub(super) fn count_stale(job: &Job, count: u32) -> Decision<JobFact> {
    if count == 0 || job.stale_reports == u32::MAX || planted(Bug::StaleReportNotCounted) {
        return Decision::Nothing;
    }
    Decision::fact(JobFact::StaleReportsCounted { count })
}

impl Job {
    /// Whether a refused report of this attempt is counted if it left no evidence: the attempt is one of this job's.
    pub fn counts_stale_report(&self, attempt_id: &AttemptId) -> bool {
        is_kept(self, attempt_id)
    }
}

fn refuse(job: &Job, report: &Report, refusal: Refusal) -> Decision<JobFact> {
    let evidence = report
        .attempt_id
        .as_ref()
        .and_then(|attempt_id| evidence(job, attempt_id, report.state, &report.details));
    Decision::Refused { refusal, evidence, consequences: Vec::new() }
}

/// What the record keeps of a report that came too late: only of attempts of this job, and only so many.
pub(super) fn evidence(
    job: &Job,
    attempt_id: &AttemptId,
    state: JobStateName,
    details: &Details,
) -> Option<JobFact> {
    let ours = is_kept(job, attempt_id);
    (ours && job.evidence.len() < KEPT_EVIDENCE).then(|| {
        JobFact::StaleReportKept(StaleReport {
            attempt_id: attempt_id.clone(),
            state,
            at: Timestamp::default(),
            details: if job.purged_at.is_some() { Details::default() } else { details.clone() },
        })
    })
}

/// Whether an attempt is one of this job's, as far as the record remembers.
pub(super) fn may_be_ours(job: &Job, attempt_id: &AttemptId) -> bool {
    let some_are_forgotten = usize::try_from(job.attempt_count).is_ok_and(|count| count > job.attempts.len());
    is_kept(job, attempt_id) || some_are_forgotten
}

fn is_kept(job: &Job, attempt_id: &AttemptId) -> bool {
    job.attempts.iter().any(|attempt| attempt.id == *attempt_id)
}

/// The same state again, terminal or not, adds notes and bounded metadata. What is over keeps the result that it has.
fn same_state(job: &Job, report: &Report) -> Decision<JobFact> {
    let is_over = job.state.name().is_terminal();
    if is_over && job.result.is_contradicted_by(&report.details.result) {
        return refuse(job, report, Refusal::Terminal { state: job.state.name() });
    }
    let release = report.details.release;
    let rest = Details { release: None, ..report.details.clone() };
    let says_nothing_else = Details { result: job.result.clone(), ..Details::default() } == rest && is_over;
    // Reason and phase are those of the newest report: while the job goes on, one without them takes them away.
    let clears = !is_over && (job.phase.is_some() || has_reported_reason(job));
    let has_any = job.phase.is_some() || job.state_reason.is_some();
    let only_clears = is_over && rest.only_clears();
    if rest.is_empty() && !clears || says_nothing_else || only_clears && !has_any {
        return match (release, &report.attempt_id) {
            (Some(release), Some(attempt_id)) => dispatch::record_release(job, attempt_id, release),
            (Some(_) | None, _) => Decision::Nothing,
        };
    }
    Decision::fact(JobFact::Noted(report.details.clone()))
}

/// Whether the reason is one that a report gave. The daemon gives its own when it moves a job itself, and while a cancel is pending.
fn has_reported_reason(job: &Job) -> bool {
    let is_reported = matches!(job.state, JobState::Running | JobState::AwaitingInput | JobState::Blocked);
    is_reported && job.cancel.is_none() && !job.resume_pending && job.state_reason.is_some()
}

/// The moves that a report may make, from every state.
fn may_become(job: &Job, to: JobStateName) -> bool {
    use JobStateName as To;
    let managed = job.last_attempt().is_some();
    let an_end = to.is_terminal();
    let a_pause = matches!(to, To::AwaitingInput | To::Blocked);
    match job.state.phase() {
        Phase::Queued { .. } => !managed && (to == To::Running || a_pause || an_end),
        Phase::Held(Held::Dispatching) => matches!(
            to,
            To::Delivered
                | To::Running
                | To::AwaitingInput
                | To::Completed
                | To::Failed
                | To::Unavailable
                | To::Cancelled
        ),
        Phase::Held(Held::Delivered) => {
            to == To::Running || a_pause || matches!(to, To::Completed | To::Failed | To::Cancelled)
        }
        Phase::Held(Held::Running) if managed => {
            a_pause || matches!(to, To::Completed | To::Failed | To::Cancelled)
        }
        Phase::Held(Held::Running) => a_pause || an_end,
        Phase::Waiting(Waiting::Input | Waiting::Blocked) => to == To::Running || a_pause || an_end,
        // What goes on outside is reported on by its operation.
        Phase::Waiting(Waiting::External { .. }) => false,
        // The documented repair: the attempt that lost its lease has finished after all.
        Phase::Ended(Ended::Unavailable { lease_lost: true }) => matches!(to, To::Completed | To::Failed),
        Phase::Ended(Ended::Failed) if planted(Bug::LateReportReplacesFailure) => to == To::Completed,
        Phase::Ended(_) => false,
    }
}

/// The fact that puts a job into the reported state; three states are never reached by a report.
fn arrival(job: &Job, report: &Report, now: Timestamp) -> Option<JobFact> {
    let details = report.details.clone();
    Some(match report.state {
        JobStateName::Running => JobFact::Started(details),
        JobStateName::AwaitingInput => JobFact::InputAwaited(details),
        JobStateName::Blocked => JobFact::Blocked(details),
        JobStateName::Completed => JobFact::Completed(details),
        JobStateName::Failed => match job.state.phase() {
            Phase::Held(_) => ends::failed_or_requeued(job, details, report.retryable, report.jitter, now),
            // Nobody tries again by itself what waits for a person or is over already.
            Phase::Queued { .. } | Phase::Waiting(_) | Phase::Ended(_) => JobFact::Failed(details),
        },
        JobStateName::Cancelled => JobFact::Cancelled(Conclusion { cause: CancelCause::Confirmed, details }),
        JobStateName::Expired => JobFact::Expired(Conclusion { cause: ExpiryCause::Reported, details }),
        JobStateName::Unavailable => {
            JobFact::BecameUnavailable(Conclusion { cause: Unavailability::Reported, details })
        }
        JobStateName::Delivered => JobFact::Delivered,
        JobStateName::Queued | JobStateName::Dispatching | JobStateName::AwaitingExternal => return None,
    })
}
