//! One fact of every variant, with every field filled, and again with all that may be left out left out.

use domain::event::EventFact;
use domain::job::{
    AfterExternal, AnswerKept, AttemptLimit, Caller, CallerWait, CancelCause, Conclusion, Details,
    ExpiryCause as JobExpiry, Holder, Intent, JobFact, JobSpec, JobStateName, NewJob, Release, RequeueCause,
    Resubmit, ResultRefs, StaleReport, Trigger, Unavailability,
};
use domain::operation::{
    Accepted, Cancelability, Ending, ExpiryCause, LatePolled, Operation, OperationFact, OperationLink,
    OperationStatus, PollError, Polled, ReportedStatus, Settlement,
};
use domain::policy::{KindPolicy, LifeLimit};
use domain::record::apply;
use domain::run::{RunFact, StepLink};
use domain::{
    AttemptId, BodyName, BodyRef, Checkpoint, Checksum, Fact, JobId, Json, OperationId, OwnerId, Record,
    RetryPolicy, RunId, Timestamp,
};
use store::{VIEW_FORMAT, body_ref};

use crate::cancel_samples::{cancel_answers, cancel_tries};
use crate::routing_samples;

/// Every kind of fact that this release writes.
pub const KINDS: [&str; 61] = [
    "job.created/1",
    "job.dispatched/1",
    "job.delivered/1",
    "job.started/1",
    "job.input_awaited/1",
    "job.blocked/1",
    "job.deferred/1",
    "job.external_arrived/1",
    "job.answered/1",
    "job.resumed/1",
    "job.noted/1",
    "job.completed/1",
    "job.failed/1",
    "job.requeued/1",
    "job.cancel_requested/1",
    "job.cancel_answered/1",
    "job.cancelled/1",
    "job.expired/1",
    "job.became_unavailable/1",
    "job.stale_report_kept/1",
    "job.purged/1",
    "job.retired/1",
    "external_production_dispatched/1",
    "external_production_polled/1",
    "external_production_resolved/1",
    "operation.cancel_requested/1",
    "operation.cancel_answered/1",
    "operation.cancelled/1",
    "operation.expired/1",
    "operation.contradicted/1",
    "operation.retired/1",
    "job.submit_intended/1",
    "operation.handle_learned/1",
    "operation.settled/1",
    "operation.late_polled/1",
    "event.published/1",
    "event.settled/1",
    "event.retired/1",
    "run.started/1",
    "run.step_started/1",
    "run.group_entered/1",
    "run.step_ended/1",
    "run.step_reopened/1",
    "run.cancel_requested/1",
    "run.condemned/1",
    "run.ended/1",
    "run.retired/1",
    "job.stale_reports_counted/1",
    "job.timers_moved/1",
    "operation.timers_moved/1",
    "event.timers_moved/1",
    "run.timers_moved/1",
    "operation.purged/1",
    "job.cancel_repeated/1",
    "job.cancel_repeats_counted/1",
    "job.cancel_tried/1",
    "job.executor_released/1",
    "run.cancel_continued/1",
    "operation.checkpointed/1",
    "job.paused/1",
    "job.unpaused/1",
];

/// At least one fact of every kind.
pub fn every_fact() -> Vec<Fact> {
    let every = KINDS.iter().flat_map(|kind| -> Vec<Fact> {
        match kind.split('.').next() {
            Some("operation") if *kind == KINDS[58] => operation_checkpoints(),
            Some("job") => job(kind).into_iter().map(Fact::Job).collect(),
            Some("event") => routing_samples::event(kind).into_iter().map(Fact::Event).collect(),
            Some("run") => routing_samples::run(kind).into_iter().map(Fact::Run).collect(),
            Some(_) | None => operation(kind).into_iter().map(Fact::Operation).collect(),
        }
    });
    every.collect()
}

