//! Work that someone outside pulls: each hand-out is an attempt of its own, and what is asked for again waits for whoever pulls next.

use super::*;
use crate::attention::Retention;

fn pulled() -> JobFact {
    created_with(|new| {
        new.spec.executor = None;
        new.spec.lane = Some("film".to_owned());
        new.spec.timeout_seconds = Some(60);
        new.spec.retry.max_attempts = 2;
    })
}

fn asked_again() -> JobFact {
    JobFact::Requeued { due_at: NOW, cause: RequeueCause::Asked, details: Details::default() }
}

fn time_out(number: u32) -> JobCommand {
    JobCommand::TimeOutAttempt { attempt_id: attempt(number), jitter: Jitter(0) }
}

#[test]
fn pulled_work_that_is_run_or_tried_again_waits_for_whoever_pulls_next() {
    let failed = [pulled(), dispatched(1), JobFact::Failed(Details::default())];
    for trigger in [Trigger::Run, Trigger::Retry] {
        let command = JobCommand::QueueAgain { trigger };
        let job = check(&failed, command, Decision::fact(asked_again())).unwrap();
        assert_eq!((job.state, job.completed_at), (JobState::Queued { due_at: NOW }, None));
        assert_eq!(job.attempts[0].end.as_ref().map(|end| end.state), Some(JobStateName::Failed));
    }
    let waiting = [pulled()];
    let run = JobCommand::QueueAgain { trigger: Trigger::Run };
    check(&waiting, run, Decision::refuse(Refusal::WaitsForPuller));
    let refusal = Refusal::NotRetryable { state: JobStateName::Queued };
    check(&waiting, JobCommand::QueueAgain { trigger: Trigger::Retry }, Decision::refuse(refusal));
}

#[test]
fn attempt_before_the_one_that_was_asked_for_is_never_current_again() {
    let lost = Conclusion { cause: Unavailability::LeaseLost, details: Details::default() };
    for end in [JobFact::Failed(Details::default()), JobFact::BecameUnavailable(lost)] {
        let given = [pulled(), dispatched(1), end, asked_again()];
        let late = check_refusal(&given, reports(1, JobStateName::Completed));
        assert_eq!(late, Refusal::StaleAttempt);
        assert_eq!(
            check_refusal(&given, JobCommand::Heartbeat { attempt_id: attempt(1), by: Reporter::Daemon }),
            Refusal::StaleAttempt
        );
    }
}

#[test]
fn work_goes_back_to_pullers_if_it_names_them_or_is_tried_again() {
    let failed = |new: JobFact| [new, dispatched(1), JobFact::Failed(Details::default())];
    let refusal = Refusal::NotRunnable { state: JobStateName::Failed };
    let run = JobCommand::QueueAgain { trigger: Trigger::Run };
    check(&failed(created()), run.clone(), Decision::refuse(refusal.clone()));
    let nobodys = created_with(|new| new.spec.executor = None);
    check(&failed(nobodys.clone()), run, Decision::refuse(refusal.clone()));
    let retry = JobCommand::QueueAgain { trigger: Trigger::Retry };
    check(&failed(created()), retry.clone(), Decision::refuse(refusal));
    check(&failed(nobodys.clone()), retry.clone(), Decision::fact(asked_again()));
    let (attempt_id, owner) = (attempt(1), OwnerId::outside("press-1"));
    let handed = JobFact::Dispatched {
        attempt_id,
        number: 1,
        owner,
        trigger: Trigger::Automatic,
        holder: Holder::Daemon,
    };
    let had_it = [nobodys, handed, JobFact::Failed(Details::default())];
    for again in [retry, JobCommand::QueueAgain { trigger: Trigger::Run }] {
        check(&had_it, again, Decision::fact(asked_again()));
    }
}

/// Tried once, as its creator says or as nobody says.
fn once(requested: bool) -> JobFact {
    created_with(|new| {
        new.spec.executor = None;
        new.spec.retry = RetryPolicy::ONCE;
        new.spec.retry_requested = requested;
    })
}

