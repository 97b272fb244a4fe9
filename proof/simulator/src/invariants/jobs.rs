//! What may happen to a job, fact by fact: written down anew here, not asked of the rules that are checked.

use domain::job::{
    CancelCause, CancelTry, Details, ExpiryCause, Job, JobFact, JobState, JobStateName, RequeueCause,
    Trigger, Unavailability,
};
use domain::operation::Operation;
use domain::{AttemptId, Fact, OperationId, Record, RecordId, Timestamp};

use super::{Checker, Stream, Violation, broken, must};
use crate::counters::{Counters, Sometimes};

/// The checker's own small fold of a job: the fold of the domain is itself under test.
#[derive(Default)]
pub(super) struct Life {
    /// The number of the newest attempt.
    number: u32,
    /// The newest attempt.
    pub(super) attempt: Option<AttemptId>,
    /// Whether it was sent back to the queue.
    pub(super) sent_back: bool,
    /// How the job ended in it.
    over: Option<Over>,
    /// The operation that the job waits for.
    pub(super) waits_for: Option<OperationId>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    /// For good.
    Ended,
    /// By a failure: it may be run again.
    Failed,
    /// By a lost lease: a late report may replace it, once.
    LeaseLost,
}

/// Whether work that waits for an answer goes on, or ends by itself, without one.
const fn passes_a_gate(fact: &JobFact) -> bool {
    matches!(
        fact,
        JobFact::Completed(_)
            | JobFact::Failed(_)
            | JobFact::BecameUnavailable(_)
            | JobFact::Requeued { .. }
            | JobFact::Started(_)
            | JobFact::Blocked(_)
            | JobFact::Deferred { .. }
    )
}

impl Checker {
    #[allow(clippy::wildcard_enum_match_arm, reason = "what is not named here happens to open jobs alone")]
    pub(super) fn job_fact(
        &mut self,
        id: &RecordId,
        stream: &mut Stream,
        fact: &JobFact,
        at: Timestamp,
        counters: &mut Counters,
    ) -> Result<(), Violation> {
        let Some(record) = &stream.record else {
            return must(matches!(fact, JobFact::Created(_)), "I11", || format!("{id} begins with {fact:?}"));
        };
        let Some(job) = record.as_job() else {
            return broken("I1", || format!("{id} is no job"));
        };
        let over = stream.life.over;
        let at_gate = job.state == JobState::AwaitingInput && !job.attempts.is_empty();
        must(!at_gate || !passes_a_gate(fact), "gate", || {
            format!("{id} waits for an answer, and then {fact:?}")
        })?;
        match fact {
            JobFact::Dispatched { number, trigger, attempt_id, .. } => {
                must(*number > stream.life.number, "I4", || {
                    format!("{id}: attempt {number} follows {}", stream.life.number)
                })?;
                let fresh = job.attempts.iter().all(|attempt| attempt.id != *attempt_id);
                must(fresh, "I4", || format!("{id}: {attempt_id} is used twice"))?;
                must(job.purged_at.is_none(), "purged", || {
                    format!("{id} is done again, and nobody knows what it was asked to do")
                })?;
                must(job.cancel.is_none(), "cancel", || {
                    format!("{id} was asked to stop, and is done again")
                })?;
                let again =
                    matches!(over, Some(Over::Failed | Over::LeaseLost)) && *trigger != Trigger::Automatic;
                must((over.is_none() || again) && may_be_dispatched(&job.state, *trigger), "I2", || {
                    format!("{id} was dispatched by {trigger:?} while {}", job.state.name())
                })?;
            }
            JobFact::Completed(_) | JobFact::Failed(_) if over == Some(Over::LeaseLost) => {
                counters.saw(Sometimes::LateReportAfterUnavailable);
            }
            JobFact::Requeued { cause: RequeueCause::Asked, .. } => {
                must(over != Some(Over::Ended), "I2", || format!("{id} was over for good and is asked for"))?;
            }
            JobFact::CancelRequested { limit_at, .. } if over.is_some() => {
                must(limit_at.is_none(), "cancel", || {
                    format!("{id} is over, and its cancel has a time limit")
                })?;
            }
            JobFact::CancelTried(CancelTry::Sent(sent)) => {
                must(self.cancel_sent.contains(id), "cancel", || {
                    format!("{id} says that a cancel was sent ({sent:?}), and nobody was sent one")
                })?;
            }
            JobFact::Cancelled(end) if end.cause == CancelCause::TimedOut => self.may_be_given_up(id, job)?,
            JobFact::CancelRepeated { .. }
            | JobFact::CancelRepeatsCounted { .. }
            | JobFact::CancelTried(_) => {
                must(job.cancel.is_some(), "cancel", || format!("{id} was not asked to stop, and {fact:?}"))?;
            }
            JobFact::Noted(_)
            | JobFact::StaleReportKept(_)
            | JobFact::StaleReportsCounted { .. }
            | JobFact::ExecutorReleased { .. }
            | JobFact::TimersMoved { .. }
            | JobFact::Purged
            | JobFact::Retired => {}
            JobFact::Created(_) => return broken("I11", || format!("{id} was created twice")),
            _ => {
                must(over.is_none(), "I2", || format!("{id} was {} and then {fact:?}", job.state.name()))?;
            }
        }
        has_cause(id, job, fact, at)?;
        if let JobFact::StaleReportsCounted { count } = fact {
            counters.saw(Sometimes::StaleReportsCounted);
            self.counted(id, *count)?;
        }
        if let Some(details) = details(fact) {
            self.result_is_of(id, &stream.life, job, details)?;
        }
        if matches!(fact, JobFact::Completed(_)) && job.cancel.is_some() && over.is_none() {
            counters.saw(Sometimes::CancelRacingFinish);
        }
        self.operation_applied_once(id, &stream.life, fact)?;
        stream.life.follow(fact);
        Ok(())
    }

