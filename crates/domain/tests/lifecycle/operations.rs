//! Operations in every status, and every command to them.

use domain::body::{BodyName, BodyRef, Digest};
use domain::job::{CancelAnswer, ResultRefs, Retryable};
use domain::operation::{
    Accepted, CancelOrigin, Cancelability, Ending, ExpiryCause, NewOperation, Operation, OperationCommand,
    OperationFact, OperationLink, Poll, PollAnswer, PollError, PollFailure, PollHints, Polled,
    ReportedStatus, apply,
};
use domain::policy::{Hint, KindPolicy, Persistence, UnknownPolicy};
use domain::{Jitter, JobId, OperationId, Timestamp};

use crate::job_situations::{BEFORE, LATE, NOW, attempt};

/// An operation somewhere in its life.
pub(crate) struct Situation {
    pub(crate) besides: &'static str,
    pub(crate) operation: Operation,
}

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
    /// What the contract calls whoever makes such a move.
    pub(crate) by: &'static str,
    pub(crate) at: Timestamp,
    pub(crate) command: OperationCommand,
}

/// How many commands there are.
pub(crate) const NAMES: usize = 13;

pub(crate) fn name(command: &OperationCommand) -> &'static str {
    match command {
        OperationCommand::Accept(_) => "accept",
        OperationCommand::AcceptOrphan { .. } => "accept orphan",
        OperationCommand::RecordPoll(poll) if matches!(poll.answer, PollAnswer::NotNow { .. }) => {
            "record poll error"
        }
        OperationCommand::RecordPoll(_) => "record poll",
        OperationCommand::RequestCancel { .. } => "request cancel",
        OperationCommand::RecordCancelAnswer { .. } => "record cancel answer",
        OperationCommand::Settle { .. } => "settle",
        OperationCommand::Expire => "expire",
        OperationCommand::Lose => "lose",
        OperationCommand::Abandon { .. } => "abandon",
        OperationCommand::MoveTimers { .. } => "move timers",
        OperationCommand::Purge => "purge",
        OperationCommand::Retire => "retire",
    }
}

/// Every situation, in the order of life.
pub(crate) fn situations() -> Vec<Situation> {
    let ask_again = KindPolicy { unknown_policy: UnknownPolicy::RetryUntilExpiry, ..KindPolicy::default() };
    let one_poll = KindPolicy { max_attempts: 1, ..KindPolicy::default() };
    let volatile = KindPolicy { persistence: Persistence::Volatile, ..KindPolicy::default() };
    let two_polls = KindPolicy { max_attempts: 2, ..KindPolicy::default() };
    let cancelable = Cancelability::Cancelable;
    let not_cancelable = Cancelability::NotCancelable("already printing".to_owned());
    let plain = KindPolicy::default;
    let requested = || OperationFact::CancelRequested { by: None, reason: "not needed".to_owned() };
    let mut all = vec![
        at("", plain(), cancelable.clone(), &[]),
        at("not cancelable", plain(), not_cancelable.clone(), &[]),
        at("cancel requested", plain(), cancelable.clone(), &[requested()]),
        at("last poll granted", one_poll, cancelable.clone(), &[]),
        at("unknown is asked again", ask_again.clone(), cancelable.clone(), &[]),
        at("volatile", volatile.clone(), cancelable.clone(), &[]),
        at("", plain(), cancelable.clone(), &[running()]),
        at("volatile", volatile, cancelable.clone(), &[running()]),
        at("not cancelable", plain(), not_cancelable, &[running()]),
        at("cancel requested", plain(), cancelable.clone(), &[running(), requested()]),
        at("last poll granted", two_polls, cancelable.clone(), &[running()]),
        at("unknown is asked again", ask_again, cancelable.clone(), &[running()]),
    ];
    for end in [
        OperationFact::Resolved(Ending::Completed { result: ResultRefs::default() }),
        OperationFact::Resolved(Ending::Failed {
            failure_detail: "out of paper".to_owned(),
            error_code: None,
            result: ResultRefs::default(),
        }),
        OperationFact::Resolved(Ending::TimedOut),
        OperationFact::Cancelled,
        OperationFact::Expired { cause: ExpiryCause::LifetimeOver },
        OperationFact::Expired { cause: ExpiryCause::Abandoned("cancel_unconfirmed".to_owned()) },
        OperationFact::Resolved(Ending::Unknown),
    ] {
        all.push(at("", plain(), cancelable.clone(), &[requested(), end]));
    }
    all
}