/// Where a variant stands in `KINDS`. A new variant does not compile until it has a place there.
pub fn place(fact: &Fact) -> usize {
    match fact {
        Fact::Checkpointed { .. } => 58,
        Fact::Job(fact) => match fact {
            JobFact::Created(_) => 0,
            JobFact::Dispatched { .. } => 1,
            JobFact::Delivered => 2,
            JobFact::Started(_) => 3,
            JobFact::InputAwaited(_) => 4,
            JobFact::Blocked(_) => 5,
            JobFact::Deferred { .. } => 6,
            JobFact::ExternalArrived(_) => 7,
            JobFact::Answered(_) => 8,
            JobFact::Resumed => 9,
            JobFact::Noted(_) => 10,
            JobFact::Completed(_) => 11,
            JobFact::Failed(_) => 12,
            JobFact::Requeued { .. } => 13,
            JobFact::Paused { .. } => 59,
            JobFact::Unpaused { .. } => 60,
            JobFact::CancelRequested { .. } => 14,
            JobFact::CancelAnswered(_) => 15,
            JobFact::Cancelled(_) => 16,
            JobFact::Expired(_) => 17,
            JobFact::BecameUnavailable(_) => 18,
            JobFact::StaleReportKept(_) => 19,
            JobFact::Purged => 20,
            JobFact::Retired => 21,
            JobFact::TimersMoved { .. } => 48,
            JobFact::SubmitIntended(_) => 31,
            JobFact::StaleReportsCounted { .. } => 47,
            JobFact::CancelRepeated { .. } => 53,
            JobFact::CancelRepeatsCounted { .. } => 54,
            JobFact::CancelTried(_) => 55,
            JobFact::ExecutorReleased { .. } => 56,
        },
        Fact::Operation(fact) => match fact {
            OperationFact::Dispatched(_) => 22,
            OperationFact::Polled(_) => 23,
            OperationFact::Resolved(_) => 24,
            OperationFact::CancelRequested { .. } => 25,
            OperationFact::CancelAnswered { .. } => 26,
            OperationFact::Cancelled => 27,
            OperationFact::Expired { .. } => 28,
            OperationFact::Contradicted { .. } => 29,
            OperationFact::Retired => 30,
            OperationFact::TimersMoved { .. } => 49,
            OperationFact::HandleLearned { .. } => 32,
            OperationFact::Settled(_) => 33,
            OperationFact::LatePolled(_) => 34,
            OperationFact::Purged { .. } => 52,
        },
        Fact::Event(fact) => match fact {
            EventFact::Published(_) => 35,
            EventFact::Settled(_) => 36,
            EventFact::Retired => 37,
            EventFact::TimersMoved { .. } => 50,
        },
        Fact::Run(fact) => match fact {
            RunFact::Started(_) => 38,
            RunFact::StepStarted { .. } => 39,
            RunFact::GroupEntered { .. } => 40,
            RunFact::StepEnded { .. } => 41,
            RunFact::StepReopened { .. } => 42,
            RunFact::CancelRequested { .. } => 43,
            RunFact::Condemned { .. } => 44,
            RunFact::Ended(_) => 45,
            RunFact::Retired => 46,
            RunFact::TimersMoved { .. } => 51,
            RunFact::CancelContinued { .. } => 57,
        },
    }
}

