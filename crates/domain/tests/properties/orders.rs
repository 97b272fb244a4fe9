//! Commands out of a hat: numbers in, a command on the job or one of its operations out.
//!
//! The numbers are what proptest shrinks. Most commands come from the current attempt and concern the newest
//! operation, some from old ones, a few from nobody that exists.

use domain::body::{BodyName, BodyRef, Digest};
use domain::job::{
    AfterExternal, CancelAnswer, CancelRecipient, CancelTry, Details, Dispatch, Holder, JobCommand, JobSpec,
    JobStateName, NewJob, OperationEnding, Release, Report, Reporter, ResultRefs, Retryable, SubmitWord,
    Trigger,
};
use domain::operation::{
    CancelOrigin, Cancelability, NewOperation, OperationCommand, Poll, PollAnswer, PollError, PollFailure,
    PollHints, ReportedStatus,
};
use domain::policy::{CancelPolicy, Hint, KindPolicy, UnknownPolicy};
use domain::{
    AttemptId, Command, Jitter, JobId, Json, OperationId, OwnerId, RecordId, RetryPolicy, Timestamp,
};
use proptest::prelude::*;

use crate::world::World;

pub(crate) const START: Timestamp = Timestamp::from_seconds(1_000_000);

/// Kinds of commands to the job, and to an operation: the more often a number means one, the more often it comes.
const JOB_KINDS: u8 = 34;
const OPERATION_KINDS: u8 = 16;

/// Every state; those that a job comes back from more often.
const REPORTED: [JobStateName; 21] = {
    use JobStateName as S;
    [
        S::Queued,
        S::Dispatching,
        S::Delivered,
        S::Running,
        S::AwaitingInput,
        S::AwaitingExternal,
        S::Blocked,
        S::Completed,
        S::Failed,
        S::Cancelled,
        S::Expired,
        S::Unavailable,
        S::Running,
        S::Running,
        S::AwaitingInput,
        S::Blocked,
        S::Failed,
        S::Failed,
        S::Failed,
        S::Failed,
        S::Completed,
    ]
};

/// One command to come, as numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    wait_seconds: u32,
    kind: u8,
    who: u8,
    what: u8,
    jitter: u16,
}

/// A job to come, as numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beginning {
    max_attempts: u32,
    deadline_in: Option<u32>,
    due_in: u32,
}

/// Which commands come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Orders {
    /// Those that come from outside.
    FromOutside,
    /// Also those that only ever follow from another record.
    Any,
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    (
        prop_oneof![20 => Just(0), 20 => 0..20_u32, 1 => 0..2_000_u32],
        0..JOB_KINDS + OPERATION_KINDS,
        0..12_u8,
        any::<u8>(),
        any::<u16>(),
    )
        .prop_map(|(wait_seconds, kind, who, what, jitter)| Step {
            wait_seconds,
            kind,
            who,
            what,
            jitter,
        })
}

pub(crate) fn beginning() -> impl Strategy<Value = Beginning> {
    (1..5_u32, proptest::option::weighted(0.2, 1..5_000_u32), prop_oneof![3 => Just(0), 1 => 0..90_u32])
        .prop_map(|(max_attempts, deadline_in, due_in)| Beginning { max_attempts, deadline_in, due_in })
}

pub(crate) fn job_id() -> JobId {
    JobId::new("work-1")
}

impl Beginning {
    /// A world with this job in it.
    pub(crate) fn world(self) -> World {
        let retry = RetryPolicy { max_attempts: self.max_attempts, ..RetryPolicy::ONCE };
        let mut spec = JobSpec::plain(Some("render"), retry);
        spec.deadline_at = self.deadline_in.map(|seconds| START.plus_seconds(u64::from(seconds)));
        let due_at = Some(START.plus_seconds(u64::from(self.due_in)));
        let new = NewJob { spec, due_at, bodies: vec![body(BodyName::Input, 1)] };
        let mut world = World::default();
        world.execute(job_id(), JobCommand::Create(Box::new(new)), START);
        world
    }
}

impl Step {
    /// When it comes, after the one before.
    pub(crate) fn at(self, before: Timestamp) -> Timestamp {
        before.plus_seconds(u64::from(self.wait_seconds))
    }

    /// The command that it is in this world, and for which record.
    pub(crate) fn order(self, orders: Orders, world: &World, now: Timestamp) -> (RecordId, Command) {
        let newest = world.operations().last().map(|operation| operation.id.clone());
        match (self.kind, newest) {
            (0..JOB_KINDS, _) | (_, None) => (job_id().into(), self.to_job(orders, world, now).into()),
            (JOB_KINDS.., Some(newest)) => {
                let oldest = world.operations().next().map(|operation| operation.id.clone());
                let chosen = if self.who == 0 { oldest.unwrap_or(newest) } else { newest };
                (chosen.into(), self.to_operation(orders).into())
            }
        }
    }

