//! Cancels: a request first, an end only when confirmed or when its time is over.

use super::*;
use crate::limits::{KEPT_CANCEL_ANSWERS, KEPT_CANCEL_REPEATS, MAX_LABEL_BYTES, MAX_NOTE_BYTES};
use crate::operation::{CancelOrigin, OperationCommand};

fn requested_now() -> JobFact {
    JobFact::CancelRequested {
        by: Some("ada".to_owned()),
        reason: "not needed".to_owned(),
        limit_at: Some(NOW.plus_seconds(CANCEL_LIMIT_SECONDS)),
    }
}

fn repeated() -> JobFact {
    JobFact::CancelRepeated { by: Some("ada".to_owned()), reason: "not needed".to_owned() }
}

fn tried(number: u32, tried: CancelTry) -> JobCommand {
    JobCommand::RecordCancelTry { attempt_id: attempt(number), tried }
}

fn answers(number: u32, answer: CancelAnswer) -> JobCommand {
    JobCommand::RecordCancelAnswer { attempt_id: attempt(number), answer, release: None }
}

fn asked_by_the_job() -> OperationCommand {
    OperationCommand::RequestCancel {
        by: Some("ada".to_owned()),
        reason: "not needed".to_owned(),
        origin: CancelOrigin::ParentJob,
    }
}

fn not_confirmed() -> [CancelAnswer; 3] {
    [CancelAnswer::Accepted, CancelAnswer::Refused("too late".to_owned()), CancelAnswer::Unreachable]
}

/// A dispatched job in each open state, with a pending cancel whose time ends at `BEFORE` + 30 s.
fn pending() -> Vec<(JobStateName, Vec<JobFact>)> {
    let pending = |(state, mut given): (JobStateName, Vec<JobFact>)| {
        given.push(cancel_requested());
        (state, given)
    };
    dispatched_and_open().into_iter().map(pending).collect()
}

fn abandoned(decision: Decision<JobFact>, state: JobStateName, reason: &str) -> Decision<JobFact> {
    if state == JobStateName::AwaitingExternal {
        decision.then(operation_id(), OperationCommand::Abandon { reason: reason.to_owned() })
    } else {
        decision
    }
}

// conforms: R68
#[test]
fn queued_work_is_cancelled_at_once_and_nobody_is_contacted() {
    for given in [vec![created()], vec![created(), dispatched(1), requeued(NOW)]] {
        let then = Decision::facts([requested_now(), cancelled(CancelCause::NeverStarted)]);
        let job = check(&given, request_cancel(), then).unwrap();
        assert_eq!((job.state, job.completed_at), (JobState::Cancelled, Some(NOW)));
        assert_eq!(job.cancel.unwrap().by.as_deref(), Some("ada"));
    }
}

// conforms: R66 R67 R71
#[test]
fn a_cancel_of_dispatched_work_is_a_request_that_shows_until_it_is_confirmed() {
    for (state, given) in dispatched_and_open() {
        let mut then = Decision::fact(requested_now());
        if state == JobStateName::AwaitingExternal {
            then = then.then(operation_id(), asked_by_the_job());
        }
        let job = check(&given, request_cancel(), then).unwrap();
        assert_eq!((job.state.name(), job.completed_at), (state, None));
        assert_eq!(job.state_reason.as_deref(), Some("cancel_requested"));
        let cancel = job.cancel.unwrap();
        assert_eq!((cancel.requested_at, cancel.reason.as_str()), (NOW, "not needed"));
    }
}

#[test]
fn a_cancel_of_unmanaged_work_in_progress_waits_for_its_doer() {
    let requested = Decision::fact(late_cancel());
    let job = check(&[created(), started()], request_cancel(), requested).unwrap();
    assert_eq!((job.state.clone(), job.cancel_limit_at()), (JobState::Running, None));
    // Also one that an older version gave a time limit.
    for asked in [late_cancel(), cancel_requested()] {
        let given = [created(), started(), asked];
        let confirmed = Decision::fact(cancelled(CancelCause::Confirmed));
        check(&given, patch(JobStateName::Cancelled), confirmed);
        let never = Refusal::NotDue { due_at: Timestamp::from_micros(i64::MAX) };
        let much_later = NOW.plus_seconds(86_400);
        check_at(much_later, &given, JobCommand::TimeOutCancel, Decision::refuse(never));
        let completed =
            check_at(much_later, &given, patch(JobStateName::Completed), Decision::fact(completed()));
        assert_eq!(completed.unwrap().state, JobState::Completed);
    }
}

