//! Jobs in every state, in all the situations that make a difference to some command.

use domain::body::{BodyName, BodyRef, Digest};
use domain::job::{
    AfterExternal, AnswerKept, CancelCause, CancelTry, Conclusion, Details, ExpiryCause, Holder, Intent, Job,
    JobFact, JobSpec, NewJob, RequeueCause, Resubmit, Trigger, Unavailability, apply,
};
use domain::{AttemptId, JobId, OperationId, OwnerId, RetryPolicy, Timestamp};

/// When the jobs came to where they are.
pub(crate) const BEFORE: Timestamp = Timestamp::from_seconds(1_000);
/// When queued work is due and cancels have waited long enough: between [`EARLY`] and [`NOW`].
pub(crate) const DUE: Timestamp = Timestamp::from_seconds(1_050);
/// A command that comes too early.
pub(crate) const EARLY: Timestamp = Timestamp::from_seconds(1_001);
/// A command in time.
pub(crate) const NOW: Timestamp = Timestamp::from_seconds(1_100);
/// A command after the deadline.
pub(crate) const LATE: Timestamp = Timestamp::from_seconds(2_000);

/// A job somewhere in its life.
pub(crate) struct Situation {
    /// What the design calls it.
    pub(crate) class: &'static str,
    /// What is special about it, if anything.
    pub(crate) besides: &'static str,
    pub(crate) job: Job,
}

/// Every situation, in the order of life.
pub(crate) fn all() -> Vec<Situation> {
    let mut all = vec![
        at("queued, never dispatched", "", &[]),
        at("queued, never dispatched", "paused", &[JobFact::Paused { by: None, reason: None }]),
        at("queued, to be tried again", "", &[dispatched(1), sent_back()]),
        at(
            "queued, to be tried again",
            "a service may have it",
            &[dispatched(1), intended(Resubmit::SameKey), lease_lost()],
        ),
    ];
    for (class, arrival) in [
        ("dispatching", None),
        ("delivered", Some(JobFact::Delivered)),
        ("running", Some(started())),
        ("awaiting_input", Some(JobFact::InputAwaited(said()))),
        ("awaiting_external", Some(deferred(AfterExternal::Finish))),
        ("blocked", Some(JobFact::Blocked(said()))),
    ] {
        let arrived: Vec<JobFact> = std::iter::once(dispatched(1)).chain(arrival).collect();
        let with = |more: JobFact| [arrived.clone(), vec![more]].concat();
        all.push(at(class, "", &arrived));
        all.push(at(
            class,
            "last attempt",
            &[vec![dispatched(1), sent_back()], on_attempt_2(&arrived)].concat(),
        ));
        all.push(at(class, "cancel pending", &with(cancel_requested())));
        if class == "dispatching" {
            for (besides, resubmit) in [
                ("a service may have it", Resubmit::SameKey),
                ("a service may have it, once", Resubmit::Never),
            ] {
                all.push(at(class, besides, &with(intended(resubmit))));
            }
            let asked_to_stop = [dispatched(1), intended(Resubmit::SameKey), cancel_requested()];
            all.push(at(class, "a service may have it, cancel pending", &asked_to_stop));
            let given = [dispatched(1), intended_for_good()];
            all.push(at(class, "a service may have it and cannot stop it", &given));
            let asked_to_stop = [given.to_vec(), vec![cancel_requested(), cannot_be_stopped()]].concat();
            all.push(at(class, "a service may have it and cannot stop it, cancel pending", &asked_to_stop));
        }
        if class == "running" {
            let answered = JobFact::Answered(AnswerKept { answer: answer() });
            let to_be_resumed = [dispatched(1), JobFact::InputAwaited(said()), answered];
            all.push(at(class, "to be resumed", &to_be_resumed));
        }
        if class == "awaiting_external" {
            let going_on = [dispatched(1), deferred(AfterExternal::Resume)];
            all.push(at(class, "its executor goes on", &going_on));
            let asked_to_stop = [arrived.clone(), vec![cancel_requested(), cannot_be_stopped()]].concat();
            all.push(at(class, "it cannot be stopped, cancel pending", &asked_to_stop));
        }
    }
    let answered = JobFact::Answered(AnswerKept { answer: answer() });
    for (class, facts) in [
        ("queued, never dispatched", vec![]),
        ("delivered", vec![dispatched(1), JobFact::Delivered]),
        ("running", vec![dispatched(1), JobFact::InputAwaited(said()), answered]),
        ("failed", vec![dispatched(1), JobFact::Failed(said())]),
        ("unavailable, lease lost", vec![dispatched(1), unavailable(Unavailability::LeaseLost)]),
    ] {
        all.push(pulled_at(class, "pulled", &facts));
    }
    for (class, arrival) in [
        ("running, never dispatched", started()),
        ("awaiting_input, never dispatched", JobFact::InputAwaited(said())),
        ("blocked, never dispatched", JobFact::Blocked(said())),
    ] {
        all.push(at(class, "", std::slice::from_ref(&arrival)));
        all.push(at(class, "cancel pending", &[arrival, cancel_requested()]));
    }
    for (class, end) in [
        ("completed", JobFact::Completed(said())),
        ("failed", JobFact::Failed(said())),
        ("cancelled", JobFact::Cancelled(Conclusion { cause: CancelCause::Confirmed, details: said() })),
        ("expired", JobFact::Expired(Conclusion { cause: ExpiryCause::TimeOver, details: said() })),
        ("unavailable", unavailable(Unavailability::Reported)),
        ("unavailable, lease lost", unavailable(Unavailability::LeaseLost)),
    ] {
        all.push(at(class, "", &[dispatched(1), end.clone()]));
        if class != "unavailable, lease lost" {
            all.push(at(class, "never dispatched", std::slice::from_ref(&end)));
        }
        let late = JobFact::CancelRequested { by: None, reason: "not needed".to_owned(), limit_at: None };
        all.push(at(class, "asked to stop since", &[dispatched(1), end.clone(), late]));
        all.push(at(class, "purged", &[dispatched(1), end, JobFact::Purged]));
    }
    all
}