    fn to_job(self, orders: Orders, world: &World, now: Timestamp) -> JobCommand {
        let attempt_id = self.attempt_id(world);
        match self.kind % JOB_KINDS {
            0..=2 => self.dispatch(world, Trigger::Automatic),
            3 | 4 => self.dispatch(world, Trigger::Run),
            5 | 6 => self.dispatch(world, Trigger::Retry),
            7 => JobCommand::Deliver { attempt_id },
            8 => JobCommand::Heartbeat { attempt_id, by: Reporter::Daemon },
            9 => JobCommand::Resume { attempt_id },
            10..=17 => JobCommand::Report(Box::new(self.report(world, attempt_id))),
            18 | 19 => self.defer(world, attempt_id, now),
            20 => JobCommand::Answer { answer: body(BodyName::Answer, self.what) },
            // Seldom: it ends what is queued, for good.
            21 if self.who > 7 => JobCommand::RequestCancel { by: None, reason: "not needed".to_owned() },
            21 if self.who == 7 => JobCommand::CancelOrRefuse { by: None, reason: "not needed".to_owned() },
            22 => JobCommand::RecordCancelAnswer { attempt_id, answer: self.cancel_answer(), release: None },
            23 if self.what % 4 == 1 => {
                JobCommand::RecordCancelTry { attempt_id, tried: CancelTry::sent_to(CancelRecipient::Worker) }
            }
            23 if self.what % 4 == 3 && self.who > 7 => {
                JobCommand::RecordRelease { attempt_id, release: Release::Ended }
            }
            23 if self.what % 4 == 2 => JobCommand::CountCancelRepeats { count: 3 },
            23 => JobCommand::TimeOutCancel,
            21 | 24..=27 => JobCommand::LoseLease { attempt_id, jitter: Jitter(self.jitter), error: None },
            30 => JobCommand::QueueAgain { trigger: Trigger::Retry },
            31 => JobCommand::TimeOutAttempt { attempt_id, jitter: Jitter(self.jitter) },
            28 => JobCommand::Expire,
            29 if orders == Orders::Any => JobCommand::ConcludeOperation {
                operation_id: operation_id(self.what % 4),
                ending: self.ending(),
                jitter: Jitter(self.jitter),
            },
            _ if self.what.is_multiple_of(2) => JobCommand::Purge,
            _ => JobCommand::Retire,
        }
    }

    fn to_operation(self, orders: Orders) -> OperationCommand {
        let jitter = Jitter(self.jitter);
        match self.kind % OPERATION_KINDS {
            0..=2 => OperationCommand::RecordPoll(Box::new(Poll {
                answer: PollAnswer::NotNow {
                    error: PollError {
                        code: "connect_failed".to_owned(),
                        message: "no route".to_owned(),
                        ..PollError::default()
                    },
                    retry_after: self.hint(),
                },
                jitter,
            })),
            3 => OperationCommand::Expire,
            4 => OperationCommand::Retire,
            5 if orders == Orders::Any && self.who > 7 => {
                OperationCommand::Abandon { reason: "not needed".to_owned() }
            }
            5 | 6 => OperationCommand::RequestCancel {
                by: None,
                reason: "not needed".to_owned(),
                origin: if self.who < 6 { CancelOrigin::Caller } else { CancelOrigin::ParentJob },
            },
            7 => OperationCommand::RecordCancelAnswer {
                answer: self.cancel_answer(),
                told: None,
                said: None,
                jitter,
            },
            _ => OperationCommand::RecordPoll(Box::new(Poll { answer: self.poll_answer(), jitter })),
        }
    }

    fn attempt_id(self, world: &World) -> AttemptId {
        let newest = world.job().attempt_count;
        match self.who {
            0 => attempt(newest.saturating_sub(1)),
            1 => AttemptId::new("attempt-made-up"),
            _ => attempt(newest),
        }
    }

    fn dispatch(self, world: &World, trigger: Trigger) -> JobCommand {
        JobCommand::Dispatch(Dispatch {
            attempt_id: attempt(world.job().attempt_count + 1),
            owner: OwnerId::new(if self.who < 6 { "node-1" } else { "node-2" }),
            holder: Holder::Daemon,
            trigger,
        })
    }

    fn report(self, world: &World, attempt_id: AttemptId) -> Report {
        // The doer of work that was never dispatched gives no attempt; one now and then forgets it.
        let unmanaged = world.job().attempts.is_empty();
        let silent = if unmanaged { self.who > 1 } else { self.who == 2 };
        Report {
            attempt_id: (!silent).then_some(attempt_id),
            state: REPORTED[usize::from(self.what) % REPORTED.len()],
            details: self.details(),
            retryable: if self.jitter.is_multiple_of(2) { Retryable::Yes } else { Retryable::No },
            jitter: Jitter(self.jitter),
            submit: SubmitWord::Unsaid,
            by: Reporter::Daemon,
        }
    }

    fn details(self) -> Details {
        let mut details = Details::default();
        if self.jitter & 4 == 0 {
            details.note = Some(format!("note {}", self.what));
        }
        if self.jitter & 8 == 0 {
            details.result = ResultRefs {
                summary: Some(format!("summary {}", self.what)),
                data: (self.jitter & 16 == 0).then(|| body(BodyName::Result, self.what)),
                ..ResultRefs::default()
            };
        }
        if self.jitter & 32 == 0 {
            details.reason = Some("because".to_owned());
            details.progress = Some(Json::parse("{\"half\":true}").expect("that is JSON"));
        }
        details
    }

