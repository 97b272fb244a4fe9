//! Every command to a job, in all the forms that make a difference.

use domain::body::{BodyName, BodyRef, Digest};
use domain::job::{
    AfterExternal, Caller, CancelAnswer, CancelRecipient, CancelTry, Details, Dispatch, Holder, Intent, Job,
    JobCommand, JobStateName, LeftBy, OperationEnding, Release, Report, Reporter, Resubmit, ResultRefs,
    Retryable, SubmitWord, Trigger,
};
use domain::operation::{Cancelability, NewOperation};
use domain::policy::{Hint, KindPolicy};
use domain::{AttemptId, Jitter, OperationId, OwnerId, Timestamp};

use crate::job_situations::{EARLY, LATE, NOW, answer, attempt, intent, new_job, operation_id};

/// Commands that belong together: one table of the page.
pub(crate) struct Topic {
    pub(crate) title: &'static str,
    /// What the list of moves calls it.
    pub(crate) word: &'static str,
    pub(crate) orders: Vec<Order>,
}

/// One form of a command.
pub(crate) struct Order {
    /// The column's head.
    pub(crate) label: &'static str,
    /// What the design calls whoever makes such a move.
    pub(crate) by: &'static str,
    pub(crate) at: Timestamp,
    pub(crate) command: Box<dyn Fn(&Job) -> JobCommand>,
}

/// How many commands there are.
pub(crate) const NAMES: usize = 28;

pub(crate) fn name(command: &JobCommand) -> &'static str {
    match command {
        JobCommand::Create(_) => "create",
        JobCommand::Dispatch(_) => "dispatch",
        JobCommand::QueueAgain { .. } => "queue again",
        JobCommand::Resume { .. } => "resume",
        JobCommand::Deliver { .. } => "deliver",
        JobCommand::Heartbeat { .. } => "heartbeat",
        JobCommand::Report(_) => "report",
        JobCommand::IntendSubmit { .. } => "intend submit",
        JobCommand::LoseSubmit { .. } => "lose submit",
        JobCommand::Defer { .. } => "defer",
        JobCommand::ConcludeOperation { .. } => "conclude operation",
        JobCommand::Answer { .. } => "answer",
        JobCommand::Pause { .. } => "pause",
        JobCommand::Unpause { .. } => "unpause",
        JobCommand::RequestCancel { .. } => "request cancel",
        JobCommand::CancelOrRefuse { .. } => "cancel or refuse",
        JobCommand::RecordCancelTry { .. } => "record cancel try",
        JobCommand::RecordRelease { .. } => "record release",
        JobCommand::CountCancelRepeats { .. } => "count cancel repeats",
        JobCommand::RecordCancelAnswer { .. } => "record cancel answer",
        JobCommand::TimeOutCancel => "time out cancel",
        JobCommand::LoseLease { .. } => "lose lease",
        JobCommand::TimeOutAttempt { .. } => "time out attempt",
        JobCommand::CountStaleReports { .. } => "count stale reports",
        JobCommand::Expire => "expire",
        JobCommand::Purge => "purge",
        JobCommand::MoveTimers { .. } => "move timers",
        JobCommand::Retire => "retire",
    }
}

