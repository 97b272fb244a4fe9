//! What may happen to an operation: one end, and nothing outside what the host granted.

use domain::job::{Job, JobState};
use domain::operation::{Accepted, Ending, Operation, OperationFact, Polled};
use domain::{Record, RecordId, Timestamp};

use super::{Checker, Stream, Violation, broken, must};
use crate::counters::{Counters, Sometimes};
use crate::heap::SECOND;

/// How late after its life an operation may be given up when nothing goes wrong.
const GRACE: i64 = 30 * SECOND;

impl Checker {
    pub(super) fn operation_fact(
        &self,
        id: &RecordId,
        stream: &mut Stream,
        fact: &OperationFact,
        at: Timestamp,
        counters: &mut Counters,
    ) -> Result<(), Violation> {
        let operation = match (&stream.record, fact) {
            (Some(Record::Operation(operation)), _) => operation,
            (None, OperationFact::Dispatched(accepted)) => return self.accepted(id, accepted, at, counters),
            (None, _) => return broken("I11", || format!("{id} begins with {fact:?}")),
            (Some(_), _) => return broken("I1", || format!("{id} is no operation")),
        };
        match fact {
            OperationFact::Dispatched(_) => broken("I11", || format!("{id} was dispatched twice")),
            OperationFact::Polled(polled) => {
                is_open(id, operation, fact)?;
                stream.polls += 1;
                must(stream.polls <= operation.policy.max_attempts, "I8", || {
                    format!("{id} was polled {} times", stream.polls)
                })?;
                within_bounds(id, operation, polled, at)
            }
            OperationFact::Resolved(ending) => {
                is_open(id, operation, fact)?;
                must(at < operation.expires_at, "I8", || format!("{id} was resolved after its life"))?;
                self.result_is_its_own(id, ending)
            }
            OperationFact::Cancelled => is_open(id, operation, fact),
            OperationFact::Expired { .. } => {
                is_open(id, operation, fact)?;
                self.ends_in_time(id, operation, at)
            }
            OperationFact::CancelRequested { .. } | OperationFact::CancelAnswered { .. } => {
                let reached = operation.ended.is_none() || operation.orphan().is_some();
                must(reached, "I2", || format!("{id} was over, and then {fact:?}"))
            }
            OperationFact::HandleLearned { .. } => {
                must(operation.handle.is_none(), "I2", || format!("{id} had a handle, and then {fact:?}"))
            }
            OperationFact::Settled(_) => {
                must(operation.orphan().is_some(), "I2", || format!("{id} was no orphan, and then {fact:?}"))
            }
            OperationFact::LatePolled(polled) => {
                must(operation.late_poll_at().is_some_and(|due_at| due_at <= at), "I8", || {
                    format!("{id} was asked about after its end and not due, {polled:?}")
                })?;
                let next_fits = polled.next_poll_at.is_none_or(|next| next > at);
                must(next_fits, "I8", || format!("{id} is asked about again at once"))
            }
            OperationFact::Contradicted { .. } => {
                counters.saw(Sometimes::ContradictionRecorded);
                must(operation.ended.is_some(), "I2", || format!("{id} was contradicted while open"))
            }
            OperationFact::TimersMoved { .. } | OperationFact::Purged { .. } | OperationFact::Retired => {
                Ok(())
            }
        }
    }

