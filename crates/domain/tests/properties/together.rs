//! Steps that concern a job and its operation: both are decided together, or neither.

use domain::body::{BodyName, BodyRef, Digest};
use domain::job::{
    AfterExternal, CANCEL_LIMIT_SECONDS, CancelAnswer, Dispatch, Holder, Job, JobCommand, JobSpec, JobState,
    JobStateName, NewJob, ResultRefs, Retryable, Trigger,
};
use domain::operation::{
    Cancelability, NewOperation, Operation, OperationCommand, OperationStatus, OrphanReason, Poll,
    PollAnswer, PollError, PollFailure, PollHints, ReportedStatus,
};
use domain::policy::{Hint, KindPolicy};
use domain::{AttemptId, Jitter, JobId, OperationId, OwnerId, RecordId, Refusal, RetryPolicy, Timestamp};

use crate::world::{Outcome, World};

const START: Timestamp = Timestamp::from_seconds(1_000);

fn job_id() -> JobId {
    JobId::new("work-1")
}

fn operation_id(number: u32) -> OperationId {
    OperationId::new(format!("op-{number}"))
}

fn attempt(number: u32) -> AttemptId {
    AttemptId::new(format!("attempt-{number}"))
}

fn after(seconds: u64) -> Timestamp {
    START.plus_seconds(seconds)
}

/// A world with a dispatched job that is tried twice and lives for a thousand seconds.
fn dispatched() -> World {
    let retry = RetryPolicy { max_attempts: 2, backoff_seconds: 10, max_backoff_seconds: 60 };
    let spec = JobSpec { deadline_at: Some(after(1_000)), ..JobSpec::plain(Some("render"), retry) };
    let mut world = World::default();
    let new = NewJob { spec, due_at: None, bodies: Vec::new() };
    assert_eq!(world.execute(job_id(), JobCommand::Create(Box::new(new)), START), Outcome::Done);
    assert_eq!(world.execute(job_id(), dispatch(1, Trigger::Automatic), START), Outcome::Done);
    world
}

/// The same, waiting for an operation.
fn waiting() -> World {
    waiting_for(new_operation(1))
}

fn waiting_for(operation: NewOperation) -> World {
    let mut world = dispatched();
    assert_eq!(world.execute(job_id(), defer(1, operation), START), Outcome::Done);
    world
}

fn dispatch(number: u32, trigger: Trigger) -> JobCommand {
    let owner = OwnerId::new("node-1");
    JobCommand::Dispatch(Dispatch { attempt_id: attempt(number), owner, trigger, holder: Holder::Daemon })
}

fn new_operation(number: u32) -> NewOperation {
    NewOperation {
        job_id: job_id(),
        attempt_id: attempt(number),
        kind: "render".to_owned(),
        specialist: "render-farm".to_owned(),
        circle: None,
        handle: Some(BodyRef { name: BodyName::Handle, sha256: Digest([7; 32]), size: 7 }),
        cancelability: Cancelability::Cancelable,
        retry_after: Hint::Seconds(5),
        fail_after: Hint::Absent,
        action_ttl: Hint::Absent,
        deadline_at: None,
        progress_hint: None,
        policy: KindPolicy::default(),
        jitter: Jitter(0),
        ttl_limit: None,
        external_job_id: None,
    }
}

fn defer(number: u32, operation: NewOperation) -> JobCommand {
    JobCommand::Defer {
        attempt_id: attempt(number),
        operation_id: operation_id(number),
        operation: Box::new(operation),
        then: AfterExternal::Finish,
        left_by: domain::job::LeftBy::Executor,
    }
}

fn answers(answer: PollAnswer) -> OperationCommand {
    OperationCommand::RecordPoll(Box::new(Poll { answer, jitter: Jitter(0) }))
}

fn completed(text: &str) -> PollAnswer {
    PollAnswer::Completed(ResultRefs { summary: Some(text.to_owned()), ..ResultRefs::default() })
}

fn failed(retryable: Retryable) -> PollAnswer {
    PollAnswer::Failed(PollFailure {
        failure_detail: "out of paper".to_owned(),
        error_code: Some("no_paper".to_owned()),
        result: ResultRefs::default(),
        retryable,
    })
}

fn request_cancel() -> JobCommand {
    JobCommand::RequestCancel { by: None, reason: "not needed".to_owned() }
}