fn job(kind: &str) -> Vec<JobFact> {
    match kind {
        "job.created/1" => {
            vec![JobFact::Created(Box::new(full_job())), JobFact::Created(Box::new(plain_job()))]
        }
        "job.dispatched/1" => [
            (Trigger::Automatic, Holder::Bearer),
            (Trigger::Run, Holder::Bearer),
            (Trigger::Retry, Holder::Bearer),
            (Trigger::Run, Holder::Daemon),
            (Trigger::Automatic, Holder::Caller(Caller { token: "tok-1".to_owned(), peer: None })),
            (
                Trigger::Automatic,
                Holder::Caller(Caller { token: "tok-1".to_owned(), peer: Some("joan".to_owned()) }),
            ),
        ]
        .map(|(trigger, holder)| JobFact::Dispatched {
            attempt_id: attempt(),
            number: 2,
            owner: OwnerId::new("node-1/boot-7"),
            trigger,
            holder,
        })
        .to_vec(),
        "job.stale_reports_counted/1" => vec![JobFact::StaleReportsCounted { count: 40 }],
        "job.delivered/1" => vec![JobFact::Delivered],
        "job.started/1" => details().map(JobFact::Started).to_vec(),
        "job.input_awaited/1" => details().map(JobFact::InputAwaited).to_vec(),
        "job.blocked/1" => details().map(JobFact::Blocked).to_vec(),
        "job.deferred/1" => [AfterExternal::Finish, AfterExternal::Resume]
            .map(|then| JobFact::Deferred { operation_id: OperationId::new("op-1"), then })
            .to_vec(),
        "job.submit_intended/1" => [
            (Resubmit::SameKey, None),
            (Resubmit::Never, None),
            (Resubmit::SameKey, Some("the press has no stop".to_owned())),
        ]
        .map(|(resubmit, not_cancelable)| {
            JobFact::SubmitIntended(Box::new(Intent {
                operation_id: OperationId::new("op-1"),
                kind: "render".to_owned(),
                specialist: "render-farm".to_owned(),
                request: body(BodyName::Handle).sha256,
                resubmit,
                not_cancelable,
            }))
        })
        .to_vec(),
        "job.external_arrived/1" => details().map(JobFact::ExternalArrived).to_vec(),
        "job.answered/1" => vec![JobFact::Answered(AnswerKept { answer: body(BodyName::Answer) })],
        "job.resumed/1" => vec![JobFact::Resumed],
        "job.noted/1" => details().map(JobFact::Noted).to_vec(),
        "job.completed/1" => details().map(JobFact::Completed).to_vec(),
        "job.failed/1" => details().map(JobFact::Failed).to_vec(),
        "job.requeued/1" => [
            RequeueCause::AttemptFailed,
            RequeueCause::LeaseLost,
            RequeueCause::SubmitUnknown,
            RequeueCause::Asked,
        ]
        .into_iter()
        .zip(details().into_iter().cycle())
        .map(|(cause, details)| JobFact::Requeued { due_at: time(), cause, details })
        .collect(),
        "job.paused/1" => {
            [Some("ada".to_owned()), None].map(|by| JobFact::Paused { reason: by.clone(), by }).to_vec()
        }
        "job.unpaused/1" => {
            [Some("ada".to_owned()), None].map(|by| JobFact::Unpaused { reason: by.clone(), by }).to_vec()
        }
        "job.cancel_requested/1" => [(Some("ada"), Some(time())), (None, Some(time())), (None, None)]
            .map(|(by, limit_at)| JobFact::CancelRequested {
                by: by.map(str::to_owned),
                reason: "not needed".to_owned(),
                limit_at,
            })
            .to_vec(),
        "job.cancel_repeated/1" => [Some("ada".to_owned()), None]
            .map(|by| JobFact::CancelRepeated { by, reason: "not needed".to_owned() })
            .to_vec(),
        "job.cancel_repeats_counted/1" => vec![JobFact::CancelRepeatsCounted { count: 40 }],
        "job.cancel_tried/1" => cancel_tries().into_iter().map(JobFact::CancelTried).collect(),
        "job.executor_released/1" => [Release::Ended, Release::Persists]
            .map(|release| JobFact::ExecutorReleased { attempt: 2, release })
            .to_vec(),
        "job.cancel_answered/1" => cancel_answers().into_iter().map(JobFact::CancelAnswered).collect(),
        "job.cancelled/1" => [
            CancelCause::NeverStarted,
            CancelCause::Confirmed,
            CancelCause::TimedOut,
            CancelCause::LeaseLost,
            CancelCause::SubmitUnknown,
        ]
        .map(|cause| JobFact::Cancelled(Conclusion { cause, details: full_details() }))
        .to_vec(),
        "job.expired/1" => [JobExpiry::TimeOver, JobExpiry::OperationExpired, JobExpiry::Reported]
            .map(|cause| JobFact::Expired(Conclusion { cause, details: Details::default() }))
            .to_vec(),
        "job.became_unavailable/1" => [Unavailability::LeaseLost, Unavailability::Reported]
            .map(|cause| JobFact::BecameUnavailable(Conclusion { cause, details: Details::default() }))
            .to_vec(),
        "job.stale_report_kept/1" => details()
            .map(|details| {
                let state = JobStateName::Completed;
                JobFact::StaleReportKept(StaleReport { attempt_id: attempt(), state, at: time(), details })
            })
            .to_vec(),
        "job.timers_moved/1" => BY_MICROS.map(|by_micros| JobFact::TimersMoved { by_micros }).to_vec(),
        "job.purged/1" => vec![JobFact::Purged],
        "job.retired/1" => vec![JobFact::Retired],
        other => panic!("no sample of {other}"),
    }
}

/// By how much the clock steps: both ways.
pub const BY_MICROS: [i64; 2] = [3_600_000_000, -259_200_000_000];

