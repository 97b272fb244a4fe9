//! Taking a job for a new attempt: by itself, by run, by retry.

use super::*;

#[test]
fn a_due_job_is_taken_for_its_first_attempt() {
    let job = check(&[created()], dispatch(1, Trigger::Automatic), Decision::fact(dispatched(1))).unwrap();
    assert_eq!(job.state, JobState::Dispatching);
    let taken = job.last_attempt().unwrap();
    assert_eq!((taken.number, &taken.id, taken.started_at), (1, &attempt(1), NOW));
    assert_eq!(taken.owner, OwnerId::new("node-1"));
}

#[test]
fn a_job_is_not_taken_by_itself_before_it_is_due() {
    let due = |due_at| [created_with(|new| new.due_at = Some(due_at))];
    let early = NOW.plus_micros(1);
    let refusal = Refusal::NotDue { due_at: early };
    check(&due(early), dispatch(1, Trigger::Automatic), Decision::refuse(refusal));
    check(&due(NOW), dispatch(1, Trigger::Automatic), Decision::fact(dispatched(1)));
}

#[test]
fn run_ignores_the_due_time() {
    let given = [created_with(|new| new.due_at = Some(NOW.plus_seconds(3_600)))];
    check(&given, dispatch(1, Trigger::Run), Decision::fact(dispatched_by(1, Trigger::Run)));
}

#[test]
fn queued_work_has_nothing_to_retry() {
    let refusal = Refusal::NotRetryable { state: JobStateName::Queued };
    check(&[created()], dispatch(1, Trigger::Retry), Decision::refuse(refusal));
}

#[test]
fn the_second_of_two_runners_finds_the_job_taken() {
    let refusal = Refusal::LeaseHeld { state: JobStateName::Dispatching };
    check(&[created(), dispatched(1)], dispatch(2, Trigger::Automatic), Decision::refuse(refusal));
}

#[test]
fn work_that_an_attempt_holds_is_not_taken_by_itself() {
    for (state, given) in dispatched_and_open() {
        check(&given, dispatch(2, Trigger::Automatic), Decision::refuse(Refusal::LeaseHeld { state }));
    }
}

#[test]
fn work_that_an_attempt_holds_is_not_run() {
    for (state, given) in dispatched_and_open() {
        check(&given, dispatch(2, Trigger::Run), Decision::refuse(Refusal::NotRunnable { state }));
    }
}

#[test]
fn of_the_work_that_an_attempt_holds_only_delivered_is_retried() {
    for (state, given) in dispatched_and_open() {
        let then = if state == JobStateName::Delivered {
            Decision::fact(dispatched_by(2, Trigger::Retry))
        } else {
            Decision::refuse(Refusal::NotRetryable { state })
        };
        check(&given, dispatch(2, Trigger::Retry), then);
    }
}

#[test]
fn no_end_is_revived_by_itself() {
    for (state, given) in dispatched_and_over() {
        check(&given, dispatch(2, Trigger::Automatic), Decision::refuse(Refusal::Terminal { state }));
    }
}

#[test]
fn failed_and_unavailable_work_gets_a_new_attempt_by_run_and_by_retry() {
    for (state, given) in dispatched_and_over() {
        for trigger in [Trigger::Run, Trigger::Retry] {
            let then = match (state, trigger) {
                (JobStateName::Failed | JobStateName::Unavailable, _) => {
                    Decision::fact(dispatched_by(2, trigger))
                }
                (_, Trigger::Run) => Decision::refuse(Refusal::NotRunnable { state }),
                (_, _) => Decision::refuse(Refusal::NotRetryable { state }),
            };
            check(&given, dispatch(2, trigger), then);
        }
    }
}

#[test]
fn an_operator_may_try_again_beyond_the_policy() {
    let given = [created_for_one_attempt(), dispatched(1), failed()];
    let job =
        check(&given, dispatch(2, Trigger::Retry), Decision::fact(dispatched_by(2, Trigger::Retry))).unwrap();
    assert_eq!(job.attempt_count, 2);
}