fn operation(world: &World, number: u32) -> &Operation {
    let record = &world.records[&RecordId::from(operation_id(number))];
    record.as_operation().expect("an operation has an operation's id")
}

fn states(world: &World) -> (JobStateName, OperationStatus) {
    (world.job().state.name(), operation(world, 1).status())
}

#[test]
fn a_job_waits_and_its_operation_begins_in_one_step() {
    let world = waiting();
    assert_eq!(states(&world), (JobStateName::AwaitingExternal, OperationStatus::Pending));
    let operation = operation(&world, 1);
    assert_eq!((&operation.link.job_id, &operation.link.attempt_id), (&job_id(), &attempt(1)));
    assert_eq!(operation.expires_at, after(900));
}

#[test]
fn work_that_the_host_does_not_take_leaves_its_job_as_it_was() {
    let mut world = dispatched();
    let endless = KindPolicy { max_ttl_seconds: u64::MAX, ..KindPolicy::default() };
    let refused = NewOperation { policy: endless, ..new_operation(1) };
    let refusal = Refusal::InvalidPolicy { field: "max_ttl_seconds" };
    assert_eq!(world.execute(job_id(), defer(1, refused), START), Outcome::Refused(refusal));
    let late = defer(1, new_operation(1));
    let outcome = world.execute(job_id(), late, after(1_000));
    assert_eq!(outcome, Outcome::Refused(Refusal::DeadlineElapsed));
    assert_eq!((world.job().state.clone(), world.operations().count()), (JobState::Dispatching, 0));
}

#[test]
fn a_result_ends_both() {
    let mut world = waiting();
    world.execute(operation_id(1), answers(completed("12 pages")), after(5));
    assert_eq!(states(&world), (JobStateName::Completed, OperationStatus::Completed));
    assert_eq!(world.job().result.summary.as_deref(), Some("12 pages"));
    assert_eq!(
        (world.job().completed_at, operation(&world, 1).completed_at()),
        (Some(after(5)), Some(after(5)))
    );
}

#[test]
fn polls_leave_the_job_waiting_and_count_no_attempt() {
    let mut world = waiting();
    let hints = PollHints { retry_after: Hint::Seconds(9), ..PollHints::default() };
    world.execute(operation_id(1), answers(PollAnswer::Open(ReportedStatus::Running, hints)), after(5));
    let error =
        PollError { code: "connect_failed".to_owned(), message: String::new(), ..PollError::default() };
    let failing = OperationCommand::RecordPoll(Box::new(Poll {
        answer: PollAnswer::NotNow { error, retry_after: domain::policy::Hint::Absent },
        jitter: Jitter(0),
    }));
    world.execute(operation_id(1), failing, after(14));
    assert_eq!(states(&world), (JobStateName::AwaitingExternal, OperationStatus::Running));
    assert_eq!((world.job().attempt_count, operation(&world, 1).polls), (1, 2));
}

#[test]
fn a_failure_outside_sends_the_job_back_to_the_queue_and_the_last_one_fails_it() {
    let mut world = waiting();
    world.execute(operation_id(1), answers(failed(Retryable::Yes)), after(5));
    assert_eq!(states(&world), (JobStateName::Queued, OperationStatus::Failed));
    world.execute(job_id(), dispatch(2, Trigger::Automatic), after(60));
    world.execute(job_id(), defer(2, new_operation(2)), after(60));
    world.execute(operation_id(2), answers(failed(Retryable::Yes)), after(65));
    assert_eq!(world.job().state, JobState::Failed);
    assert_eq!(world.job().state_reason.as_deref(), Some("no_paper"));
}

#[test]
fn the_operation_of_an_earlier_attempt_has_no_say_in_a_later_one() {
    let mut world = waiting();
    world.execute(operation_id(1), answers(failed(Retryable::Yes)), after(5));
    world.execute(job_id(), dispatch(2, Trigger::Automatic), after(60));
    world.execute(job_id(), defer(2, new_operation(2)), after(60));
    let before: Job = world.job().clone();
    assert_eq!(world.execute(operation_id(1), answers(completed("late")), after(61)), Outcome::Done);
    assert_eq!((world.job(), operation(&world, 1).status()), (&before, OperationStatus::Failed));
    assert_eq!(operation(&world, 1).diagnostics.len(), 1);
}

