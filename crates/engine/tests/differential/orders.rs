//! Orders for a few records: mostly what their states allow, often enough what they do not.

use std::sync::Arc;

use domain::job::{
    AfterExternal, Caller, CancelAnswer, CancelRecipient, CancelTry, Details, Dispatch, Holder, Intent, Job,
    JobCommand, JobSpec, JobState, JobStateName, LeftBy, NewJob, OperationEnding, Release, Report, Reporter,
    Resubmit, ResultRefs, Retryable, SubmitWord, Trigger,
};
use domain::operation::{
    CancelOrigin, Cancelability, NewOperation, Operation, OperationCommand, Poll, PollAnswer, PollError,
    PollFailure, PollHints, ReportedStatus,
};
use domain::policy::{CancelPolicy, Hint, KindPolicy, Persistence, UnknownPolicy};
use domain::{
    AttemptId, BodyName, BodyRef, Command, Digest, Jitter, JobId, Json, OperationId, OwnerId, Record,
    RecordId, RetryPolicy, Timestamp,
};
use engine::{Order, OrderBody, OrderKey};
use store::{IdempotencyKey, NewBody, Store, body_ref};

use crate::chance::Chance;

pub const LANES: [&str; 2] = ["render", "print"];
const JOBS: usize = 3;
const OPERATIONS: usize = 5;
/// Longer than any text may be.
const TOO_LONG: usize = 5_000;

pub fn every_id() -> Vec<RecordId> {
    let jobs = (0..JOBS).map(|number| RecordId::Job(job_id(number)));
    let operations = (0..OPERATIONS).map(|number| RecordId::Operation(operation_id(number)));
    jobs.chain(operations).collect()
}

fn job_id(number: usize) -> JobId {
    JobId::new(format!("work-{number}"))
}

fn operation_id(number: usize) -> OperationId {
    OperationId::new(format!("op-{number}"))
}

/// The next order, with what comes with it.
pub async fn next(chance: &mut Chance, model: &dyn Store, now: Timestamp) -> Order {
    if chance.percent(1) {
        let create = JobCommand::Create(Box::new(new_job(chance, now)));
        return Order::new(JobId::new("task-1"), create, Arc::from("tester"));
    }
    let mut record = RecordId::Operation(operation_id(chance.below(OPERATIONS)));
    let mut state = model.load(&record).await.unwrap().map(|loaded| loaded.record);
    // Operations come from jobs that defer; only a few are made out of nothing.
    if chance.percent(if state.is_some() { 50 } else { 97 }) {
        record = RecordId::Job(job_id(chance.below(JOBS)));
        state = model.load(&record).await.unwrap().map(|loaded| loaded.record);
    }
    let command = match (&record, state.as_deref()) {
        // An order for the other kind of record, now and then.
        (RecordId::Operation(_), _) if chance.percent(2) => Command::Job(JobCommand::Purge),
        (RecordId::Job(_), _) if chance.percent(2) => Command::Operation(OperationCommand::Expire),
        (RecordId::Job(id), Some(Record::Job(job))) => Command::Job(job_command(chance, id, Some(job), now)),
        (RecordId::Job(id), _) => Command::Job(job_command(chance, id, None, now)),
        (RecordId::Operation(_), Some(Record::Operation(operation))) => {
            Command::Operation(operation_command(chance, Some(operation), now))
        }
        (_, _) => Command::Operation(operation_command(chance, None, now)),
    };
    with_company(chance, Order::new(record, command, Arc::from("tester")))
}

/// Bodies for what the command refers to, causes, and sometimes a key.
fn with_company(chance: &mut Chance, mut order: Order) -> Order {
    let mut record = order.record.clone();
    let names: &[BodyName] = match (order.command.as_job(), order.command.as_operation()) {
        (Some(JobCommand::Create(_)), _) => &[BodyName::Input],
        (Some(JobCommand::Report(_)), _) => &[BodyName::Result, BodyName::Question],
        (Some(JobCommand::Answer { .. }), _) => &[BodyName::Answer],
        (Some(JobCommand::Defer { operation_id, .. }), _) => {
            record = operation_id.clone().into();
            &[BodyName::Handle]
        }
        (_, Some(OperationCommand::Accept(_) | OperationCommand::AcceptOrphan { .. })) => &[BodyName::Handle],
        (_, _) => &[],
    };
    // The bytes of a body are its name.
    order.bodies.extend(names.iter().map(|name| {
        let bytes = name.as_str().as_bytes();
        let body = NewBody { body: body_ref(*name, bytes), bytes: Arc::from(bytes) };
        OrderBody { record: record.clone(), body }
    }));
    if chance.percent(10) {
        order.causation_id = Some(Arc::from("event-1"));
        order.correlation_id = Some(Arc::from("order-1"));
    }
    if chance.percent(8) {
        order.keys = vec![OrderKey {
            key: IdempotencyKey {
                principal: "token:ada".to_owned(),
                route: "POST".to_owned(),
                key: chance.pick(&["k1", "k2"]).to_owned(),
            },
            request_sha256: Digest([1; 32]),
            render: Arc::new(|_| b"done".to_vec()),
            keep_until: Timestamp::from_seconds(2_000_000_000),
        }];
    }
    order
}

