//! Leases that end without a heartbeat.

use super::*;
use crate::attention::{Holding, Retention};

fn requeued_by_lost_lease(due_at: Timestamp) -> JobFact {
    JobFact::Requeued { due_at, cause: RequeueCause::LeaseLost, details: Details::default() }
}

/// The states that live by a lease, of work that is tried this often.
fn lease_bound(created: &JobFact) -> [Vec<JobFact>; 3] {
    let with = |more: &[JobFact]| [&[created.clone(), dispatched(1)], more].concat();
    [with(&[]), with(&[JobFact::Delivered]), with(&[started()])]
}

#[test]
fn a_lost_lease_counts_as_an_attempt_and_the_work_is_tried_again_later() {
    for given in lease_bound(&created()) {
        let due_at = NOW.plus_seconds(5);
        let then = Decision::fact(requeued_by_lost_lease(due_at));
        let job = check(&given, lose_lease(1), then).unwrap();
        assert_eq!(job.state, JobState::Queued { due_at });
        assert_eq!((job.attempt_count, job.state_reason.as_deref()), (1, Some("lease_lost")));
    }
}

#[test]
fn a_lease_lost_on_the_last_attempt_makes_the_work_unavailable() {
    for given in lease_bound(&created_for_one_attempt()) {
        let details = Details { attempts_used_up: true, ..Details::default() };
        let cause = Unavailability::LeaseLost;
        let then = Decision::fact(JobFact::BecameUnavailable(Conclusion { cause, details }));
        let job = check(&given, lose_lease(1), then).unwrap();
        assert_eq!(job.state, JobState::Unavailable { lease_lost: true });
        assert_eq!(job.state_reason.as_deref(), Some("runner_interrupted"));
    }
}

#[test]
fn the_lost_lease_of_an_earlier_attempt_is_of_no_effect() {
    let given = [created(), dispatched(1), requeued(NOW), dispatched(2)];
    check(&given, lose_lease(1), Decision::Nothing);
}

#[test]
fn a_lease_is_lost_once() {
    let given = [created(), dispatched(1), requeued_by_lost_lease(NOW)];
    check(&given, lose_lease(1), Decision::Nothing);
    let given = [created_for_one_attempt(), dispatched(1), unavailable(Unavailability::LeaseLost)];
    check(&given, lose_lease(1), Decision::Nothing);
}

#[test]
fn work_that_waits_needs_no_lease() {
    for (_, given) in dispatched_and_open().into_iter().skip(3) {
        check(&given, lose_lease(1), Decision::Nothing);
    }
    check(&[created()], lose_lease(1), Decision::Nothing);
}

#[test]
fn work_that_is_to_be_resumed_needs_no_lease_until_it_is() {
    let answered = JobFact::Answered(AnswerKept { answer: body(BodyName::Answer, 1) });
    let given = [created(), dispatched(1), JobFact::InputAwaited(Details::default()), answered];
    check(&given, lose_lease(1), Decision::Nothing);
    let resumed = [given.to_vec(), vec![JobFact::Resumed]].concat();
    let then = Decision::fact(requeued_by_lost_lease(NOW.plus_seconds(5)));
    check(&resumed, lose_lease(1), then);
}

#[test]
fn unmanaged_work_in_progress_has_no_lease_to_lose() {
    let given = [created(), started()];
    check(&given, lose_lease(1), Decision::Nothing);
    assert_eq!(job(&given).attention(Retention::DEFAULT).holding, Holding::Claimable);
}

#[test]
fn only_dispatching_delivered_and_running_work_is_bound_by_a_lease() {
    for (state, given) in dispatched_and_open().into_iter().chain(dispatched_and_over()) {
        let bound =
            matches!(state, JobStateName::Dispatching | JobStateName::Delivered | JobStateName::Running);
        let holding = job(&given).attention(Retention::DEFAULT).holding;
        assert_eq!(holding == Holding::LeaseBound, bound, "{state}");
    }
}