#[test]
fn a_retry_of_delivered_work_ends_the_attempt_before_it() {
    let given = [created(), dispatched(1), JobFact::Delivered];
    let job =
        check(&given, dispatch(2, Trigger::Retry), Decision::fact(dispatched_by(2, Trigger::Retry))).unwrap();
    let superseded = job.attempts[0].end.as_ref().unwrap();
    assert_eq!(superseded.reason.as_deref(), Some("superseded"));
    assert_eq!(job.last_attempt().unwrap().end, None);
}

#[test]
fn delivered_work_with_a_pending_cancel_is_not_retried() {
    let given = [created(), dispatched(1), JobFact::Delivered, cancel_requested()];
    check(&given, dispatch(2, Trigger::Retry), Decision::refuse(Refusal::CancelPending));
}

#[test]
fn nothing_is_dispatched_once_its_time_is_over() {
    let limited = created_with(|new| new.spec.deadline_at = Some(NOW));
    for trigger in [Trigger::Automatic, Trigger::Run] {
        let given = std::slice::from_ref(&limited);
        check(given, dispatch(1, trigger), Decision::refuse(Refusal::DeadlineElapsed));
    }
    let given = [limited, dispatched(1), failed()];
    check(&given, dispatch(2, Trigger::Retry), Decision::refuse(Refusal::DeadlineElapsed));
}

#[test]
fn a_retry_clears_the_result_of_the_job_but_the_attempt_keeps_it() {
    let said = ResultRefs { error: Some(body(BodyName::Error, 1)), ..summary("no paper") };
    let given = [created(), dispatched(1), JobFact::Failed(result(said.clone()))];
    let job =
        check(&given, dispatch(2, Trigger::Retry), Decision::fact(dispatched_by(2, Trigger::Retry))).unwrap();
    assert_eq!(job.result, ResultRefs::default());
    assert_eq!(job.completed_at, None);
    let first = job.attempts[0].end.as_ref().unwrap();
    assert_eq!((first.state, &first.result), (JobStateName::Failed, &said));
}

#[test]
fn what_was_added_after_the_end_stays_with_its_attempt_too() {
    let added = ResultRefs { artifacts: Some(body(BodyName::Artifacts, 2)), ..ResultRefs::default() };
    let given = [
        created(),
        dispatched(1),
        JobFact::Failed(result(summary("no paper"))),
        JobFact::Noted(result(added.clone())),
    ];
    let job =
        check(&given, dispatch(2, Trigger::Retry), Decision::fact(dispatched_by(2, Trigger::Retry))).unwrap();
    let kept = ResultRefs { artifacts: added.artifacts, ..summary("no paper") };
    assert_eq!(job.attempts[0].end.as_ref().unwrap().result, kept);
}

#[test]
fn work_that_somebody_asked_to_stop_is_not_begun_again() {
    let unavailable = || unavailable(Unavailability::Reported);
    for given in [
        [created(), dispatched(1), cancel_requested(), failed()],
        [created(), dispatched(1), failed(), late_cancel()],
        [created(), dispatched(1), unavailable(), late_cancel()],
    ] {
        for trigger in [Trigger::Run, Trigger::Retry] {
            check(&given, dispatch(2, trigger), Decision::refuse(Refusal::CancelRequested));
        }
    }
}

#[test]
fn attempt_numbers_go_on_after_a_failure_by_policy() {
    let given = [created(), dispatched(1), requeued(NOW)];
    let job = check(&given, dispatch(2, Trigger::Automatic), Decision::fact(dispatched(2))).unwrap();
    let numbers: Vec<u32> = job.attempts.iter().map(|attempt| attempt.number).collect();
    assert_eq!(numbers, [1, 2]);
}

#[test]
fn work_sent_back_to_the_queue_waits_for_its_time_unless_it_is_run() {
    let later = NOW.plus_seconds(9);
    let given = [created(), dispatched(1), requeued(later)];
    let refusal = Refusal::NotDue { due_at: later };
    check(&given, dispatch(2, Trigger::Automatic), Decision::refuse(refusal));
    check(&given, dispatch(2, Trigger::Run), Decision::fact(dispatched_by(2, Trigger::Run)));
}