fn operation(kind: &str) -> Vec<OperationFact> {
    match kind {
        "external_production_dispatched/1" => [Cancelability::Cancelable, uncancelable()]
            .map(|cancelability| OperationFact::Dispatched(Box::new(accepted(cancelability))))
            .to_vec(),
        "external_production_polled/1" => {
            vec![OperationFact::Polled(full_poll()), OperationFact::Polled(quiet_poll())]
        }
        "external_production_resolved/1" => [
            Ending::Completed { result: full_result() },
            Ending::Completed { result: ResultRefs::default() },
            Ending::Failed {
                failure_detail: "out of paper".to_owned(),
                error_code: Some("no_paper".to_owned()),
                result: full_result(),
            },
            Ending::TimedOut,
            Ending::Expired,
            Ending::Unknown,
            Ending::NobodyToAsk,
        ]
        .map(OperationFact::Resolved)
        .to_vec(),
        "operation.cancel_requested/1" => [Some("ada".to_owned()), None]
            .map(|by| OperationFact::CancelRequested { by, reason: "not needed".to_owned() })
            .to_vec(),
        "operation.cancel_answered/1" => cancel_answers()
            .into_iter()
            .zip([None, None, None, Some(time())])
            .map(|(answer, next_try_at)| {
                let told = next_try_at.map(|_| "HTTP 500".to_owned());
                let said = next_try_at.map(|_| body_ref(BodyName::Error, b"no"));
                OperationFact::CancelAnswered { answer, told, said, next_try_at }
            })
            .collect(),
        "operation.cancelled/1" => vec![OperationFact::Cancelled],
        "operation.expired/1" => [
            ExpiryCause::LifetimeOver,
            ExpiryCause::MaxAttemptsExhausted,
            ExpiryCause::Abandoned("job_expired".to_owned()),
            ExpiryCause::SubmitOutcomeUnknown,
            ExpiryCause::VolatileLost,
        ]
        .map(|cause| OperationFact::Expired { cause })
        .to_vec(),
        "operation.contradicted/1" => {
            OperationStatus::ALL.map(|status| OperationFact::Contradicted { status }).to_vec()
        }
        "operation.timers_moved/1" => {
            BY_MICROS.map(|by_micros| OperationFact::TimersMoved { by_micros }).to_vec()
        }
        "operation.purged/1" => {
            [false, true].map(|handle_kept| OperationFact::Purged { handle_kept }).to_vec()
        }
        "operation.retired/1" => vec![OperationFact::Retired],
        "operation.handle_learned/1" => {
            [Cancelability::Cancelable, Cancelability::NotCancelable("no".to_owned())]
                .map(|cancelability| OperationFact::HandleLearned {
                    handle: body(BodyName::Handle),
                    cancelability,
                    external_job_id: Some("render-7".to_owned()),
                })
                .to_vec()
        }
        "operation.late_polled/1" => {
            let error =
                PollError { code: "connect_failed".to_owned(), status: Some(502), ..PollError::default() };
            [(Some(error), Some(time())), (None, None)]
                .map(|(error, next_poll_at)| OperationFact::LatePolled(LatePolled { error, next_poll_at }))
                .to_vec()
        }
        "operation.settled/1" => [
            Settlement::Stopped,
            Settlement::EndedOutside { status: OperationStatus::TimedOut },
            Settlement::ByHand { by: Some("ada".to_owned()), note: "looked".to_owned() },
            Settlement::ByHand { by: None, note: "looked".to_owned() },
        ]
        .map(OperationFact::Settled)
        .to_vec(),
        other => panic!("no sample of {other}"),
    }
}

