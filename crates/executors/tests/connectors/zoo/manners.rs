//! Every manner, many times, to its one written outcome (the table in the README of the slow service).

use std::collections::BTreeMap;

use domain::job::{CancelAnswer, JobStateName};
use domain::operation::{OperationFact, OperationStatus, OrphanReason, ReportedStatus, Settlement};
use domain::{JobId, OperationId};
use serde_json::{Value, json};
use slow_service::Manner;

use super::given::{TTL_SECONDS, Zoo, kind};

/// How often each manner is tried: every form of it once, and once all forms in turn.
const COPIES: usize = 10;
/// Sets another number.
const COPIES_VARIABLE: &str = "LONGHAUL_ZOO_COPIES";
/// When somebody wants to stop what can hardly be stopped.
const CANCEL_AFTER_SECONDS: u64 = 5;
/// Everything is over by then: submits are tried again for a minute, lives are as long as granted, and cancels of what was given up.
const LONGEST_SECONDS: u64 = 120 + TTL_SECONDS + 60;

/// Where a host must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// With the result, after so many failed polls.
    Done { errors: usize },
    /// Given up, after nothing but failed polls.
    ExpiredByErrors,
    /// Given up although it answered, and listed until it was stopped.
    ExpiredWhileRunning,
    /// The service does not know it; listed.
    Unknown,
    /// The refusal is on record; the work's own end.
    RefusedAndDone,
    /// Cancelled without confirmation; listed.
    CancelledUnconfirmed,
    /// Cancelled, as the service says.
    CancelledConfirmed,
}

/// The written outcome of each. A new manner does not compile until it has one.
const fn outcome(manner: Manner) -> Outcome {
    match manner {
        Manner::Honest
        | Manner::Flips
        | Manner::LiesAboutProgress
        | Manner::Regresses
        | Manner::HostileRetryAfter
        | Manner::AnswersTwice
        | Manner::AcceptsThenDrops
        | Manner::CallbackRepeats
        | Manner::CallbackContradicts
        | Manner::CallbackBeforeAnswer
        | Manner::CallbackLate
        | Manner::CallbackForged
        | Manner::CallbackNever => Outcome::Done { errors: 0 },
        Manner::Closes | Manner::Error500 | Manner::RateLimited429 | Manner::Overloaded503 => {
            Outcome::Done { errors: 3 }
        }
        Manner::ResultOnSecondTry => Outcome::Done { errors: 1 },
        Manner::NeverEnds => Outcome::ExpiredWhileRunning,
        Manner::Forgets | Manner::ForgetsNowAndThen => Outcome::Unknown,
        Manner::HugeBody
        | Manner::GzipBomb
        | Manner::Drips
        | Manner::Hangs
        | Manner::Garbage
        | Manner::RedirectsToPrivate
        | Manner::RedirectLoop
        | Manner::WrongLength
        | Manner::Slow30s => Outcome::ExpiredByErrors,
        Manner::RefusesCancel => Outcome::RefusedAndDone,
        Manner::CancelUnreachable => Outcome::CancelledUnconfirmed,
        Manner::CancelsLate => Outcome::CancelledConfirmed,
    }
}

/// What the policy of a kind says besides: services that do not answer are not waited for long.
fn policy(manner: Manner) -> &'static str {
    if matches!(manner, Manner::Drips | Manner::Hangs | Manner::Slow30s) {
        ", status_timeout_ms: 150"
    } else {
        ""
    }
}

fn is_cancelled_by_somebody(manner: Manner) -> bool {
    matches!(manner, Manner::RefusesCancel | Manner::CancelUnreachable | Manner::CancelsLate)
}

fn input(manner: Manner, copy: usize) -> Value {
    // Long enough to be asked several times; what cannot be stopped outlasts the patience of the cancel.
    let seconds = if manner == Manner::CancelUnreachable { 80 } else { 20 };
    let mut input = json!({
        "seconds": seconds, "steps": 5, "result": { "pages": 3 }, "manner": manner.name(),
    });
    if copy + 1 < COPIES {
        input["variant"] = copy.into();
    }
    input
}

/// A zoo with so many of each, and all of their jobs.
async fn filled(copies: usize) -> (Zoo, BTreeMap<JobId, Manner>) {
    let kinds: Vec<_> = Manner::ALL.into_iter().map(|manner| (kind(manner), policy(manner))).collect();
    let zoo = Zoo::open(&kinds).await;
    let mut jobs = BTreeMap::new();
    for manner in Manner::ALL {
        for copy in 0..copies {
            jobs.insert(zoo.create(&kind(manner), &input(manner, copy % COPIES)).await, manner);
        }
    }
    (zoo, jobs)
}