    fn defer(self, world: &World, attempt_id: AttemptId, now: Timestamp) -> JobCommand {
        let made = world.operations().count();
        let number = u8::try_from(made).expect("a history is short");
        let cancelability = match self.what % 4 {
            0 => Cancelability::NotCancelable("already printing".to_owned()),
            _ => Cancelability::Cancelable,
        };
        let deadline_at = (self.what % 8 == 1).then(|| now.plus_seconds(u64::from(self.jitter)));
        let operation = NewOperation {
            job_id: job_id(),
            attempt_id: attempt_id.clone(),
            kind: "render".to_owned(),
            specialist: "render-farm".to_owned(),
            circle: None,
            handle: Some(body(BodyName::Handle, number)),
            cancelability,
            retry_after: self.hint(),
            fail_after: if self.what < 224 { Hint::Absent } else { self.hint() },
            action_ttl: Hint::Absent,
            deadline_at,
            progress_hint: None,
            policy: self.policy(),
            jitter: Jitter(self.jitter),
            ttl_limit: None,
            external_job_id: Some(format!("r-{}", self.what)),
        };
        let then = if self.what.is_multiple_of(3) { AfterExternal::Resume } else { AfterExternal::Finish };
        let operation_id = operation_id(number);
        let left_by = domain::job::LeftBy::Executor;
        JobCommand::Defer { attempt_id, operation_id, operation: Box::new(operation), then, left_by }
    }

    fn policy(self) -> KindPolicy {
        match self.what % 5 {
            0 => KindPolicy { max_attempts: 2, ..KindPolicy::default() },
            1 => KindPolicy { unknown_policy: UnknownPolicy::RetryUntilExpiry, ..KindPolicy::default() },
            2 => KindPolicy { cancel_policy: CancelPolicy::Deny, ..KindPolicy::default() },
            3 => KindPolicy {
                max_ttl_seconds: 3_600,
                diagnostics_max_items: 3,
                min_retry_after_seconds: 3,
                ..KindPolicy::default()
            },
            _ => KindPolicy::default(),
        }
    }

    fn poll_answer(self) -> PollAnswer {
        let hints = PollHints {
            retry_after: self.hint(),
            fail_after: if self.what < 224 { Hint::Absent } else { self.hint() },
            progress_hint: Some(format!("page {}", self.what)),
            progress: None,
        };
        match self.what % 17 {
            0..=4 => PollAnswer::Open(ReportedStatus::Pending, hints),
            5..=8 => PollAnswer::Open(ReportedStatus::Running, hints),
            9 | 10 => PollAnswer::Completed(self.details().result),
            11 | 12 => PollAnswer::Failed(PollFailure {
                failure_detail: "out of paper".to_owned(),
                error_code: (self.jitter < 9_000).then(|| "no_paper".to_owned()),
                result: ResultRefs::default(),
                retryable: if self.jitter.is_multiple_of(2) { Retryable::Yes } else { Retryable::No },
            }),
            13 => PollAnswer::TimedOut,
            14 => PollAnswer::Cancelled,
            15 => PollAnswer::Expired,
            _ => PollAnswer::Unknown,
        }
    }

    fn ending(self) -> OperationEnding {
        match self.what % 7 {
            0 => OperationEnding::Completed(self.details().result),
            1 => OperationEnding::Failed {
                reason: "no_paper".to_owned(),
                result: ResultRefs::default(),
                retryable: Retryable::Yes,
            },
            2 => OperationEnding::TimedOut(Retryable::Yes),
            3 => OperationEnding::Cancelled,
            4 => OperationEnding::Expired { last_error: None },
            5 => {
                OperationEnding::GivenUp { reason: "volatile_lost".to_owned(), result: ResultRefs::default() }
            }
            _ => OperationEnding::Unknown,
        }
    }

    fn cancel_answer(self) -> CancelAnswer {
        match self.what % 4 {
            0 => CancelAnswer::Cancelled,
            1 => CancelAnswer::Accepted,
            2 => CancelAnswer::Refused("too late".to_owned()),
            _ => CancelAnswer::Unreachable,
        }
    }

    fn hint(self) -> Hint {
        match self.jitter % 8 {
            0 => Hint::Absent,
            1 => Hint::Invalid,
            2 => Hint::Seconds(i64::MAX),
            3 => Hint::Seconds(-i64::from(self.what)),
            _ => Hint::Seconds(i64::from(self.jitter % 1_000)),
        }
    }
}

fn attempt(number: u32) -> AttemptId {
    AttemptId::new(format!("attempt-{number}"))
}

/// Ids whose order is the order in which they were made.
fn operation_id(number: u8) -> OperationId {
    OperationId::new(format!("op-{number:03}"))
}

fn body(name: BodyName, seed: u8) -> BodyRef {
    BodyRef { name, sha256: Digest([seed; 32]), size: u64::from(seed) }
}