    fn accepted(
        &self,
        id: &RecordId,
        accepted: &Accepted,
        at: Timestamp,
        counters: &mut Counters,
    ) -> Result<(), Violation> {
        let policy = &self.policy;
        if accepted.handle.is_none() {
            // Nobody knows whether a service has it: it is over at once, and nothing was granted to it.
            counters.saw(Sometimes::SubmitOutcomeUnknown);
            let job = self.record(&accepted.link.job_id.clone().into());
            return must(
                !job.is_some_and(|job| matches!(job, Record::Job(job) if awaits(job, id))),
                "I7",
                || format!("{id} has no handle, and its job waits for it"),
            );
        }
        must(accepted.policy == *policy, "I8", || format!("{id} was granted something else"))?;
        let latest = at.plus_seconds(policy.max_ttl_seconds);
        must(accepted.expires_at > at && accepted.expires_at <= latest, "I8", || {
            format!("{id} may live until {:?}, the host grants {latest:?}", accepted.expires_at)
        })?;
        let job = self.streams.get(&accepted.link.job_id.clone().into());
        let Some((life, Some(Record::Job(job)))) = job.map(|job| (&job.life, &job.record)) else {
            return broken("I7", || format!("{id} belongs to no job"));
        };
        // The job is written first in a step: either it waits for this one, or this one is an orphan and over at once.
        if !awaits(job, id) {
            counters.saw(Sometimes::OrphanWrittenDown);
            return must(
                job.attempts.iter().any(|attempt| attempt.id == accepted.link.attempt_id),
                "I7",
                || format!("{id} belongs to no attempt of its job"),
            );
        }
        must(life.attempt.as_ref() == Some(&accepted.link.attempt_id), "I3", || {
            format!("{id} belongs to an attempt that is not current")
        })?;
        must(job.expires_at().is_none_or(|limit| accepted.expires_at <= limit), "I8", || {
            format!("{id} may outlive its job")
        })?;
        next_poll_fits(id, policy, accepted.next_poll_at, at)?;
        interval_fits(id, policy, accepted.interval_seconds)
    }

    fn result_is_its_own(&self, id: &RecordId, ending: &Ending) -> Result<(), Violation> {
        let Ending::Completed { result } = ending else { return Ok(()) };
        let Some(body) = &result.data else { return Ok(()) };
        let own = self
            .effect_of(body)
            .and_then(|effect| effect.operation.as_ref())
            .is_some_and(|operation| operation.as_str() == id.as_str());
        must(own, "I9", || format!("{id} ended with a result that is not its own"))
    }

    /// When nothing goes wrong any more, an operation is over soon after its life.
    fn ends_in_time(&self, id: &RecordId, operation: &Operation, at: Timestamp) -> Result<(), Violation> {
        let Some(calm_since) = self.calm_since else { return Ok(()) };
        let latest = operation.expires_at.max(calm_since).plus_micros(GRACE);
        must(at <= latest, "I8", || format!("{id} outlived {:?} until {at:?}", operation.expires_at))
    }
}

fn awaits(job: &Job, id: &RecordId) -> bool {
    matches!(&job.state, JobState::AwaitingExternal { operation, .. } if operation.as_str() == id.as_str())
}

fn is_open(id: &RecordId, operation: &Operation, fact: &OperationFact) -> Result<(), Violation> {
    must(operation.ended.is_none(), "I2", || format!("{id} was over, and then {fact:?}"))
}

fn within_bounds(
    id: &RecordId,
    operation: &Operation,
    polled: &Polled,
    at: Timestamp,
) -> Result<(), Violation> {
    let policy = &operation.policy;
    must(at < operation.expires_at, "I8", || format!("{id} was polled after its life"))?;
    must(polled.expires_at.is_none_or(|expires_at| expires_at <= operation.expires_at), "I8", || {
        format!("the life of {id} grew from {:?} to {:?}", operation.expires_at, polled.expires_at)
    })?;
    next_poll_fits(id, policy, polled.next_poll_at, at)?;
    polled.interval_seconds.map_or(Ok(()), |seconds| interval_fits(id, policy, seconds))
}

fn next_poll_fits(
    id: &RecordId,
    policy: &domain::policy::KindPolicy,
    next: Timestamp,
    at: Timestamp,
) -> Result<(), Violation> {
    let longest = policy.max_retry_after_seconds.max(policy.max_poll_error_backoff_seconds);
    let longest = i64::from(longest);
    let wait = next.micros() - at.micros();
    let fits = (i64::from(policy.min_retry_after_seconds) * SECOND..=longest * SECOND).contains(&wait);
    must(fits, "I8", || format!("{id} is polled again after {wait} microseconds"))
}

fn interval_fits(id: &RecordId, policy: &domain::policy::KindPolicy, seconds: u32) -> Result<(), Violation> {
    let bounds = policy.min_retry_after_seconds..=policy.max_retry_after_seconds;
    must(bounds.contains(&seconds), "I8", || format!("{id} is polled every {seconds} s"))
}