#[test]
fn repeated_requests_are_kept_up_to_a_number_and_then_counted() {
    let over = dispatched_and_over()
        .into_iter()
        .map(|(state, given)| (state, [given, vec![late_cancel()]].concat()));
    for (state, mut given) in pending().into_iter().chain(over) {
        let before = job(&given);
        for _ in 0..KEPT_CANCEL_REPEATS {
            let job = check(&given, request_cancel(), Decision::fact(repeated())).unwrap();
            assert_eq!((job.state.name(), &job.state_reason), (state, &before.state_reason));
            given.push(repeated());
        }
        assert!(job(&given).counts_cancel_repeat());
        check(&given, request_cancel(), Decision::Nothing);
        let counted = Decision::fact(JobFact::CancelRepeatsCounted { count: 40 });
        let job = check(&given, JobCommand::CountCancelRepeats { count: 40 }, counted).unwrap();
        let (cancel, first) = (job.cancel.unwrap(), before.cancel.unwrap());
        assert_eq!(cancel.repeats as usize, KEPT_CANCEL_REPEATS + 40);
        assert_eq!((cancel.repeated.len(), cancel.requested_at), (KEPT_CANCEL_REPEATS, first.requested_at));
    }
    check(&[created()], JobCommand::CountCancelRepeats { count: 1 }, Decision::Nothing);
}

// conforms: R72
#[test]
fn an_end_wins_over_a_late_cancel_which_is_kept() {
    for (state, given) in dispatched_and_over() {
        for command in [request_cancel(), cancel_or_refuse()] {
            let before = job(&given);
            let job = check(&given, command, Decision::fact(late_cancel())).unwrap();
            assert_eq!((job.state.name(), job.state_reason), (state, before.state_reason));
            assert!(job.cancel.unwrap().is_late());
        }
        check(&given, answers(1, CancelAnswer::Cancelled), Decision::Nothing);
        check(&given, JobCommand::TimeOutCancel, Decision::Nothing);
        let late = [given, vec![late_cancel()]].concat();
        check(&late, tried(1, CancelTry::sent_to(CancelRecipient::Service)), Decision::Nothing);
    }
}

#[test]
fn what_was_sent_to_whom_is_kept_once_for_the_current_attempt() {
    for (_, given) in pending() {
        assert!(!job(&given).cancel.unwrap().was_sent(), "a request is not a word to anybody");
        let told = CancelTry::sent_to(CancelRecipient::Worker);
        let fact = JobFact::CancelTried(told.clone());
        let job = check(&given, tried(1, told.clone()), Decision::fact(fact.clone())).unwrap();
        assert!(job.cancel.unwrap().was_sent());
        let given = [given, vec![fact]].concat();
        check(&given, tried(1, told.clone()), Decision::Nothing);
        check(&given, tried(1, CancelTry::sent_to(CancelRecipient::Process)), Decision::Nothing);
        check(&given, tried(1, CancelTry::NotSent("no handle".to_owned())), Decision::Nothing);
        check(&given, tried(2, CancelTry::NotCancelable("no stop".to_owned())), Decision::Nothing);
        let confirmed = super::job(&[given, vec![cancelled(CancelCause::Confirmed)]].concat());
        let CancelTry::Sent(sent) = confirmed.cancel.unwrap().tried.unwrap().tried else {
            panic!("it was sent")
        };
        assert_eq!(sent.answer, Some(CancelAnswer::Cancelled));
    }
    for (_, given) in dispatched_and_open() {
        check(&given, tried(1, CancelTry::sent_to(CancelRecipient::Worker)), Decision::Nothing);
    }
}