/// The commands of a job.
const JOB_COMMANDS: usize = 20;
const CREATE: usize = 0;
const DISPATCH: usize = 1;
const RESUME: usize = 2;
const DELIVER: usize = 3;
const HEARTBEAT: usize = 4;
const REPORT: usize = 5;
const DEFER: usize = 6;
const CONCLUDE: usize = 7;
const ANSWER: usize = 8;
const REQUEST_CANCEL: usize = 9;
const CANCEL_ANSWER: usize = 10;
const TIME_OUT_CANCEL: usize = 11;
const LOSE_LEASE: usize = 12;
const EXPIRE: usize = 13;
const PURGE: usize = 14;
const RETIRE: usize = 15;
const INTEND: usize = 16;
const LOSE_SUBMIT: usize = 17;
const QUEUE_AGAIN: usize = 18;
const TIME_OUT_ATTEMPT: usize = 19;

fn job_command(chance: &mut Chance, id: &JobId, job: Option<&Job>, now: Timestamp) -> JobCommand {
    let is_late = job.and_then(Job::expires_at).is_some_and(|limit| limit <= now);
    let likely: &[usize] = match job.map(|job| &job.state) {
        None => &[CREATE],
        Some(state) if !state.name().is_terminal() && is_late => &[EXPIRE, EXPIRE, DISPATCH, REPORT],
        Some(JobState::Queued { .. }) => &[DISPATCH, DISPATCH, DISPATCH, REPORT],
        Some(
            JobState::Dispatching
            | JobState::Delivered
            | JobState::Running
            | JobState::AwaitingInput
            | JobState::AwaitingExternal { .. }
            | JobState::Blocked,
        ) if job.is_some_and(|job| job.cancel.is_some()) => {
            &[CANCEL_ANSWER, TIME_OUT_CANCEL, REPORT, DELIVER, DELIVER, DISPATCH, DISPATCH, DISPATCH, DEFER]
        }
        Some(JobState::Running) if job.is_some_and(|job| job.resume_pending) => {
            &[RESUME, RESUME, RESUME, DISPATCH]
        }
        Some(JobState::Dispatching | JobState::Delivered | JobState::Running)
            if job.is_some_and(|job| job.spec.timeout_seconds.is_some()) =>
        {
            &[TIME_OUT_ATTEMPT, TIME_OUT_ATTEMPT, TIME_OUT_ATTEMPT, HEARTBEAT, REPORT]
        }
        Some(JobState::Dispatching | JobState::Delivered | JobState::Running) => &[
            DELIVER,
            DELIVER,
            HEARTBEAT,
            REPORT,
            REPORT,
            REPORT,
            DEFER,
            DEFER,
            DISPATCH,
            DISPATCH,
            REQUEST_CANCEL,
            CANCEL_ANSWER,
            LOSE_LEASE,
            LOSE_LEASE,
            TIME_OUT_ATTEMPT,
            INTEND,
        ],
        Some(JobState::AwaitingInput | JobState::Blocked) => {
            &[ANSWER, ANSWER, ANSWER, REPORT, REQUEST_CANCEL, CANCEL_ANSWER, TIME_OUT_CANCEL]
        }
        Some(JobState::AwaitingExternal { .. }) => {
            &[CONCLUDE, CONCLUDE, REQUEST_CANCEL, CANCEL_ANSWER, TIME_OUT_CANCEL]
        }
        Some(
            JobState::Completed
            | JobState::Failed
            | JobState::Cancelled
            | JobState::Expired
            | JobState::Unavailable { .. },
        ) => &[REPORT, PURGE, DISPATCH, RETIRE, QUEUE_AGAIN, QUEUE_AGAIN],
    };
    let number = if chance.percent(70) { chance.pick(likely) } else { chance.below(JOB_COMMANDS) };
    let attempt_id = attempt(chance, job);
    let jitter = Jitter(0x4000);
    match number {
        CREATE => JobCommand::Create(Box::new(new_job(chance, now))),
        DISPATCH => JobCommand::Dispatch(Dispatch {
            attempt_id: AttemptId::new(format!("attempt-{}", chance.below(1_000))),
            owner: OwnerId::new(chance.pick(&["node-a", "node-b"])),
            holder: if chance.percent(10) { Holder::Caller(someone()) } else { Holder::Daemon },
            trigger: chance.pick(&[Trigger::Automatic, Trigger::Automatic, Trigger::Run, Trigger::Retry]),
        }),
        RESUME => JobCommand::Resume { attempt_id },
        DELIVER => JobCommand::Deliver { attempt_id },
        HEARTBEAT => JobCommand::Heartbeat { attempt_id, by: Reporter::Daemon },
        REPORT => JobCommand::Report(Box::new(Report {
            attempt_id: if job.is_some_and(|job| job.attempts.is_empty()) || chance.percent(5) {
                None
            } else {
                Some(attempt_id)
            },
            state: chance.pick(&JobStateName::ALL),
            details: details(chance),
            retryable: chance.pick(&[Retryable::Yes, Retryable::No]),
            jitter,
            submit: SubmitWord::Unsaid,
            by: if chance.percent(5) { Reporter::Caller(someone()) } else { Reporter::Daemon },
        })),
        DEFER => {
            let operation = Box::new(new_operation(chance, id, &attempt_id, now));
            let operation_id = operation_id(chance.below(OPERATIONS));
            let (then, left_by) = match chance.pick(&[AfterExternal::Finish, AfterExternal::Resume]) {
                AfterExternal::Finish => (AfterExternal::Finish, LeftBy::Executor),
                AfterExternal::Resume => (AfterExternal::Resume, LeftBy::Doer(Reporter::Daemon)),
            };
            JobCommand::Defer { attempt_id, operation_id, operation, then, left_by }
        }
        INTEND => JobCommand::IntendSubmit {
            attempt_id,
            intent: Box::new(Intent {
                operation_id: operation_id(chance.below(OPERATIONS)),
                kind: "render".to_owned(),
                specialist: "farm".to_owned(),
                request: Digest([2; 32]),
                resubmit: chance.pick(&[Resubmit::SameKey, Resubmit::Never]),
                not_cancelable: chance.percent(30).then(|| "it has no stop".to_owned()),
            }),
        },
        LOSE_SUBMIT => {
            JobCommand::LoseSubmit { attempt_id, details: Box::default(), not_before: None, jitter }
        }
        CONCLUDE => JobCommand::ConcludeOperation {
            operation_id: match job.map(|job| &job.state) {
                Some(JobState::AwaitingExternal { operation, .. }) if chance.percent(70) => operation.clone(),
                Some(_) | None => operation_id(chance.below(OPERATIONS)),
            },
            ending: chance.pick(&[
                OperationEnding::Completed(ResultRefs::default()),
                OperationEnding::TimedOut(Retryable::Yes),
                OperationEnding::Cancelled,
                OperationEnding::Expired { last_error: None },
                OperationEnding::Unknown,
            ]),
            jitter,
        },
        ANSWER => {
            let name = if chance.percent(95) { BodyName::Answer } else { BodyName::Result };
            JobCommand::Answer { answer: body(chance, name) }
        }
        REQUEST_CANCEL if chance.percent(20) => JobCommand::CancelOrRefuse { by: None, reason: text(chance) },
        REQUEST_CANCEL => JobCommand::RequestCancel { by: None, reason: text(chance) },
        CANCEL_ANSWER if chance.percent(10) => JobCommand::RecordRelease {
            attempt_id,
            release: chance.pick(&[Release::Ended, Release::Persists]),
        },
        CANCEL_ANSWER if chance.percent(20) => {
            let recipients = [CancelRecipient::Executor, CancelRecipient::Worker];
            JobCommand::RecordCancelTry { attempt_id, tried: CancelTry::sent_to(chance.pick(&recipients)) }
        }
        CANCEL_ANSWER => {
            JobCommand::RecordCancelAnswer { attempt_id, answer: cancel_answer(chance), release: None }
        }
        TIME_OUT_CANCEL => JobCommand::TimeOutCancel,
        LOSE_LEASE => JobCommand::LoseLease { attempt_id, jitter, error: None },
        QUEUE_AGAIN => JobCommand::QueueAgain { trigger: chance.pick(&[Trigger::Run, Trigger::Retry]) },
        TIME_OUT_ATTEMPT => JobCommand::TimeOutAttempt { attempt_id, jitter },
        EXPIRE => JobCommand::Expire,
        PURGE => JobCommand::Purge,
        RETIRE => JobCommand::Retire,
        other => unreachable!("{other} is no command"),
    }
}