    /// A result on a job was produced for it, in the attempt that is current.
    fn result_is_of(
        &self,
        id: &RecordId,
        life: &Life,
        job: &Job,
        details: &Details,
    ) -> Result<(), Violation> {
        let Some(body) = &details.result.data else { return Ok(()) };
        let Some(effect) = self.effect_of(body) else {
            return broken("I9", || format!("{id} has a result that nobody produced"));
        };
        must(effect.job == job.id, "I9", || format!("{id} has the result of {}", effect.job))?;
        // A later attempt may go on with what an earlier one began outside.
        must(effect.operation.is_some() || effect.attempt == life.attempt, "I3", || {
            format!("{id} has the result of {:?}, now is {:?}", effect.attempt, life.attempt)
        })?;
        must(effect.operation.is_none() || effect.operation == life.waits_for, "I7", || {
            format!("{id} took the result of {:?} while {}", effect.operation, job.state.name())
        })
    }

    /// A cancel that nobody confirms ends work that somebody could stop: what cannot be stopped goes on, and work that was never
    /// dispatched is its worker's.
    fn may_be_given_up(&self, id: &RecordId, job: &Job) -> Result<(), Violation> {
        must(!job.attempts.is_empty(), "cancel", || {
            format!("{id} was never dispatched, and its cancel is over by itself")
        })?;
        let waits_for_input = |state| matches!(state, JobStateName::AwaitingInput | JobStateName::Blocked);
        let waited_for_input = job.cancel.as_ref().is_some_and(|cancel| waits_for_input(cancel.in_state));
        let unstoppable = match &job.state {
            JobState::AwaitingExternal { operation, .. } => {
                let outside = self.record(&operation.clone().into()).and_then(Record::as_operation);
                outside.and_then(Operation::uncancelable_because)
            }
            // What an earlier attempt has asked of a service is on the orphan ledger with this end: else a job that waits for an answer,
            // which it is not given any more, would never be over.
            _ if waits_for_input(job.state.name()) || waited_for_input => None,
            JobState::Queued { .. }
            | JobState::Dispatching
            | JobState::Delivered
            | JobState::Running
            | JobState::AwaitingInput
            | JobState::Blocked
            | JobState::Completed
            | JobState::Failed
            | JobState::Cancelled
            | JobState::Expired
            | JobState::Unavailable { .. } => {
                job.intent.as_ref().and_then(|intent| intent.not_cancelable.clone())
            }
        };
        must(unstoppable.is_none(), "cancel", || {
            format!("{id} is cancelled and goes on: it cannot be stopped ({unstoppable:?})")
        })
    }

    /// A job waits once for an operation, and its end moves the job once.
    fn operation_applied_once(
        &mut self,
        id: &RecordId,
        life: &Life,
        fact: &JobFact,
    ) -> Result<(), Violation> {
        if let JobFact::Deferred { operation_id, .. } = fact {
            return must(!self.concluded.contains(operation_id), "I7", || {
                format!("{id} waits again for {operation_id}")
            });
        }
        let Some(operation) = &life.waits_for else { return Ok(()) };
        must(!moves(fact) || self.concluded.insert(operation.clone()), "I7", || {
            format!("{id}: the end of {operation} was applied twice")
        })
    }
}

impl Life {
    /// Whether the job ended in its newest attempt.
    pub(super) fn is_over(&self) -> bool {
        self.over.is_some()
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "the others leave the attempt as it is")]
    fn follow(&mut self, fact: &JobFact) {
        if moves(fact) {
            self.waits_for = None;
        }
        match fact {
            JobFact::Dispatched { attempt_id, number, .. } => {
                *self = Self { number: *number, attempt: Some(attempt_id.clone()), ..Self::default() };
            }
            JobFact::Requeued { .. } => {
                self.sent_back = true;
                self.over = None;
            }
            JobFact::Deferred { operation_id, .. } => self.waits_for = Some(operation_id.clone()),
            JobFact::Failed(_) => self.over = Some(Over::Failed),
            JobFact::BecameUnavailable(end) => {
                let lease_lost = end.cause == Unavailability::LeaseLost;
                self.over = Some(if lease_lost { Over::LeaseLost } else { Over::Failed });
            }
            JobFact::Completed(_) | JobFact::Cancelled(_) | JobFact::Expired(_) => {
                self.over = Some(Over::Ended);
            }
            _ => {}
        }
    }
}

