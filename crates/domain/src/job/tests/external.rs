//! Work that goes on outside, under an operation.

use super::*;
use crate::limits::KEPT_EVIDENCE;
use crate::operation::{Operation, OperationCommand, OperationFact, PollError};
use crate::policy::{KindPolicy, Persistence};

fn accepted(operation: NewOperation) -> Decision<JobFact> {
    Decision::fact(deferred()).then(operation_id(), OperationCommand::Accept(Box::new(operation)))
}

/// Refused, and what may still run outside is written down.
fn orphaned(operation: &str, refusal: Refusal) -> Decision<JobFact> {
    let kept = StaleReport {
        attempt_id: attempt(1),
        state: JobStateName::AwaitingExternal,
        at: Timestamp::default(),
        details: Details::because("deferred"),
    };
    let orphan = OperationCommand::AcceptOrphan {
        operation: Box::new(new_operation()),
        reason: refusal.code().to_owned(),
    };
    let evidence = Some(JobFact::StaleReportKept(kept));
    Decision::Refused { refusal, evidence, consequences: Vec::new() }
        .then(OperationId::new(operation), orphan)
}

/// The service has said that the work is over.
fn over_outside(details: Details) -> Details {
    Details { release: Some(Release::Ended), ..details }
}

fn failed_outside(retryable: Retryable) -> OperationEnding {
    OperationEnding::Failed { reason: "no_paper".to_owned(), result: summary("empty"), retryable }
}

fn waiting() -> [JobFact; 3] {
    [created(), dispatched(1), deferred()]
}

fn waiting_to_go_on() -> [JobFact; 3] {
    let then = AfterExternal::Resume;
    [created(), dispatched(1), JobFact::Deferred { operation_id: operation_id(), then }]
}

#[test]
fn work_that_is_given_up_is_not_released() {
    let (reason, result) = ("volatile_lost".to_owned(), ResultRefs::default());
    let ending = OperationEnding::GivenUp { reason: reason.clone(), result };
    let failed = Details { reason: Some(reason), ..Details::default() };
    check(&waiting(), conclude(ending), Decision::fact(JobFact::Failed(failed)));
}

#[test]
fn work_is_deferred_together_with_its_operation() {
    for (_, given) in dispatched_and_open().into_iter().take(3) {
        let job = check(&given, defer(1, new_operation()), accepted(new_operation())).unwrap();
        let then = AfterExternal::Finish;
        assert_eq!(job.state, JobState::AwaitingExternal { operation: operation_id(), then });
    }
}

#[test]
fn an_operation_never_outlives_its_job() {
    let later = NOW.plus_seconds(100);
    let given = [created_with(|new| new.spec.deadline_at = Some(NOW.plus_seconds(9))), dispatched(1)];
    for asked in [None, Some(later), Some(NOW.plus_seconds(5))] {
        let bound = asked.map_or(NOW.plus_seconds(9), |asked| asked.min(NOW.plus_seconds(9)));
        let new = NewOperation { deadline_at: asked, ..new_operation() };
        let bounded = NewOperation { deadline_at: Some(bound), ..new_operation() };
        check(&given, defer(1, new), accepted(bounded));
    }
}

// conforms: O130
#[test]
fn volatile_work_goes_with_the_daemon_of_its_attempt() {
    let [volatile, durable] = [Persistence::Volatile, Persistence::Durable].map(|persistence| {
        let policy = KindPolicy { persistence, ..KindPolicy::default() };
        NewOperation { policy, ..new_operation() }
    });
    let mut by_daemon = dispatched(1);
    let job = check(&[created(), by_daemon.clone()], defer(1, volatile.clone()), accepted(volatile.clone()));
    let job = job.unwrap();
    for (new, expected) in [(&volatile, Some(OwnerId::new("node-1"))), (&durable, None)] {
        let accept = OperationCommand::Accept(Box::new(new.clone()));
        let begun = crate::operation::decide_new(&operation_id(), &accept, NOW);
        let Decision::Facts { facts, .. } = begun else { panic!("{begun:?}") };
        let [OperationFact::Dispatched(begun)] = &facts[..] else { panic!("{facts:?}") };
        assert_eq!(Operation::new(operation_id(), begun, NOW).ends_with(&job), expected.as_ref());
    }
    // A worker that pulls is no daemon: what it left there goes with none.
    let JobFact::Dispatched { owner, .. } = &mut by_daemon else { unreachable!("it is one") };
    *owner = OwnerId::outside("joan");
    check(&[created(), by_daemon], defer(1, volatile), accepted(durable));
}

#[test]
fn deferring_again_under_the_same_operation_changes_nothing() {
    check(&waiting(), defer(1, new_operation()), Decision::Nothing);
}

