//! Failures that are tried again: when, how soon, how often.

use super::*;
use crate::retry::backoff_micros;

fn fails(number: u32, retryable: Retryable) -> JobCommand {
    report(Some(attempt(number)), JobStateName::Failed, Details::default(), retryable)
}

/// The fact of trying again this many microseconds from now.
fn again_in(micros: i64) -> JobFact {
    requeued(NOW.plus_micros(micros))
}

#[test]
fn a_failure_with_attempts_left_goes_back_to_the_queue_for_later() {
    for (state, given) in dispatched_and_open().into_iter().take(3) {
        let job = check(&given, fails(1, Retryable::Yes), Decision::fact(again_in(5_000_000))).unwrap();
        assert_eq!(job.state, JobState::Queued { due_at: NOW.plus_seconds(5) }, "{state}");
        assert_eq!(job.state_reason.as_deref(), Some("attempt_failed"));
        assert_eq!(job.completed_at, None);
    }
}

#[test]
fn a_failure_that_the_executor_calls_final_is_final() {
    check(&[created(), dispatched(1), started()], fails(1, Retryable::No), Decision::fact(failed()));
}

#[test]
fn the_failure_of_the_last_attempt_is_final() {
    let once = [created_for_one_attempt(), dispatched(1), started()];
    check(&once, fails(1, Retryable::Yes), Decision::fact(used_up()));
    let third = [created(), dispatched(1), requeued(NOW), dispatched(2), requeued(NOW), dispatched(3)];
    check(&third, fails(3, Retryable::Yes), Decision::fact(used_up()));
}

#[test]
fn work_that_waits_for_a_person_and_fails_is_not_tried_again_by_itself() {
    let blocked = JobFact::Blocked(Details::default());
    check(&[created(), dispatched(1), blocked], fails(1, Retryable::Yes), Decision::fact(failed()));
}

#[test]
fn a_pending_cancel_stops_the_trying() {
    let given = [created(), dispatched(1), started(), cancel_requested()];
    check(&given, fails(1, Retryable::Yes), Decision::fact(failed()));
}

#[test]
fn what_a_failed_attempt_said_stays_with_the_attempt_and_leaves_the_job() {
    let said = ResultRefs { error: Some(body(BodyName::Error, 4)), ..summary("no paper") };
    let details =
        Details { reason: Some("printer_empty".to_owned()), result: said.clone(), ..note("bad luck") };
    let given = [created(), dispatched(1), started()];
    let then = JobFact::Requeued {
        due_at: NOW.plus_seconds(5),
        cause: RequeueCause::AttemptFailed,
        details: details.clone(),
    };
    let failing = report(Some(attempt(1)), JobStateName::Failed, details, Retryable::Yes);
    let job = check(&given, failing, Decision::fact(then)).unwrap();
    let end = job.attempts[0].end.as_ref().unwrap();
    assert_eq!((end.state, &end.result), (JobStateName::Queued, &said));
    assert_eq!(end.reason.as_deref(), Some("printer_empty"));
    assert_eq!((job.result, job.notes.len()), (ResultRefs::default(), 1));
    assert_eq!(job.bodies, [body(BodyName::Error, 4)]);
}

#[test]
fn an_end_in_the_queue_leaves_the_attempt_before_it_as_it_ended() {
    let said = Details { reason: Some("printer_empty".to_owned()), ..result(summary("no paper")) };
    let waiting =
        JobFact::Requeued { due_at: NOW, cause: RequeueCause::AttemptFailed, details: said.clone() };
    let limited = created_with(|new| new.spec.deadline_at = Some(NOW));
    let given = [limited, dispatched(1), waiting];
    let ended = job(&given).attempts[0].end.clone();
    assert_eq!(ended.as_ref().unwrap().result, said.result);
    let over = Decision::fact(expired(super::super::ExpiryCause::TimeOver));
    let after = check(&given, JobCommand::Expire, over).unwrap();
    assert_eq!(after.attempts[0].end, ended);
}

#[test]
fn waits_double_up_to_their_cap() {
    let seconds = |made| backoff_micros(10, 60, made) / 1_000_000;
    assert_eq!([1, 2, 3, 4, 5, 33, u32::MAX].map(seconds), [10, 20, 40, 60, 60, 60, 60]);
    assert_eq!(backoff_micros(0, 60, 9), 0);
}

#[test]
fn a_wait_is_at_least_half_and_never_more_than_the_doubled_capped_one() {
    for made in 1..=8 {
        let whole = backoff_micros(THRICE.backoff_seconds, THRICE.max_backoff_seconds, made);
        assert_eq!(THRICE.wait_micros(made, Jitter(0)), whole / 2);
        let longest = THRICE.wait_micros(made, Jitter(u16::MAX));
        assert!(longest < whole && longest > whole * 99 / 100, "{longest} of {whole}");
        assert!(THRICE.wait_micros(made, Jitter(20_000)) < THRICE.wait_micros(made, Jitter(40_000)));
    }
}

#[test]
fn the_same_failure_waits_longer_each_time() {
    let second = [created(), dispatched(1), requeued(NOW), dispatched(2)];
    check(&second, fails(2, Retryable::Yes), Decision::fact(again_in(10_000_000)));
}

#[test]
fn a_failure_that_names_a_time_is_tried_no_sooner_and_never_parked() {
    let given = [created(), dispatched(1), started()];
    let fails_until = |at| fails(1, Retryable::NotBefore(at));
    let later = NOW.plus_seconds(40);
    check(&given, fails_until(later), Decision::fact(requeued(later)));
    // Its own wait is longer.
    check(&given, fails_until(NOW.plus_seconds(1)), Decision::fact(again_in(5_000_000)));
    let ceiling = NOW.plus_seconds(u64::from(crate::policy::RETRY_AFTER_CEILING_SECONDS));
    check(&given, fails_until(Timestamp::from_micros(i64::MAX)), Decision::fact(requeued(ceiling)));
    let once = [created_for_one_attempt(), dispatched(1), started()];
    check(&once, fails_until(later), Decision::fact(used_up()));
}

/// A failure after which another attempt would have followed if one were left.
fn used_up() -> JobFact {
    let JobFact::Failed(details) = failed() else { panic!("it is a failure") };
    JobFact::Failed(Details { attempts_used_up: true, ..details })
}