#[test]
fn a_cancel_of_the_job_reaches_its_operation_and_the_answer_reaches_the_job() {
    let mut world = waiting();
    world.execute(job_id(), request_cancel(), after(1));
    assert_eq!(states(&world), (JobStateName::AwaitingExternal, OperationStatus::Pending));
    assert!(operation(&world, 1).cancel.is_some());
    let confirmed = OperationCommand::RecordCancelAnswer {
        answer: CancelAnswer::Cancelled,
        told: None,
        said: None,
        jitter: Jitter(0),
    };
    world.execute(operation_id(1), confirmed, after(2));
    assert_eq!(states(&world), (JobStateName::Cancelled, OperationStatus::Cancelled));
    assert_eq!(operation(&world, 1).orphan(), None);
}

#[test]
fn a_cancel_that_nobody_confirms_leaves_an_orphan() {
    let mut world = waiting();
    world.execute(job_id(), request_cancel(), after(1));
    world.execute(job_id(), JobCommand::TimeOutCancel, after(1 + CANCEL_LIMIT_SECONDS));
    assert_eq!(states(&world), (JobStateName::Cancelled, OperationStatus::Expired));
    assert_eq!(world.job().state_reason.as_deref(), Some("cancel_unconfirmed"));
    assert_eq!(operation(&world, 1).orphan(), Some(OrphanReason::CancelUnconfirmed));
}

#[test]
fn work_that_cannot_be_stopped_goes_on_and_its_result_is_taken() {
    let mut world = waiting_for(NewOperation {
        cancelability: Cancelability::NotCancelable("printed in ink".to_owned()),
        ..new_operation(1)
    });
    world.execute(job_id(), request_cancel(), after(1));
    let cancel = world.job().cancel.clone().unwrap();
    assert_eq!(cancel.unavailable_because(), Some("printed in ink"));
    assert_eq!(world.job().cancel_limit_at(), None);
    assert_eq!(states(&world), (JobStateName::AwaitingExternal, OperationStatus::Pending));
    world.execute(operation_id(1), answers(completed("done")), after(100));
    assert_eq!(states(&world), (JobStateName::Completed, OperationStatus::Completed));
}

#[test]
fn unstoppable_work_goes_on_under_a_pending_cancel() {
    let deny = KindPolicy { cancel_policy: domain::policy::CancelPolicy::Deny, ..KindPolicy::default() };
    let mut world = dispatched();
    world.execute(job_id(), request_cancel(), after(1));
    world.execute(job_id(), defer(1, NewOperation { policy: deny, ..new_operation(1) }), after(2));
    assert_eq!(world.job().cancel_limit_at(), None);
    assert_eq!(states(&world), (JobStateName::AwaitingExternal, OperationStatus::Pending));
    assert_eq!(operation(&world, 1).cancel.as_ref().unwrap().next_try_at, None);
}

#[test]
fn a_result_that_comes_after_the_cancel_timed_out_changes_nothing() {
    let mut world = waiting();
    world.execute(job_id(), request_cancel(), after(1));
    world.execute(job_id(), JobCommand::TimeOutCancel, after(60));
    world.execute(operation_id(1), answers(completed("late")), after(61));
    assert_eq!(states(&world), (JobStateName::Cancelled, OperationStatus::Expired));
    assert_eq!(world.job().result, ResultRefs::default());
    assert_eq!(operation(&world, 1).diagnostics[0].code, "late-status-ignored");
}

#[test]
fn a_job_whose_time_is_over_gives_its_operation_up() {
    let mut world = waiting();
    let days = KindPolicy { max_ttl_seconds: 5 * 86_400, ..KindPolicy::default() };
    world.execute(operation_id(1), answers(failed(Retryable::Yes)), after(1));
    world.execute(job_id(), dispatch(2, Trigger::Automatic), after(60));
    world.execute(job_id(), defer(2, NewOperation { policy: days, ..new_operation(2) }), after(60));
    world.execute(job_id(), JobCommand::Expire, after(1_000));
    assert_eq!(world.job().state, JobState::Expired);
    assert_eq!(operation(&world, 2).orphan(), Some(OrphanReason::ExpiredWhileOpen));
}

#[test]
fn an_operation_whose_life_is_over_expires_its_job() {
    let mut world = waiting();
    world.execute(operation_id(1), OperationCommand::Expire, after(900));
    assert_eq!(states(&world), (JobStateName::Expired, OperationStatus::Expired));
    assert_eq!(world.job().state_reason.as_deref(), Some("operation_expired"));
}