// conforms: O35 O36 O45 O76 O81 O82
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_manner_comes_to_its_one_written_outcome_in_time_and_within_the_bounds() {
    let copies = std::env::var(COPIES_VARIABLE).map_or(COPIES, |copies| copies.parse().unwrap());
    let (zoo, jobs) = filled(copies).await;
    zoo.settle(|_| true).await;
    for second in 0..LONGEST_SECONDS {
        zoo.second().await;
        if second == CANCEL_AFTER_SECONDS {
            for (job, _) in jobs.iter().filter(|(_, manner)| is_cancelled_by_somebody(**manner)) {
                zoo.world.cancel(job).await;
            }
        }
    }
    zoo.assert_within_the_bounds();
    zoo.assert_over_in_time();
    let facts = facts_by_operation(&zoo);
    for (job, manner) in &jobs {
        assert_outcome(&zoo, job, *manner, &facts);
    }
    // However often it was asked for: each was started once.
    assert_eq!(zoo.service.starts().len(), jobs.len());
}

fn facts_by_operation(zoo: &Zoo) -> BTreeMap<OperationId, Vec<OperationFact>> {
    let mut facts: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (id, _, fact) in zoo.facts() {
        facts.entry(id).or_default().push(fact);
    }
    facts
}

fn assert_outcome(zoo: &Zoo, id: &JobId, manner: Manner, facts: &BTreeMap<OperationId, Vec<OperationFact>>) {
    let (job, operation) = (zoo.world.job(id), zoo.world.operation(id));
    let facts = &facts[&operation.id];
    let polls = || {
        let polled = |fact: &'_ OperationFact| {
            if let OperationFact::Polled(polled) = fact { Some(polled.clone()) } else { None }
        };
        facts.iter().filter_map(polled)
    };
    let errors = polls().filter(|polled| polled.error.is_some()).count();
    let told = format!("{manner:?}: {job:?} {operation:?} {facts:?}");
    let is = |state: JobStateName, status: OperationStatus| {
        assert_eq!((job.state.name(), operation.status()), (state, status), "{told}");
    };
    let done = || {
        is(JobStateName::Completed, OperationStatus::Completed);
        assert_eq!(zoo.world.result(&job), json!({ "pages": 3 }), "{told}");
        assert_eq!(operation.orphan(), None, "{told}");
    };
    match outcome(manner) {
        Outcome::Done { errors: expected } => {
            done();
            assert_eq!(errors, expected, "{told}");
        }
        Outcome::ExpiredByErrors => {
            is(JobStateName::Expired, OperationStatus::Expired);
            assert!(errors > 2 && errors == polls().count(), "{told}");
            assert_eq!(operation.reported, ReportedStatus::Pending, "{told}");
        }
        Outcome::ExpiredWhileRunning => {
            is(JobStateName::Expired, OperationStatus::Expired);
            assert_eq!((errors, operation.reported), (0, ReportedStatus::Running), "{told}");
            // It was listed from its end until its service confirmed that it has stopped it.
            let ended = facts.iter().position(|fact| matches!(fact, OperationFact::Expired { .. }));
            let settled = |fact: &OperationFact| matches!(fact, OperationFact::Settled(Settlement::Stopped));
            assert!(ended < facts.iter().position(settled), "{told}");
        }
        Outcome::Unknown => {
            is(JobStateName::Failed, OperationStatus::Unknown);
            let expected = if learns_its_end(manner) { None } else { Some(OrphanReason::Unknown) };
            assert_eq!(operation.orphan(), expected, "{told}");
        }
        Outcome::RefusedAndDone => {
            done();
            assert!(matches!(answers(&operation)[..], [CancelAnswer::Refused(_)]), "{told}");
        }
        Outcome::CancelledUnconfirmed => {
            is(JobStateName::Cancelled, OperationStatus::Expired);
            let expected = if learns_its_end(manner) { None } else { Some(OrphanReason::CancelUnconfirmed) };
            assert_eq!(operation.orphan(), expected, "{told}");
            let answers = answers(&operation);
            assert!(
                answers.len() > 2 && answers.iter().all(|one| *one == CancelAnswer::Unreachable),
                "{told}"
            );
        }
        Outcome::CancelledConfirmed => {
            is(JobStateName::Cancelled, OperationStatus::Cancelled);
            assert_eq!(operation.orphan(), None, "{told}");
        }
    }
    // Work that has begun does not un-begin.
    let begun = polls().filter(|polled| polled.status.is_some()).count();
    assert!(begun <= 1, "{told}");
}

/// Whether a service that left an orphan says later, when it is asked again, that it ended.
fn learns_its_end(manner: Manner) -> bool {
    matches!(manner, Manner::ForgetsNowAndThen | Manner::CancelUnreachable)
}

fn answers(operation: &domain::operation::Operation) -> Vec<CancelAnswer> {
    let cancel = operation.cancel.as_ref();
    cancel.map(|cancel| cancel.answers.iter().map(|kept| kept.answer.clone()).collect()).unwrap_or_default()
}