#[test]
fn lost_worker_is_followed_by_two_more_by_default() {
    let mut given = vec![once(false)];
    for number in 1..=3 {
        given.push(dispatched(number));
        let Decision::Facts { facts, .. } = decide(&job(&given), &lose_lease(number), NOW) else { panic!() };
        let handed_out_again =
            matches!(facts[..], [JobFact::Requeued { cause: RequeueCause::LeaseLost, .. }]);
        assert_eq!(handed_out_again, number < 3, "{number}: {facts:?}");
        given.extend(facts);
    }
    let JobState::Unavailable { lease_lost: true } = job(&given).state else { panic!("{given:?}") };
}

#[test]
fn worker_of_a_job_that_is_begun_once_is_followed_by_nobody() {
    let given = [once(true), dispatched(1)];
    // Its one attempt was the limit, and the record says so.
    let details = Details { attempts_used_up: true, ..Details::default() };
    let lost = JobFact::BecameUnavailable(Conclusion { cause: Unavailability::LeaseLost, details });
    check(&given, lose_lease(1), Decision::fact(lost));
}

#[test]
fn failure_that_a_worker_reports_is_final_if_nobody_says_how_often() {
    let given = [once(false), dispatched(1)];
    let failure = report(Some(attempt(1)), JobStateName::Failed, Details::default(), Retryable::Yes);
    check(&given, failure, Decision::fact(failed()));
}

#[test]
fn whoever_goes_on_after_an_answer_has_an_attempt_of_its_own_and_no_try_is_used_up() {
    let answered = JobFact::Answered(AnswerKept { answer: body(BodyName::Answer, 1) });
    let given = [pulled(), dispatched(1), JobFact::InputAwaited(Details::default()), answered];
    let continued = dispatched_by(2, Trigger::Continued);
    let gone_on = check(&given, dispatch(2, Trigger::Automatic), Decision::fact(continued.clone())).unwrap();
    assert_eq!(gone_on.answers, [body(BodyName::Answer, 1)], "it goes on with what was answered");
    assert_eq!(gone_on.attempts[0].end.as_ref().and_then(|end| end.reason.as_deref()), Some("handed_on"));
    let given = [&given[..], &[continued]].concat();
    assert_eq!(check_refusal(&given, reports(1, JobStateName::Completed)), Refusal::StaleAttempt);
    let Decision::Facts { facts, .. } = decide(&job(&given), &lose_lease(2), NOW) else { panic!() };
    assert!(matches!(facts[..], [JobFact::Requeued { .. }]), "one try is left of two: {facts:?}");
}

#[test]
fn attempt_of_a_puller_that_takes_too_long_fails_and_is_tried_again_while_tries_are_left() {
    let given = [pulled(), dispatched(1), JobFact::Delivered];
    let limit = BEFORE.plus_seconds(60);
    let early = Decision::refuse(Refusal::NotDue { due_at: limit });
    check_at(limit.plus_micros(-1), &given, time_out(1), early);
    let held = job(&given);
    assert_eq!(held.attention(Retention::DEFAULT).limit_at, Some(limit));
    assert_eq!(held.due_command(Retention::DEFAULT, Jitter::default, limit), Some(time_out(1)));
    let Decision::Facts { facts, .. } = decide(&held, &time_out(1), limit) else { panic!() };
    let [JobFact::Requeued { details, .. }] = &facts[..] else { panic!("{facts:?}") };
    assert_eq!(
        (details.reason.as_deref(), details.limit.as_deref()),
        (Some("timed_out"), Some(&AttemptLimit::Job))
    );
    let stopping = job(&[&given[..], &[cancel_requested()]].concat());
    assert_eq!(
        stopping.due_command(Retention::DEFAULT, Jitter::default, limit),
        Some(JobCommand::TimeOutCancel)
    );
}

fn check_refusal(given: &[JobFact], when: JobCommand) -> Refusal {
    match decide(&job(given), &when, NOW) {
        Decision::Refused { refusal, .. } => refusal,
        other @ (Decision::Facts { .. } | Decision::Nothing) => panic!("{other:?}"),
    }
}