pub(crate) fn topics() -> Vec<Topic> {
    vec![
        topic(
            "Dispatch",
            "dispatch",
            vec![
                order("by itself, too early", "dispatch", EARLY, |job| dispatch(job, Trigger::Automatic)),
                order("by itself", "dispatch", NOW, |job| dispatch(job, Trigger::Automatic)),
                order("run", "run", EARLY, |job| dispatch(job, Trigger::Run)),
                order("retry", "retry", NOW, |job| dispatch(job, Trigger::Retry)),
                order("run, deadline over", "run", LATE, |job| dispatch(job, Trigger::Run)),
                order("run, to pullers", "run", EARLY, |_| JobCommand::QueueAgain { trigger: Trigger::Run }),
                order("retry, to pullers", "retry", NOW, |_| JobCommand::QueueAgain {
                    trigger: Trigger::Retry,
                }),
            ],
        ),
        topic(
            "Executor and answers",
            "executor",
            vec![
                order("deliver", "deliver", NOW, |job| JobCommand::Deliver { attempt_id: current(job) }),
                order("heartbeat", "heartbeat", NOW, |job| JobCommand::Heartbeat {
                    attempt_id: current(job),
                    by: Reporter::Daemon,
                }),
                order("heartbeat, other attempt", "heartbeat", NOW, |_| JobCommand::Heartbeat {
                    attempt_id: attempt(9),
                    by: Reporter::Daemon,
                }),
                order("heartbeat, of someone else", "heartbeat", NOW, |job| JobCommand::Heartbeat {
                    attempt_id: current(job),
                    by: someone_else(),
                }),
                order("intend to submit", "submit", NOW, |job| intend(job, "op-1")),
                order("intend, other operation", "submit", NOW, |job| intend(job, "op-2")),
                order("submit outcome unknown", "submit", NOW, |job| JobCommand::LoseSubmit {
                    attempt_id: current(job),
                    details: Box::new(note()),
                    not_before: None,
                    jitter: Jitter(0),
                }),
                order("defer", "defer", NOW, |job| defer(job, "op-1")),
                order("defer, other operation", "defer", NOW, |job| defer(job, "op-2")),
                order("resume", "resume", NOW, |job| JobCommand::Resume { attempt_id: current(job) }),
                order("answer", "answer", NOW, |_| JobCommand::Answer { answer: answer() }),
            ],
        ),
        topic(
            "Pause",
            "pause",
            vec![
                order("pause", "pause", NOW, |_| JobCommand::Pause { by: None, reason: None }),
                order("resume", "resume", NOW, |_| JobCommand::Unpause { by: None, reason: None }),
            ],
        ),
        topic("Reports", "report", reports()),
        topic("Other reports", "report", other_reports()),
        topic("End of its operation", "operation", endings()),
        topic(
            "Cancel",
            "cancel",
            vec![
                order("request", "cancel", NOW, |_| JobCommand::RequestCancel {
                    by: None,
                    reason: "not needed".to_owned(),
                }),
                order("request, if it can be stopped", "cancel", NOW, |_| JobCommand::CancelOrRefuse {
                    by: None,
                    reason: "not needed".to_owned(),
                }),
                cancel_try("sent to its worker", CancelTry::sent_to(CancelRecipient::Worker)),
                cancel_try("cannot be stopped", CancelTry::NotCancelable("it has no stop".to_owned())),
                cancel_answer("answer: cancelled", CancelAnswer::Cancelled),
                cancel_answer("answer: never started", CancelAnswer::NeverStarted),
                cancel_answer("answer: accepted", CancelAnswer::Accepted),
                cancel_answer("answer: refused", CancelAnswer::Refused("too late".to_owned())),
                cancel_answer("answer: unreachable", CancelAnswer::Unreachable),
                order("time limit, too early", "cancel timed out", EARLY, |_| JobCommand::TimeOutCancel),
                order("time limit", "cancel timed out", NOW, |_| JobCommand::TimeOutCancel),
            ],
        ),
        topic(
            "Lease and time",
            "time",
            vec![
                order("lease lost", "lease lost", NOW, |job| lose_lease(current(job))),
                order("lease of another attempt lost", "lease lost", NOW, |_| lose_lease(attempt(9))),
                order("attempt took too long, too early", "attempt timed out", EARLY, time_out_attempt),
                order("attempt took too long", "attempt timed out", NOW, time_out_attempt),
                order("expire, too early", "expire", NOW, |_| JobCommand::Expire),
                order("expire", "expire", LATE, |_| JobCommand::Expire),
                order("the clock stepped", "clock stepped", NOW, |_| JobCommand::MoveTimers {
                    by_micros: 3_600_000_000,
                }),
            ],
        ),
        topic(
            "Keeping",
            "keeping",
            vec![
                order("create", "create", NOW, |_| JobCommand::Create(Box::new(new_job()))),
                order("count stale reports", "count", NOW, |_| JobCommand::CountStaleReports { count: 3 }),
                order("count repeated cancels", "count", NOW, |_| JobCommand::CountCancelRepeats {
                    count: 3,
                }),
                order("what became of its executor", "count", NOW, |job| JobCommand::RecordRelease {
                    attempt_id: current(job),
                    release: Release::Ended,
                }),
                order("purge", "purge", NOW, |_| JobCommand::Purge),
                order("retire", "retire", NOW, |_| JobCommand::Retire),
            ],
        ),
    ]
}

fn time_out_attempt(job: &Job) -> JobCommand {
    JobCommand::TimeOutAttempt { attempt_id: current(job), jitter: Jitter(0) }
}

/// A report with a note, of every state.
fn reports() -> Vec<Order> {
    JobStateName::ALL
        .into_iter()
        .map(|state| {
            order(state.as_str(), "report", NOW, move |job| report(job, state, note(), Retryable::No))
        })
        .collect()
}

fn other_reports() -> Vec<Order> {
    let completed = JobStateName::Completed;
    vec![
        order("failed, may be tried again", "report", NOW, |job| {
            report(job, JobStateName::Failed, note(), Retryable::Yes)
        }),
        order("the same state, silently", "report", NOW, |job| {
            report(job, job.state.name(), Details::default(), Retryable::No)
        }),
        order("completed, by another attempt", "report", NOW, move |_| {
            by(Some(attempt(9)), completed, note(), Retryable::No)
        }),
        order("completed, by someone else", "report", NOW, move |job| {
            let JobCommand::Report(mut told) = report(job, completed, note(), Retryable::No) else {
                unreachable!("it is one")
            };
            told.by = someone_else();
            JobCommand::Report(told)
        }),
        order("completed, attempt id left out", "report", NOW, move |_| {
            by(None, completed, note(), Retryable::No)
        }),
    ]
}