#[test]
fn work_waits_for_one_operation_at_a_time() {
    let other = JobCommand::Defer {
        attempt_id: attempt(1),
        operation_id: OperationId::new("op-2"),
        operation: Box::new(new_operation()),
        then: AfterExternal::Finish,
        left_by: LeftBy::Executor,
    };
    let (from, to) = (JobStateName::AwaitingExternal, JobStateName::AwaitingExternal);
    check(&waiting(), other, orphaned("op-2", Refusal::TransitionRefused { from, to }));
}

#[test]
fn stale_word_of_a_doer_leaves_evidence_and_no_orphan() {
    let given = [created(), dispatched(1), super::submit::lease_lost(), dispatched(2)];
    let mut late = defer(1, new_operation());
    let JobCommand::Defer { left_by, .. } = &mut late else { unreachable!("it is one") };
    *left_by = LeftBy::Doer(Reporter::Daemon);
    let decided = decide(&job(&given), &late, NOW);
    let Decision::Refused { refusal, evidence, consequences } = decided else { panic!("{decided:?}") };
    assert_eq!((refusal, consequences.len()), (Refusal::StaleAttempt, 0));
    assert!(matches!(evidence, Some(JobFact::StaleReportKept(_))), "{evidence:?}");
}

#[test]
fn what_may_run_outside_is_written_down_also_when_no_more_reports_are_kept() {
    let late = StaleReport {
        attempt_id: attempt(1),
        state: JobStateName::Failed,
        at: Timestamp::default(),
        details: Details::default(),
    };
    let mut given = vec![created(), dispatched(1), requeued(NOW), dispatched(2)];
    given.extend(vec![JobFact::StaleReportKept(late); KEPT_EVIDENCE]);
    let Decision::Refused { refusal, consequences, .. } =
        orphaned(operation_id().as_str(), Refusal::StaleAttempt)
    else {
        unreachable!()
    };
    let then = Decision::Refused { refusal, evidence: None, consequences };
    check(&given, defer(1, new_operation()), then);
    check(&given, defer(9, new_operation()), Decision::refuse(Refusal::StaleAttempt));
}

#[test]
fn paused_work_is_not_deferred() {
    for (from, given) in dispatched_and_open() {
        if matches!(from, JobStateName::AwaitingInput | JobStateName::Blocked) {
            let refusal = Refusal::TransitionRefused { from, to: JobStateName::AwaitingExternal };
            check(&given, defer(1, new_operation()), orphaned(operation_id().as_str(), refusal));
        }
    }
}

#[test]
fn only_the_current_attempt_may_defer() {
    let given = [created(), dispatched(1), requeued(NOW), dispatched(2)];
    let refused = orphaned(operation_id().as_str(), Refusal::StaleAttempt);
    check(&given, defer(1, new_operation()), refused);
    check(&given, defer(7, new_operation()), Decision::refuse(Refusal::StaleAttempt));
}

#[test]
fn work_left_outside_after_the_end_is_written_down() {
    let given = [created(), dispatched(1), expired(ExpiryCause::TimeOver)];
    let refusal = Refusal::Terminal { state: JobStateName::Expired };
    check(&given, defer(1, new_operation()), orphaned(operation_id().as_str(), refusal));
}

#[test]
fn the_result_of_the_operation_is_the_result_of_the_job() {
    let found = ResultRefs { data: Some(body(BodyName::Result, 5)), ..summary("12 pages") };
    let then = Decision::fact(JobFact::Completed(over_outside(result(found.clone()))));
    let job = check(&waiting(), conclude(OperationEnding::Completed(found.clone())), then).unwrap();
    assert_eq!((job.state, job.result), (JobState::Completed, found));
}

#[test]
fn a_result_that_the_executor_waits_for_lets_it_go_on() {
    let found = summary("12 pages");
    let then = Decision::fact(JobFact::ExternalArrived(result(found.clone())));
    let job = check(&waiting_to_go_on(), conclude(OperationEnding::Completed(found)), then).unwrap();
    assert_eq!((job.state, job.resume_pending), (JobState::Running, true));
}

#[test]
fn an_executor_is_resumed_once() {
    let arrived = JobFact::ExternalArrived(Details::default());
    let given = [&waiting_to_go_on()[..], &[arrived]].concat();
    let resume = || JobCommand::Resume { attempt_id: attempt(1) };
    let job = check(&given, resume(), Decision::fact(JobFact::Resumed)).unwrap();
    assert!(!job.resume_pending);
    let resumed = [given, vec![JobFact::Resumed]].concat();
    check(&resumed, resume(), Decision::Nothing);
    check(&resumed, JobCommand::Resume { attempt_id: attempt(2) }, Decision::refuse(Refusal::StaleAttempt));
}

#[test]
fn only_running_work_is_resumed() {
    for (state, given) in dispatched_and_open().into_iter().chain(dispatched_and_over()) {
        if state != JobStateName::Running {
            let refusal = Refusal::NotRunnable { state };
            check(&given, JobCommand::Resume { attempt_id: attempt(1) }, Decision::refuse(refusal));
        }
    }
}