/// Whether a job that waits for an operation goes on by this.
fn moves(fact: &JobFact) -> bool {
    !matches!(
        fact,
        JobFact::Noted(_)
            | JobFact::StaleReportKept(_)
            | JobFact::StaleReportsCounted { .. }
            | JobFact::ExecutorReleased { .. }
            | JobFact::TimersMoved { .. }
            | JobFact::CancelRequested { .. }
            | JobFact::CancelRepeated { .. }
            | JobFact::CancelRepeatsCounted { .. }
            | JobFact::CancelTried(_)
            | JobFact::CancelAnswered(_)
    )
}

/// What brings a job to its end, or back to the queue, is really so.
fn has_cause(id: &RecordId, job: &Job, fact: &JobFact, at: Timestamp) -> Result<(), Violation> {
    let held = matches!(job.state, JobState::Dispatching | JobState::Delivered | JobState::Running);
    let is_so = if let JobFact::Dispatched { trigger: Trigger::Automatic, .. } = fact {
        !matches!(job.state, JobState::Queued { due_at } if at < due_at)
    } else if let JobFact::Requeued { cause: RequeueCause::Asked, .. } = fact {
        job.spec.executor.is_none() && job.cancel.is_none()
    } else if let JobFact::Requeued { cause, .. } = fact {
        let left = job.attempt_count < most_attempts(job, *cause);
        left && job.cancel.is_none() && (held || *cause == RequeueCause::AttemptFailed)
    } else if let JobFact::Cancelled(end) = fact {
        match end.cause {
            CancelCause::NeverStarted => {
                (held || matches!(job.state, JobState::Queued { .. })) && job.intent.is_none()
            }
            CancelCause::SubmitUnknown => {
                (held || matches!(job.state, JobState::Queued { .. })) && job.intent.is_some()
            }
            CancelCause::TimedOut => {
                let limit_at = job.cancel.as_ref().and_then(|cancel| cancel.limit_at);
                limit_at.is_some_and(|limit| limit <= at)
            }
            CancelCause::LeaseLost => held && job.cancel.is_some(),
            CancelCause::Confirmed => true,
        }
    } else if let JobFact::Expired(end) = fact {
        match end.cause {
            ExpiryCause::TimeOver => job.expires_at().is_some_and(|limit| limit <= at),
            ExpiryCause::OperationExpired => matches!(job.state, JobState::AwaitingExternal { .. }),
            ExpiryCause::Reported => job.attempts.is_empty() || job.state.name() != JobStateName::Queued,
        }
    } else if let JobFact::BecameUnavailable(end) = fact {
        end.cause == Unavailability::Reported || held
    } else {
        true
    };
    must(is_so, "cause", || format!("{id} is {:?} at {at:?}, and then {fact:?}", job.state))
}

/// Work that is pulled, of which nobody has said how often: three workers may be lost, and the first failure is the last.
fn most_attempts(job: &Job, cause: RequeueCause) -> u32 {
    let said = job.spec.retry.max_attempts;
    let lost = cause == RequeueCause::LeaseLost;
    let unsaid = said == 1 && !job.spec.retry_requested;
    if lost && unsaid && job.spec.executor.is_none() { 3 } else { said }
}

fn may_be_dispatched(state: &JobState, trigger: Trigger) -> bool {
    match trigger {
        Trigger::Automatic => matches!(state, JobState::Queued { .. }),
        Trigger::Run => {
            matches!(state, JobState::Queued { .. } | JobState::Failed | JobState::Unavailable { .. })
        }
        Trigger::Continued => matches!(state, JobState::Running),
        Trigger::Retry => {
            matches!(state, JobState::Delivered | JobState::Failed | JobState::Unavailable { .. })
        }
    }
}

#[allow(clippy::wildcard_enum_match_arm, reason = "the others have none")]
fn details(fact: &JobFact) -> Option<&Details> {
    match fact {
        JobFact::Started(details)
        | JobFact::InputAwaited(details)
        | JobFact::Blocked(details)
        | JobFact::ExternalArrived(details)
        | JobFact::Noted(details)
        | JobFact::Completed(details)
        | JobFact::Failed(details)
        | JobFact::Requeued { details, .. } => Some(details),
        JobFact::Cancelled(end) => Some(&end.details),
        JobFact::Expired(end) => Some(&end.details),
        JobFact::BecameUnavailable(end) => Some(&end.details),
        _ => None,
    }
}

/// Whether a fact says that a lease was lost, which only the next holder of the claim may know.
pub(super) fn says_lease_lost(fact: &Fact) -> bool {
    if let Fact::Job(JobFact::Requeued { cause, .. }) = fact {
        *cause == RequeueCause::LeaseLost
    } else if let Fact::Job(JobFact::Cancelled(end)) = fact {
        end.cause == CancelCause::LeaseLost
    } else if let Fact::Job(JobFact::BecameUnavailable(end)) = fact {
        end.cause == Unavailability::LeaseLost
    } else {
        false
    }
}
