//! Loomworks names three events of work outside; a ledger of ours can be read by whoever knows them.

use std::collections::BTreeSet;

use domain::job::{ResultRefs, Retryable};
use domain::operation::{
    Cancelability, NewOperation, OperationCommand, Poll, PollAnswer, PollError, PollFailure, PollHints,
    ReportedStatus,
};
use domain::policy::{Hint, KindPolicy};
use domain::record::{apply, decide};
use domain::{
    AttemptId, BodyName, Command, Decision, Jitter, JobId, OperationId, Record, RecordId, Timestamp,
};
use store::{body_ref, fact_kind};

const START: Timestamp = Timestamp::from_seconds(1_000);

/// Carries the commands out one after the other, a second apart; the names of the facts in between.
fn kinds_of(commands: Vec<OperationCommand>) -> Vec<&'static str> {
    let id = RecordId::Operation(OperationId::new("op-1"));
    let mut record: Option<Record> = None;
    let mut kinds = Vec::new();
    for (command, second) in commands.into_iter().zip(0..) {
        let now = START.plus_seconds(second);
        let decision = decide(record.as_ref(), &id, &Command::Operation(command), now);
        let Decision::Facts { facts, .. } = decision else { panic!("{decision:?}") };
        for fact in facts {
            apply(&mut record, &id, &fact, now).unwrap();
            kinds.push(fact_kind(&fact));
        }
    }
    kinds
}

fn accept() -> OperationCommand {
    OperationCommand::Accept(Box::new(NewOperation {
        job_id: JobId::new("work-1"),
        attempt_id: AttemptId::new("attempt-1"),
        kind: "render".to_owned(),
        specialist: "render-farm".to_owned(),
        circle: None,
        handle: Some(body_ref(BodyName::Handle, b"render-7")),
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
    }))
}

fn answers(answer: PollAnswer) -> OperationCommand {
    OperationCommand::RecordPoll(Box::new(Poll { answer, jitter: Jitter(0) }))
}

fn poll_raises() -> OperationCommand {
    let error =
        PollError { code: "connect_failed".to_owned(), message: String::new(), ..PollError::default() };
    OperationCommand::RecordPoll(Box::new(Poll {
        answer: PollAnswer::NotNow { error, retry_after: domain::policy::Hint::Absent },
        jitter: Jitter(0),
    }))
}

// conforms: L45
#[test]
fn three_kinds_drive_work_outside_from_its_dispatch_through_every_poll_to_every_end() {
    let failure = PollFailure {
        failure_detail: "out of paper".to_owned(),
        error_code: None,
        result: ResultRefs::default(),
        retryable: Retryable::No,
    };
    let failed = PollAnswer::Failed(failure.clone());
    // What was stopped, or given up by the host, has facts of its own: another dialect has them.
    for end in [
        PollAnswer::Completed(ResultRefs::default()),
        failed,
        PollAnswer::TimedOut,
        PollAnswer::Expired,
        PollAnswer::Unknown,
        PollAnswer::NobodyToAsk(failure),
    ] {
        let kinds = kinds_of(vec![
            accept(),
            answers(PollAnswer::Open(ReportedStatus::Pending, PollHints::default())),
            poll_raises(),
            answers(PollAnswer::Open(ReportedStatus::Running, PollHints::default())),
            answers(end),
        ]);
        assert_eq!(
            kinds,
            [
                "external_production_dispatched/1",
                "external_production_polled/1",
                "external_production_polled/1",
                "external_production_polled/1",
                "external_production_resolved/1",
            ]
        );
        let names: BTreeSet<_> = kinds.iter().map(|kind| kind.trim_end_matches("/1")).collect();
        assert_eq!(names.len(), 3);
    }
}