fn operation_command(chance: &mut Chance, state: Option<&Operation>, now: Timestamp) -> OperationCommand {
    let jitter = Jitter(0x4000);
    let number = match state {
        None if chance.percent(80) => 0,
        Some(operation) if operation.ended.is_none() && chance.percent(60) => match &operation.cancel {
            _ if operation.expires_at <= now => 8,
            Some(_) => 7,
            None => chance.pick(&[1, 1, 5, 6]),
        },
        Some(_) | None => chance.below(12),
    };
    match number {
        0 => {
            let job = job_id(chance.below(JOBS));
            let attempt_id = AttemptId::new("attempt-1");
            let operation = Box::new(new_operation(chance, &job, &attempt_id, now));
            if chance.percent(80) {
                OperationCommand::Accept(operation)
            } else {
                OperationCommand::AcceptOrphan { operation, reason: "stale_attempt".to_owned() }
            }
        }
        1..=4 => OperationCommand::RecordPoll(Box::new(Poll { answer: poll_answer(chance), jitter })),
        5 => {
            let error = PollError {
                code: "connect_failed".to_owned(),
                message: text(chance),
                ..PollError::default()
            };
            OperationCommand::RecordPoll(Box::new(Poll {
                answer: PollAnswer::NotNow { error, retry_after: domain::policy::Hint::Absent },
                jitter,
            }))
        }
        6 => OperationCommand::RequestCancel {
            by: None,
            reason: text(chance),
            origin: chance.pick(&[CancelOrigin::Caller, CancelOrigin::ParentJob]),
        },
        7 => OperationCommand::RecordCancelAnswer {
            answer: cancel_answer(chance),
            told: None,
            said: None,
            jitter,
        },
        8 => chance.pick(&[
            OperationCommand::Expire,
            OperationCommand::Lose,
            OperationCommand::Abandon { reason: "job_expired".to_owned() },
        ]),
        9 | 10 => OperationCommand::Settle { by: None, note: text(chance) },
        _ => chance.pick(&[OperationCommand::Retire, OperationCommand::Purge]),
    }
}