fn full_job() -> NewJob {
    let text = |text: &str| Some(text.to_owned());
    let spec = JobSpec {
        title: "Render \u{201e}der Umschlag\u{201c}, 12 \u{00d7} 18".to_owned(),
        kind: "render".to_owned(),
        executor: text("farm"),
        lane: text("slow"),
        label: None,
        priority: -7,
        retry: RetryPolicy { max_attempts: 3, backoff_seconds: 2, max_backoff_seconds: 60 },
        retry_requested: false,
        timeout_seconds: Some(900),
        deadline_at: Some(time()),
        expires_at: Some(time().plus_seconds(60)),
        created_by_peer_id: text("peer-ada"),
        owner_peer_id: text("peer-grace"),
        assigned_peer_id: text("peer-joan"),
        path: text("books/cover"),
        session_id: text("session-1"),
        correlation_id: text("order-7"),
        circle: text("press"),
        source_kind: text("calendar"),
        source_id: text("cal-1"),
        scope: text("print"),
        visibility: "private".to_owned(),
        tags: vec!["cover".to_owned(), "urgent \"now\"".to_owned()],
        execution: Some(Json::parse(r#"{"delivery":{"kind":"ask"}}"#).unwrap()),
        expires_by: Some(LifeLimit::MaxTtl),
        allow_restart_recovery: true,
        catalog_digest: text("sha256:0a1b"),
        wait: Some(CallerWait::Asked(1_500)),
        step: Some(Box::new(StepLink {
            run_id: RunId::new("run-1"),
            visit: 3,
            pipeline: "tides".to_owned(),
            step: "render".to_owned(),
            ordinal: 0,
            node: Some("daemon-1".to_owned()),
        })),
    };
    let bodies =
        [BodyName::Request, BodyName::Prompt, BodyName::Input, BodyName::Provenance].map(body).to_vec();
    NewJob { spec, due_at: Some(time()), bodies }
}

fn plain_job() -> NewJob {
    NewJob { spec: JobSpec::plain(None, RetryPolicy::ONCE), due_at: None, bodies: Vec::new() }
}

fn details() -> [Details; 2] {
    [full_details(), Details::default()]
}

fn full_details() -> Details {
    Details {
        reason: Some("half_done".to_owned()),
        phase: Some("inking".to_owned()),
        progress: Some(Json::parse(r#"{"pages":[1,2.50,1e3],"of":null}"#).unwrap()),
        note: Some("page 2 of 4\nsecond line".to_owned()),
        question: Some(body(BodyName::Question)),
        result: full_result(),
        provenance: Some(body(BodyName::Provenance)),
        attempts_used_up: true,
        limit: Some(Box::new(AttemptLimit::Executor { seconds: 2, command: Some("poll".to_owned()) })),
        release: Some(Release::Ended),
    }
}

fn full_result() -> ResultRefs {
    ResultRefs {
        summary: Some("4 pages".to_owned()),
        data: Some(body(BodyName::Result)),
        error: Some(body(BodyName::Error)),
        artifacts: Some(body(BodyName::Artifacts)),
        emitted: 2,
        left_files: true,
    }
}

fn accepted(cancelability: Cancelability) -> Accepted {
    Accepted {
        link: OperationLink {
            job_id: JobId::new("work-1"),
            attempt_id: attempt(),
            kind: "render".to_owned(),
            specialist: "render-farm".to_owned(),
            circle: None,
        },
        handle: Some(body(BodyName::Handle)),
        invalid_hint: cancelability == Cancelability::Cancelable,
        progress_hint: (cancelability == Cancelability::Cancelable).then(|| "in the queue".to_owned()),
        cancelability,
        interval_seconds: 5,
        next_poll_at: time(),
        expires_at: time().plus_seconds(900),
        policy: KindPolicy::default(),
        bounded_by: Some(LifeLimit::JobTtl),
        asked_retry_after_seconds: Some(99_999),
        asked_ttl_seconds: Some(99_999),
        external_job_id: Some("render-7".to_owned()),
    }
}

/// Of an operation right after its beginning, and after a poll and whatever else leaves something in its state.
fn operation_checkpoints() -> Vec<Fact> {
    let id = OperationId::new("op-1");
    let mut state = Some(Record::from(Operation::new(id.clone(), &accepted(uncancelable()), time())));
    let first = state.clone();
    let polls = [OperationFact::Polled(full_poll()), OperationFact::Polled(quiet_poll())];
    let orders = ["operation.cancel_requested/1", "operation.cancel_answered/1"].map(operation);
    for fact in polls.into_iter().chain(orders.into_iter().flatten()) {
        apply(&mut state, &id.clone().into(), &fact.into(), time()).unwrap();
    }
    let states = first.into_iter().chain(state);
    let checkpoint = |state| Checkpoint::new(VIEW_FORMAT, Checksum([0x5a; 16]), state);
    states.map(|state| Fact::Checkpointed { checkpointed: Box::new(checkpoint(state)) }).collect()
}

fn uncancelable() -> Cancelability {
    Cancelability::NotCancelable("the press has no stop".to_owned())
}

fn full_poll() -> Polled {
    Polled {
        status: Some(ReportedStatus::Running),
        interval_seconds: Some(30),
        asked_retry_after_seconds: Some(40),
        progress_hint: Some("page 2".to_owned()),
        progress: Some(Json::parse(r#"{"page":2}"#).unwrap()),
        expires_at: Some(time()),
        error: Some(PollError {
            code: "connect_failed".to_owned(),
            status: Some(503),
            said: Some(body_ref(BodyName::Error, b"no paper")),
            ..PollError::default()
        }),
        invalid_hint: true,
        next_poll_at: time(),
    }
}

fn quiet_poll() -> Polled {
    Polled {
        status: None,
        interval_seconds: None,
        asked_retry_after_seconds: None,
        progress_hint: None,
        progress: None,
        expires_at: None,
        error: None,
        invalid_hint: false,
        next_poll_at: time(),
    }
}

fn body(name: BodyName) -> BodyRef {
    body_ref(name, name.as_str().as_bytes())
}

fn attempt() -> AttemptId {
    AttemptId::new("attempt-1")
}

fn time() -> Timestamp {
    Timestamp::from_micros(1_750_000_000_123_456)
}