pub(crate) fn new_job() -> NewJob {
    let retry = RetryPolicy { max_attempts: 2, backoff_seconds: 10, max_backoff_seconds: 60 };
    let spec = JobSpec { deadline_at: Some(LATE), ..JobSpec::plain(Some("render"), retry) };
    NewJob { spec, due_at: Some(DUE), bodies: Vec::new() }
}

pub(crate) fn attempt(number: u32) -> AttemptId {
    AttemptId::new(format!("attempt-{number}"))
}

pub(crate) fn operation_id() -> OperationId {
    OperationId::new("op-1")
}

pub(crate) fn answer() -> BodyRef {
    BodyRef { name: BodyName::Answer, sha256: Digest([1; 32]), size: 1 }
}

fn at(class: &'static str, besides: &'static str, facts: &[JobFact]) -> Situation {
    after(new_job(), class, besides, facts)
}

/// The same of work that someone outside pulls from a lane, and may take a minute for.
fn pulled_at(class: &'static str, besides: &'static str, facts: &[JobFact]) -> Situation {
    let mut new = new_job();
    new.spec.executor = None;
    new.spec.lane = Some("film".to_owned());
    new.spec.timeout_seconds = Some(60);
    after(new, class, besides, facts)
}

fn after(new: NewJob, class: &'static str, besides: &'static str, facts: &[JobFact]) -> Situation {
    let mut job = Job::new(JobId::new("work-1"), &new, BEFORE);
    for fact in facts {
        apply(&mut job, fact, BEFORE).expect("the facts fit");
    }
    let state = class.split(',').next();
    assert_eq!(state, Some(job.state.name().as_str()), "the class begins with the state");
    Situation { class, besides, job }
}

fn on_attempt_2(facts: &[JobFact]) -> Vec<JobFact> {
    [&[dispatched(2)], &facts[1..]].concat()
}

fn dispatched(number: u32) -> JobFact {
    let owner = OwnerId::new("node-1");
    JobFact::Dispatched {
        attempt_id: attempt(number),
        number,
        owner,
        trigger: Trigger::Automatic,
        holder: Holder::Daemon,
    }
}

fn started() -> JobFact {
    JobFact::Started(said())
}

fn intended(resubmit: Resubmit) -> JobFact {
    JobFact::SubmitIntended(Box::new(intent(resubmit)))
}

/// The same, of work that its service cannot stop.
fn intended_for_good() -> JobFact {
    let not_cancelable = Some("it has no stop".to_owned());
    JobFact::SubmitIntended(Box::new(Intent { not_cancelable, ..intent(Resubmit::SameKey) }))
}

fn cannot_be_stopped() -> JobFact {
    JobFact::CancelTried(CancelTry::NotCancelable("it has no stop".to_owned()))
}

/// What an executor is about to ask of a service.
pub(crate) fn intent(resubmit: Resubmit) -> Intent {
    Intent {
        operation_id: OperationId::new("op-1"),
        kind: "render".to_owned(),
        specialist: "render-farm".to_owned(),
        request: Digest([9; 32]),
        resubmit,
        not_cancelable: None,
    }
}

fn lease_lost() -> JobFact {
    JobFact::Requeued { due_at: DUE, cause: RequeueCause::LeaseLost, details: Details::default() }
}

fn sent_back() -> JobFact {
    JobFact::Requeued { due_at: DUE, cause: RequeueCause::AttemptFailed, details: said() }
}

fn deferred(then: AfterExternal) -> JobFact {
    JobFact::Deferred { operation_id: operation_id(), then }
}

fn cancel_requested() -> JobFact {
    JobFact::CancelRequested { by: None, reason: "not needed".to_owned(), limit_at: Some(DUE) }
}

fn unavailable(cause: Unavailability) -> JobFact {
    JobFact::BecameUnavailable(Conclusion { cause, details: said() })
}

fn said() -> Details {
    Details::default()
}
