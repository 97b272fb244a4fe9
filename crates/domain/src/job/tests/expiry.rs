//! Deadlines and lifetimes, and how long an end is kept.

use super::*;
use crate::attention::Retention;
use crate::operation::OperationCommand;

/// The history with a deadline at `NOW`.
fn limited(given: &[JobFact]) -> Vec<JobFact> {
    let deadline = created_with(|new| new.spec.deadline_at = Some(NOW));
    [&[deadline], &given[1..]].concat()
}

// conforms: R52
#[test]
fn every_open_job_expires_when_its_time_is_over_and_not_before() {
    let queued = (JobStateName::Queued, vec![created()]);
    let queued_again = (JobStateName::Queued, vec![created(), dispatched(1), requeued(NOW)]);
    for (state, given) in [queued, queued_again].into_iter().chain(dispatched_and_open()) {
        let given = limited(&given);
        let refusal = Refusal::NotDue { due_at: NOW };
        check_at(NOW.plus_micros(-1), &given, JobCommand::Expire, Decision::refuse(refusal));
        let mut then = Decision::fact(expired(super::super::ExpiryCause::TimeOver));
        if state == JobStateName::AwaitingExternal {
            let abandon = OperationCommand::Abandon { reason: "job_expired".to_owned() };
            then = then.then(operation_id(), abandon);
        }
        let job = check(&given, JobCommand::Expire, then).unwrap();
        assert_eq!((job.state, job.state_reason.as_deref()), (JobState::Expired, Some("deadline_elapsed")));
        assert_eq!(job.completed_at, Some(NOW));
    }
}

#[test]
fn the_earlier_of_deadline_and_lifetime_counts() {
    let early = BEFORE.plus_seconds(10);
    for (deadline_at, expires_at) in [(early, NOW), (NOW, early)] {
        let given = [created_with(|new| {
            new.spec.deadline_at = Some(deadline_at);
            new.spec.expires_at = Some(expires_at);
        })];
        assert_eq!(job(&given).expires_at(), Some(early));
        let then = Decision::fact(expired(super::super::ExpiryCause::TimeOver));
        check_at(early, &given, JobCommand::Expire, then);
    }
}

#[test]
fn a_job_without_a_limit_never_expires() {
    let never = Timestamp::from_micros(i64::MAX);
    let refusal = Refusal::NotDue { due_at: never };
    check_at(never, &[created()], JobCommand::Expire, Decision::refuse(refusal));
    assert_eq!(job(&[created()]).attention(Retention::DEFAULT).limit_at, None);
}

#[test]
fn an_end_does_not_expire() {
    for (_, given) in dispatched_and_over() {
        check(&limited(&given), JobCommand::Expire, Decision::Nothing);
    }
}

#[test]
fn an_open_job_is_due_at_the_earlier_of_its_limit_and_its_cancels_limit() {
    let limit = BEFORE.plus_seconds(CANCEL_LIMIT_SECONDS);
    for (_, given) in dispatched_and_open() {
        assert_eq!(job(&limited(&given)).attention(Retention::DEFAULT).limit_at, Some(NOW));
        let pending = [limited(&given), vec![cancel_requested()]].concat();
        assert_eq!(job(&pending).attention(Retention::DEFAULT).limit_at, Some(limit));
    }
}

#[test]
fn completed_work_is_kept_for_a_week_and_other_ends_for_a_month() {
    for (state, given) in dispatched_and_over() {
        let days = if state == JobStateName::Completed { 7 } else { 30 };
        let kept_until = BEFORE.plus_seconds(days * 86_400);
        assert_eq!(job(&given).attention(Retention::DEFAULT).due_at, Some(kept_until), "{state}");
    }
}