#[test]
fn work_that_cannot_be_stopped_goes_on_whatever_its_time_limit_was() {
    let because = CancelTry::NotCancelable("printed in ink".to_owned());
    let given: Vec<JobFact> = vec![created(), dispatched(1), deferred(), cancel_requested()];
    let limited = job(&given).cancel_limit_at();
    assert_eq!(limited, Some(BEFORE.plus_seconds(CANCEL_LIMIT_SECONDS)));
    let then = Decision::fact(JobFact::CancelTried(because.clone()));
    let job = check(&given, tried(1, because), then).unwrap();
    assert_eq!(job.cancel_limit_at(), None);
    let attention = job.attention(crate::attention::Retention::DEFAULT);
    assert_eq!((attention.due_at, attention.limit_at), (None, None));
    let known =
        [given, vec![JobFact::CancelTried(CancelTry::NotCancelable("printed in ink".to_owned()))]].concat();
    check(&known, tried(1, CancelTry::sent_to(CancelRecipient::Worker)), Decision::Nothing);
    assert_eq!(job.cancel.unwrap().unavailable_because(), Some("printed in ink"));
}

#[test]
fn a_caller_who_wants_to_know_is_passed_on_as_one() {
    let given = [created(), dispatched(1), deferred()];
    let request = OperationCommand::RequestCancel {
        by: Some("ada".to_owned()),
        reason: "not needed".to_owned(),
        origin: CancelOrigin::Caller,
    };
    check(&given, cancel_or_refuse(), Decision::fact(requested_now()).then(operation_id(), request));
}

#[test]
fn an_executor_that_confirms_ends_the_work() {
    for (state, given) in pending() {
        let then = Decision::fact(cancelled(CancelCause::Confirmed));
        let then = abandoned(then, state, "cancelled");
        let job = check(&given, answers(1, CancelAnswer::Cancelled), then).unwrap();
        assert_eq!((job.state, job.state_reason.as_deref()), (JobState::Cancelled, Some("cancelled")));
    }
}

// conforms: R67 R73
#[test]
fn an_answer_that_confirms_nothing_is_kept_and_the_cancel_stays_pending() {
    for (state, given) in pending() {
        for answer in not_confirmed() {
            let then = Decision::fact(JobFact::CancelAnswered(answer.clone()));
            let job = check(&given, answers(1, answer.clone()), then).unwrap();
            assert_eq!((job.state.name(), job.state_reason.as_deref()), (state, Some("cancel_requested")));
            assert_eq!(
                job.cancel.unwrap().answers,
                [KeptCancelAnswer { at: NOW, answer, told: None, said: None }]
            );
        }
    }
}

#[test]
fn only_the_newest_answers_to_a_cancel_are_kept() {
    let mut given = vec![created(), dispatched(1), cancel_requested()];
    for number in 0..KEPT_CANCEL_ANSWERS {
        given.push(JobFact::CancelAnswered(CancelAnswer::Refused(number.to_string())));
    }
    let then = Decision::fact(JobFact::CancelAnswered(CancelAnswer::Unreachable));
    let job = check(&given, answers(1, CancelAnswer::Unreachable), then).unwrap();
    let kept = job.cancel.unwrap().answers;
    assert_eq!(kept.len(), KEPT_CANCEL_ANSWERS);
    assert_eq!(kept[0].answer, CancelAnswer::Refused("1".to_owned()));
    assert_eq!(kept.last().unwrap().answer, CancelAnswer::Unreachable);
}

#[test]
fn an_answer_that_nobody_asked_for_is_refused() {
    for (_, given) in dispatched_and_open() {
        let then = Decision::refuse(Refusal::NoCancelPending);
        check(&given, answers(1, CancelAnswer::Cancelled), then.clone());
        check(&given, JobCommand::TimeOutCancel, then);
    }
    check(&[created()], JobCommand::TimeOutCancel, Decision::refuse(Refusal::NoCancelPending));
}

#[test]
fn an_answer_of_an_attempt_that_is_not_current_is_stale() {
    let given = [created(), dispatched(1), requeued(NOW), dispatched(2), cancel_requested()];
    check(&given, answers(1, CancelAnswer::Cancelled), Decision::refuse(Refusal::StaleAttempt));
}

#[test]
fn a_cancel_that_nobody_confirms_ends_the_work_when_its_time_is_over() {
    let limit = BEFORE.plus_seconds(CANCEL_LIMIT_SECONDS);
    for (state, given) in pending() {
        let early = limit.plus_micros(-1);
        let refusal = Refusal::NotDue { due_at: limit };
        check_at(early, &given, JobCommand::TimeOutCancel, Decision::refuse(refusal));
        let then = Decision::fact(cancelled(CancelCause::TimedOut));
        let then = abandoned(then, state, "cancel_unconfirmed");
        let job = check_at(limit, &given, JobCommand::TimeOutCancel, then).unwrap();
        assert_eq!(job.state, JobState::Cancelled);
        assert_eq!(job.state_reason.as_deref(), Some("cancel_unconfirmed"));
    }
}