// conforms: O32
#[test]
fn a_failure_outside_is_tried_again_while_attempts_are_left() {
    let details = over_outside(Details { reason: Some("no_paper".to_owned()), ..result(summary("empty")) });
    let again = JobFact::Requeued {
        due_at: NOW.plus_seconds(5),
        cause: RequeueCause::AttemptFailed,
        details: details.clone(),
    };
    check(&waiting(), conclude(failed_outside(Retryable::Yes)), Decision::fact(again));
    let once = [created_for_one_attempt(), dispatched(1), deferred()];
    let used_up = JobFact::Failed(Details { attempts_used_up: true, ..details.clone() });
    check(&once, conclude(failed_outside(Retryable::Yes)), Decision::fact(used_up));
    let over = Decision::fact(JobFact::Failed(details));
    check(&waiting(), conclude(failed_outside(Retryable::No)), over);
}

// conforms: O33
#[test]
fn work_out_of_its_own_time_is_resubmitted_only_if_wanted() {
    let details = over_outside(Details::because("operation_timed_out"));
    let over = Decision::fact(JobFact::Failed(details.clone()));
    check(&waiting(), conclude(OperationEnding::TimedOut(Retryable::No)), over);
    let again = JobFact::Requeued {
        due_at: NOW.plus_seconds(5),
        cause: RequeueCause::AttemptFailed,
        details: details.clone(),
    };
    check(&waiting(), conclude(OperationEnding::TimedOut(Retryable::Yes)), Decision::fact(again));
    let once = [created_for_one_attempt(), dispatched(1), deferred()];
    let used_up = JobFact::Failed(Details { attempts_used_up: true, ..details });
    check(&once, conclude(OperationEnding::TimedOut(Retryable::Yes)), Decision::fact(used_up));
}

#[test]
fn an_operation_that_its_service_does_not_know_fails_the_job_without_another_start() {
    let then = Decision::fact(JobFact::Failed(Details::because("operation_unknown")));
    check(&waiting(), conclude(OperationEnding::Unknown), then);
}

#[test]
fn an_operation_whose_granted_life_is_over_expires_the_job() {
    let then = Decision::fact(expired(super::super::ExpiryCause::OperationExpired));
    let job = check(&waiting(), conclude(OperationEnding::Expired { last_error: None }), then).unwrap();
    assert_eq!(job.state_reason.as_deref(), Some("operation_expired"));
}

#[test]
fn a_job_whose_operation_expired_tells_what_the_last_poll_failed_with() {
    let last_error = PollError {
        code: "connect_failed".to_owned(),
        message: "no route to the patient".to_owned(),
        status: Some(503),
        ..PollError::default()
    };
    let ending = conclude(OperationEnding::Expired { last_error: Some(last_error) });
    let Decision::Facts { facts, .. } = decide(&job(&waiting()), &ending, NOW) else { panic!("it ends") };
    let [JobFact::Expired(conclusion)] = &facts[..] else { panic!("{facts:?}") };
    let note = conclusion.details.note.as_deref().unwrap();
    assert_eq!(note, "the last poll failed: connect_failed: HTTP 503", "what was said is private");
    let ended = job(&[waiting().to_vec(), facts].concat());
    assert_eq!(ended.state_reason.as_deref(), Some("operation_expired"));
}

#[test]
fn an_operation_stopped_on_our_request_confirms_the_cancel_and_otherwise_fails_the_job() {
    let asked = [&waiting()[..], &[cancel_requested()]].concat();
    let details = over_outside(Details::default());
    let confirmed = JobFact::Cancelled(Conclusion { cause: CancelCause::Confirmed, details });
    let confirmed = Decision::fact(confirmed);
    check(&asked, conclude(OperationEnding::Cancelled), confirmed);
    let outside = over_outside(Details::because("operation_cancelled_outside"));
    let outside = Decision::fact(JobFact::Failed(outside));
    check(&waiting(), conclude(OperationEnding::Cancelled), outside);
}

#[test]
fn a_job_that_waits_for_another_operation_takes_no_notice_of_the_end_of_this_one() {
    let other = JobFact::Deferred { operation_id: OperationId::new("op-2"), then: AfterExternal::Finish };
    let given = [created(), dispatched(1), other];
    check(&given, conclude(OperationEnding::TimedOut(Retryable::No)), Decision::Nothing);
}

// conforms: L37
#[test]
fn a_job_that_has_moved_on_takes_no_notice_of_how_its_operation_ended() {
    let moved_on = dispatched_and_open().into_iter().chain(dispatched_and_over());
    for (_, given) in moved_on.filter(|(state, _)| *state != JobStateName::AwaitingExternal) {
        check(&given, conclude(OperationEnding::Completed(summary("late"))), Decision::Nothing);
    }
}