pub(crate) fn topics() -> Vec<Topic> {
    let open = |status| PollAnswer::Open(status, PollHints::default());
    let failed = || {
        PollAnswer::Failed(PollFailure {
            failure_detail: "out of paper".to_owned(),
            error_code: None,
            result: ResultRefs::default(),
            retryable: Retryable::No,
        })
    };
    let completed = || PollAnswer::Completed(ResultRefs::default());
    let error =
        PollError { code: "connect_failed".to_owned(), message: String::new(), ..PollError::default() };
    let poll_error = OperationCommand::RecordPoll(Box::new(Poll {
        answer: PollAnswer::NotNow { error, retry_after: domain::policy::Hint::Absent },
        jitter: Jitter(0),
    }));
    let orphan = OperationCommand::AcceptOrphan {
        operation: Box::new(new_operation()),
        reason: "stale_attempt".to_owned(),
    };
    let abandon = OperationCommand::Abandon { reason: "job_expired".to_owned() };
    vec![
        topic(
            "Polls",
            "poll",
            vec![
                poll("pending", NOW, open(ReportedStatus::Pending)),
                poll("running", NOW, open(ReportedStatus::Running)),
                poll("completed", NOW, completed()),
                poll("failed", NOW, failed()),
                poll("timed out", NOW, PollAnswer::TimedOut),
                poll("expired outside", NOW, PollAnswer::Expired),
                poll("cancelled", NOW, PollAnswer::Cancelled),
                poll("unknown", NOW, PollAnswer::Unknown),
                order("no answer", "poll", NOW, poll_error.clone()),
                poll("completed, life over", LATE, completed()),
                order("no answer, life over", "poll", LATE, poll_error),
            ],
        ),
        topic(
            "Cancel",
            "cancel",
            vec![
                order("by a caller", "cancel", NOW, cancel(CancelOrigin::Caller)),
                order("by its job", "cancel", NOW, cancel(CancelOrigin::ParentJob)),
                cancel_answer("answer: cancelled", CancelAnswer::Cancelled),
                cancel_answer("answer: accepted", CancelAnswer::Accepted),
                cancel_answer("answer: refused", CancelAnswer::Refused("too late".to_owned())),
                cancel_answer("answer: unreachable", CancelAnswer::Unreachable),
                order(
                    "settled by hand",
                    "cancel",
                    NOW,
                    OperationCommand::Settle { by: None, note: "looked".to_owned() },
                ),
            ],
        ),
        topic(
            "Time and keeping",
            "time",
            vec![
                order("expire, too early", "expire", NOW, OperationCommand::Expire),
                order("expire", "expire", LATE, OperationCommand::Expire),
                order(
                    "the clock stepped",
                    "clock stepped",
                    NOW,
                    OperationCommand::MoveTimers { by_micros: 3_600_000_000 },
                ),
                order("its job ended", "job ended", NOW, abandon),
                order("its daemon is gone", "daemon gone", NOW, OperationCommand::Lose),
                order("accept", "accept", NOW, OperationCommand::Accept(Box::new(new_operation()))),
                order("accept as an orphan", "accept", NOW, orphan),
                order("purge", "purge", NOW, OperationCommand::Purge),
                order("retire", "retire", NOW, OperationCommand::Retire),
            ],
        ),
    ]
}

pub(crate) fn id() -> OperationId {
    OperationId::new("op-1")
}

pub(crate) fn new_operation() -> NewOperation {
    NewOperation {
        job_id: JobId::new("work-1"),
        attempt_id: attempt(1),
        kind: "render".to_owned(),
        specialist: "render-farm".to_owned(),
        circle: None,
        handle: Some(handle()),
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
    }
}

fn at(
    besides: &'static str,
    policy: KindPolicy,
    cancelability: Cancelability,
    facts: &[OperationFact],
) -> Situation {
    let accepted = Accepted {
        link: OperationLink {
            job_id: JobId::new("work-1"),
            attempt_id: attempt(1),
            kind: "render".to_owned(),
            specialist: "render-farm".to_owned(),
            circle: None,
        },
        handle: Some(handle()),
        cancelability,
        interval_seconds: 5,
        progress_hint: None,
        invalid_hint: false,
        next_poll_at: BEFORE.plus_seconds(5),
        expires_at: BEFORE.plus_seconds(900),
        policy,
        bounded_by: None,
        asked_retry_after_seconds: None,
        asked_ttl_seconds: None,
        external_job_id: None,
    };
    let mut operation = Operation::new(id(), &accepted, BEFORE);
    for fact in facts {
        apply(&mut operation, fact, BEFORE).expect("the facts fit");
    }
    Situation { besides, operation }
}

fn running() -> OperationFact {
    OperationFact::Polled(Polled {
        status: Some(ReportedStatus::Running),
        interval_seconds: None,
        progress_hint: None,
        progress: None,
        expires_at: None,
        error: None,
        invalid_hint: false,
        next_poll_at: BEFORE.plus_seconds(5),
        asked_retry_after_seconds: None,
    })
}

fn handle() -> BodyRef {
    BodyRef { name: BodyName::Handle, sha256: Digest([7; 32]), size: 7 }
}

fn topic(title: &'static str, word: &'static str, orders: Vec<Order>) -> Topic {
    Topic { title, word, orders }
}

fn order(label: &'static str, by: &'static str, at: Timestamp, command: OperationCommand) -> Order {
    Order { label, by, at, command }
}

fn poll(label: &'static str, at: Timestamp, answer: PollAnswer) -> Order {
    order(label, "poll", at, OperationCommand::RecordPoll(Box::new(Poll { answer, jitter: Jitter(0) })))
}

fn cancel(origin: CancelOrigin) -> OperationCommand {
    OperationCommand::RequestCancel { by: None, reason: "not needed".to_owned(), origin }
}

fn cancel_answer(label: &'static str, answer: CancelAnswer) -> Order {
    let command = OperationCommand::RecordCancelAnswer { answer, told: None, said: None, jitter: Jitter(0) };
    order(label, "cancel confirmed", NOW, command)
}