fn new_job(chance: &mut Chance, now: Timestamp) -> NewJob {
    let retry = RetryPolicy { max_attempts: 2, backoff_seconds: 5, max_backoff_seconds: 60 };
    let mut spec = JobSpec::plain(Some(chance.pick(&LANES)), retry);
    spec.title = text(chance);
    spec.priority = chance.pick(&[0, 0, 5, -5]);
    spec.circle = chance.pick(&[None, Some("press".to_owned())]);
    match chance.below(20) {
        0 => spec.retry.max_attempts = 0,
        1 => spec.deadline_at = Some(now),
        // Work that someone outside pulls, and may take a while for.
        6..=10 => {
            spec.lane = spec.executor.take();
            spec.timeout_seconds = chance.pick(&[None, Some(1), Some(1)]);
        }
        2..=5 => spec.expires_at = Some(now.plus_seconds(chance.pick(&[1, 30, 60, 1_000]))),
        _ => {}
    }
    let due_at = chance.percent(30).then(|| now.plus_seconds(chance.pick(&[1, 5, 60])));
    NewJob { spec, due_at, bodies: vec![body(chance, BodyName::Input)] }
}

fn new_operation(
    chance: &mut Chance,
    job_id: &JobId,
    attempt_id: &AttemptId,
    now: Timestamp,
) -> NewOperation {
    let policy = KindPolicy {
        max_attempts: chance.pick(&[1, 3, 720]),
        max_ttl_seconds: chance.pick(&[10, 900]),
        unknown_policy: chance.pick(&[UnknownPolicy::Terminal, UnknownPolicy::RetryUntilExpiry]),
        cancel_policy: chance.pick(&[CancelPolicy::Provider, CancelPolicy::Provider, CancelPolicy::Deny]),
        min_retry_after_seconds: u32::from(!chance.percent(3)),
        persistence: chance.pick(&[Persistence::Durable, Persistence::Volatile]),
        ..KindPolicy::default()
    };
    NewOperation {
        job_id: job_id.clone(),
        attempt_id: attempt_id.clone(),
        kind: "render".to_owned(),
        specialist: "farm".to_owned(),
        circle: None,
        handle: chance.percent(90).then(|| body_ref(BodyName::Handle, b"handle")),
        cancelability: chance
            .pick(&[Cancelability::Cancelable, Cancelability::NotCancelable("no stop".to_owned())]),
        retry_after: hint(chance),
        fail_after: hint(chance),
        action_ttl: Hint::Absent,
        deadline_at: chance.percent(10).then(|| now.plus_seconds(chance.pick(&[0, 60]))),
        progress_hint: None,
        policy,
        jitter: Jitter(0x4000),
        ttl_limit: None,
        external_job_id: None,
    }
}