fn endings() -> Vec<Order> {
    let failed = |retryable| OperationEnding::Failed {
        reason: "no_paper".to_owned(),
        result: ResultRefs::default(),
        retryable,
    };
    vec![
        ending("completed", OperationEnding::Completed(ResultRefs::default())),
        ending("failed", failed(Retryable::No)),
        ending("failed, may be tried again", failed(Retryable::Yes)),
        ending(
            "given up",
            OperationEnding::GivenUp { reason: "volatile_lost".to_owned(), result: ResultRefs::default() },
        ),
        ending("timed out", OperationEnding::TimedOut(Retryable::No)),
        ending("timed out, may be submitted again", OperationEnding::TimedOut(Retryable::Yes)),
        ending("cancelled", OperationEnding::Cancelled),
        ending("expired", OperationEnding::Expired { last_error: None }),
        ending("unknown", OperationEnding::Unknown),
        order("another operation", "operation ended", NOW, |_| JobCommand::ConcludeOperation {
            operation_id: OperationId::new("op-2"),
            ending: OperationEnding::TimedOut(Retryable::No),
            jitter: Jitter(0),
        }),
    ]
}

fn topic(title: &'static str, word: &'static str, orders: Vec<Order>) -> Topic {
    Topic { title, word, orders }
}

fn order(
    label: &'static str,
    by: &'static str,
    at: Timestamp,
    command: impl Fn(&Job) -> JobCommand + 'static,
) -> Order {
    Order { label, by, at, command: Box::new(command) }
}

fn ending(label: &'static str, ending: OperationEnding) -> Order {
    order(label, "operation ended", NOW, move |_| JobCommand::ConcludeOperation {
        operation_id: operation_id(),
        ending: ending.clone(),
        jitter: Jitter(0),
    })
}

fn cancel_answer(label: &'static str, answer: CancelAnswer) -> Order {
    order(label, "cancel confirmed", NOW, move |job| JobCommand::RecordCancelAnswer {
        attempt_id: current(job),
        answer: answer.clone(),
        release: None,
    })
}

fn cancel_try(label: &'static str, tried: CancelTry) -> Order {
    order(label, "cancel", NOW, move |job| JobCommand::RecordCancelTry {
        attempt_id: current(job),
        tried: tried.clone(),
    })
}

fn dispatch(job: &Job, trigger: Trigger) -> JobCommand {
    let attempt_id = attempt(job.attempt_count + 1);
    JobCommand::Dispatch(Dispatch {
        attempt_id,
        owner: OwnerId::new("node-1"),
        trigger,
        holder: Holder::Daemon,
    })
}

fn lose_lease(attempt_id: AttemptId) -> JobCommand {
    JobCommand::LoseLease { attempt_id, jitter: Jitter(0), error: None }
}

fn intend(job: &Job, operation: &str) -> JobCommand {
    let intent = Intent { operation_id: OperationId::new(operation), ..intent(Resubmit::SameKey) };
    JobCommand::IntendSubmit { attempt_id: current(job), intent: Box::new(intent) }
}

fn defer(job: &Job, operation: &str) -> JobCommand {
    let attempt_id = current(job);
    let new = NewOperation {
        job_id: job.id.clone(),
        attempt_id: attempt_id.clone(),
        kind: "render".to_owned(),
        specialist: "render-farm".to_owned(),
        circle: None,
        handle: Some(BodyRef { name: BodyName::Handle, sha256: Digest([7; 32]), size: 7 }),
        cancelability: Cancelability::Cancelable,
        retry_after: Hint::Absent,
        fail_after: Hint::Absent,
        action_ttl: Hint::Absent,
        deadline_at: None,
        progress_hint: None,
        policy: KindPolicy::default(),
        jitter: Jitter(0),
        ttl_limit: None,
        external_job_id: None,
    };
    JobCommand::Defer {
        attempt_id,
        operation_id: OperationId::new(operation),
        operation: Box::new(new),
        then: AfterExternal::Finish,
        left_by: LeftBy::Executor,
    }
}

/// A report by whoever holds the job: its newest attempt, or its doer.
fn report(job: &Job, state: JobStateName, details: Details, retryable: Retryable) -> JobCommand {
    by(job.last_attempt().map(|attempt| attempt.id.clone()), state, details, retryable)
}

fn by(
    attempt_id: Option<AttemptId>,
    state: JobStateName,
    details: Details,
    retryable: Retryable,
) -> JobCommand {
    JobCommand::Report(Box::new(Report {
        attempt_id,
        state,
        details,
        retryable,
        jitter: Jitter(0),
        submit: SubmitWord::Unsaid,
        by: Reporter::Daemon,
    }))
}

/// A caller to whom the daemon has handed nothing.
fn someone_else() -> Reporter {
    Reporter::Caller(Caller { token: "tok-2".to_owned(), peer: None })
}

fn current(job: &Job) -> AttemptId {
    attempt(job.attempt_count)
}

fn note() -> Details {
    Details { note: Some("a note".to_owned()), ..Details::default() }
}