#[test]
fn a_report_of_cancelled_confirms_it() {
    let given = [created(), dispatched(1), started(), cancel_requested()];
    let then = Decision::fact(cancelled(CancelCause::Confirmed));
    check(&given, reports(1, JobStateName::Cancelled), then);
}

#[test]
fn a_lease_lost_while_a_cancel_is_pending_ends_in_cancelled_and_says_so() {
    for (_, given) in pending().into_iter().take(3) {
        let then = Decision::fact(cancelled(CancelCause::LeaseLost));
        let job = check(&given, lose_lease(1), then).unwrap();
        assert_eq!(job.state, JobState::Cancelled);
        assert_eq!(job.state_reason.as_deref(), Some("cancel_unconfirmed_lease_lost"));
    }
}

#[test]
fn work_that_finishes_before_the_cancel_reaches_it_is_completed() {
    let given = [created(), dispatched(1), started(), cancel_requested()];
    let job = check(&given, reports(1, JobStateName::Completed), Decision::fact(completed())).unwrap();
    assert_eq!(job.state, JobState::Completed);
    let over = [created(), dispatched(1), started(), cancel_requested(), completed()];
    check(&over, JobCommand::TimeOutCancel, Decision::Nothing);
    check(&over, answers(1, CancelAnswer::Cancelled), Decision::Nothing);
}

// conforms: R71
#[test]
fn a_pending_cancel_stays_the_visible_reason_while_the_executor_reports() {
    let given = [created(), dispatched(1), cancel_requested()];
    let busy = Details::because("executor_busy");
    let then = Decision::fact(JobFact::Started(busy.clone()));
    let job = check(&given, reports_with(1, JobStateName::Running, busy), then).unwrap();
    assert_eq!(job.state_reason.as_deref(), Some("cancel_requested"));
}

#[test]
fn work_deferred_while_a_cancel_is_pending_is_asked_to_stop_in_the_same_step() {
    let given = [created(), dispatched(1), cancel_requested()];
    let then = Decision::fact(deferred())
        .then(operation_id(), OperationCommand::Accept(Box::new(new_operation())))
        .then(operation_id(), asked_by_the_job());
    check(&given, defer(1, new_operation()), then);
}

#[test]
fn what_is_said_with_a_cancel_has_limits() {
    let given = [created(), dispatched(1)];
    let long = "x".repeat(MAX_NOTE_BYTES + 1);
    let by_someone_long = Some("x".repeat(MAX_LABEL_BYTES + 1));
    for (when, what, limit) in [
        (JobCommand::RequestCancel { by: None, reason: long.clone() }, "cancel reason", MAX_NOTE_BYTES),
        (
            JobCommand::RequestCancel { by: by_someone_long, reason: String::new() },
            "cancel requester",
            MAX_LABEL_BYTES,
        ),
    ] {
        check(&given, when, Decision::refuse(Refusal::TooLarge { what, limit }));
    }
    let given = [created(), dispatched(1), cancel_requested()];
    let refusal = Refusal::TooLarge { what: "refusal of the cancel", limit: MAX_NOTE_BYTES };
    check(&given, answers(1, CancelAnswer::Refused(long)), Decision::refuse(refusal));
}

#[test]
fn cancel_of_paused_work_that_cannot_be_stopped_ends_by_its_time() {
    let because = JobFact::CancelTried(CancelTry::NotCancelable("printed in ink".to_owned()));
    let begun = [created(), dispatched(1), started(), cancel_requested(), because];
    // It goes on to its end, whatever the time; paused it would have none, because nobody answers it any more.
    let limit = Decision::refuse(Refusal::NotDue { due_at: Timestamp::from_micros(i64::MAX) });
    check(&begun, JobCommand::TimeOutCancel, limit);
    for pause in [JobFact::InputAwaited(Details::default()), JobFact::Blocked(Details::default())] {
        let given = [&begun[..], &[pause]].concat();
        check(&given, JobCommand::TimeOutCancel, Decision::fact(cancelled(CancelCause::TimedOut)));
    }
}