fn poll_answer(chance: &mut Chance) -> PollAnswer {
    match chance.below(8) {
        0..=2 => PollAnswer::Open(
            chance.pick(&[ReportedStatus::Pending, ReportedStatus::Running]),
            PollHints {
                retry_after: hint(chance),
                fail_after: hint(chance),
                progress_hint: Some(text(chance)),
                progress: chance.percent(30).then(|| Json::parse(r#"{"page":2}"#).unwrap()),
            },
        ),
        3 => PollAnswer::Completed(ResultRefs::default()),
        4 => PollAnswer::Failed(PollFailure {
            failure_detail: text(chance),
            error_code: Some("no_paper".to_owned()),
            result: ResultRefs::default(),
            retryable: chance.pick(&[Retryable::Yes, Retryable::No]),
        }),
        5 => PollAnswer::TimedOut,
        6 => PollAnswer::Cancelled,
        _ => PollAnswer::Unknown,
    }
}

fn details(chance: &mut Chance) -> Details {
    Details {
        attempts_used_up: false,
        limit: None,
        release: None,
        reason: chance.percent(30).then(|| "because".to_owned()),
        phase: chance.percent(30).then(|| "inking".to_owned()),
        progress: chance.percent(20).then(|| Json::parse(r#"{"done":0.50}"#).unwrap()),
        note: chance.percent(40).then(|| text(chance)),
        question: chance.percent(5).then(|| body(chance, BodyName::Question)),
        result: ResultRefs {
            summary: chance.percent(20).then(|| "12 pages".to_owned()),
            data: chance.percent(20).then(|| body(chance, BodyName::Result)),
            ..ResultRefs::default()
        },
        provenance: None,
    }
}

/// Mostly the current attempt.
fn attempt(chance: &mut Chance, job: Option<&Job>) -> AttemptId {
    match job.map(|job| &job.attempts[..]) {
        Some([.., last]) if chance.percent(85) => last.id.clone(),
        Some([first, ..]) if chance.percent(50) => first.id.clone(),
        _ => AttemptId::new("attempt-of-nobody"),
    }
}

fn cancel_answer(chance: &mut Chance) -> CancelAnswer {
    chance.pick(&[
        CancelAnswer::Cancelled,
        CancelAnswer::Accepted,
        CancelAnswer::Refused("too late".to_owned()),
        CancelAnswer::Unreachable,
    ])
}

fn hint(chance: &mut Chance) -> Hint {
    chance.pick(&[Hint::Absent, Hint::Absent, Hint::Seconds(20), Hint::Seconds(-1), Hint::Invalid])
}

fn body(chance: &mut Chance, name: BodyName) -> BodyRef {
    let mut body = body_ref(name, name.as_str().as_bytes());
    if chance.percent(2) {
        body.size = u64::MAX;
    }
    body
}

fn text(chance: &mut Chance) -> String {
    match chance.below(40) {
        0 => "x".repeat(TOO_LONG),
        1 => String::new(),
        2 => "\u{201e}quoted\u{201c} \"twice\"\n\\ \u{0007}".to_owned(),
        number => format!("text {number}"),
    }
}

/// A worker that pulls.
fn someone() -> Caller {
    Caller { token: "tok-1".to_owned(), peer: None }
}
