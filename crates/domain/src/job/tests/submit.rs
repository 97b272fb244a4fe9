//! Giving work to a service: what a crash around it leads to, and that it is never a blind second start.

use super::*;
use crate::Command;
use crate::job::{Intent, Resubmit};
use crate::operation::OperationCommand;

fn operation_id() -> OperationId {
    OperationId::new("op-1")
}

fn intent(resubmit: Resubmit) -> Intent {
    Intent {
        operation_id: operation_id(),
        kind: "render".to_owned(),
        specialist: "render-farm".to_owned(),
        request: crate::Digest([9; 32]),
        resubmit,
        not_cancelable: None,
    }
}

fn intend(number: u32) -> JobCommand {
    let intent = Box::new(intent(Resubmit::SameKey));
    JobCommand::IntendSubmit { attempt_id: attempt(number), intent }
}

fn intended(resubmit: Resubmit) -> JobFact {
    JobFact::SubmitIntended(Box::new(intent(resubmit)))
}

fn lose(number: u32) -> JobCommand {
    let details = Box::default();
    JobCommand::LoseSubmit { attempt_id: attempt(number), details, not_before: None, jitter: Jitter(0) }
}

pub(super) fn lease_lost() -> JobFact {
    let cause = RequeueCause::LeaseLost;
    JobFact::Requeued { due_at: NOW, cause, details: Details::default() }
}

/// The facts of a decision, and whether it writes down that the work may be outside.
fn orphans(given: &[JobFact], command: &JobCommand) -> (Vec<JobFact>, bool) {
    match decide(&job(given), command, NOW) {
        Decision::Facts { facts, consequences } => {
            let orphan = consequences.iter().any(|then| {
                then.record == operation_id().into()
                    && matches!(
                        &then.command,
                        Command::Operation(OperationCommand::AcceptOrphan { operation, .. })
                            if operation.handle.is_none()
                    )
            });
            (facts, orphan)
        }
        other @ (Decision::Nothing | Decision::Refused { .. }) => panic!("{other:?}"),
    }
}

#[test]
fn an_intent_is_written_once_and_only_by_the_current_attempt_of_work_that_nobody_stops() {
    let given = [created(), dispatched(1)];
    let written = check(&given, intend(1), Decision::fact(intended(Resubmit::SameKey))).unwrap();
    assert_eq!(written.intent, Some(Box::new(intent(Resubmit::SameKey))));
    let open = [created(), dispatched(1), intended(Resubmit::SameKey)];
    check(&open, intend(1), Decision::Nothing);
    check(&given, intend(2), Decision::refuse(Refusal::StaleAttempt));
    let stopping = [created(), dispatched(1), cancel_requested()];
    check(&stopping, intend(1), Decision::refuse(Refusal::CancelPending));
}

#[test]
fn another_request_is_not_begun_while_one_is_open() {
    let other = Intent { operation_id: OperationId::new("op-2"), ..intent(Resubmit::SameKey) };
    let command = JobCommand::IntendSubmit { attempt_id: attempt(1), intent: Box::new(other) };
    let given = [created(), dispatched(1), intended(Resubmit::SameKey)];
    check(&given, command, Decision::refuse(Refusal::SubmitOpen));
}

#[test]
fn after_a_lost_lease_the_next_attempt_goes_on_under_the_same_key() {
    let given = [created(), dispatched(1), intended(Resubmit::SameKey)];
    let (facts, orphan) = orphans(&given, &lose_lease(1));
    assert!(matches!(facts[..], [JobFact::Requeued { cause: RequeueCause::LeaseLost, .. }]));
    assert!(!orphan);
    let again = job(&[given.to_vec(), vec![lease_lost(), dispatched(2)]].concat());
    assert_eq!(again.intent, Some(Box::new(intent(Resubmit::SameKey))));
}

#[test]
fn what_may_not_be_asked_twice_is_not_tried_again_after_a_lost_lease() {
    let given = [created(), dispatched(1), intended(Resubmit::Never)];
    let (facts, orphan) = orphans(&given, &lose_lease(1));
    assert!(matches!(facts[..], [JobFact::Failed(_)]), "the same end whoever finds it out");
    assert!(orphan);
    let over = job(&[given.to_vec(), facts].concat());
    assert_eq!(over.state, JobState::Failed);
    assert_eq!(over.state_reason.as_deref(), Some("submit_outcome_unknown"));
}

#[test]
fn an_unknown_outcome_is_asked_again_under_the_same_key_or_ends_the_job() {
    let may = [created(), dispatched(1), intended(Resubmit::SameKey)];
    let (facts, orphan) = orphans(&may, &lose(1));
    assert!(matches!(facts[..], [JobFact::Requeued { cause: RequeueCause::SubmitUnknown, .. }]));
    assert!(!orphan);
    for given in [
        [created(), dispatched(1), intended(Resubmit::Never)],
        [created_for_one_attempt(), dispatched(1), intended(Resubmit::SameKey)],
    ] {
        let (facts, orphan) = orphans(&given, &lose(1));
        assert!(matches!(&facts[..], [JobFact::Failed(details)]
            if details.reason.as_deref() == Some("submit_outcome_unknown")));
        assert!(orphan);
    }
}

#[test]
fn a_cancel_of_queued_work_that_a_service_may_have_does_not_say_that_it_never_started() {
    let given = [created(), dispatched(1), intended(Resubmit::SameKey), lease_lost()];
    let (facts, orphan) = orphans(&given, &request_cancel());
    assert!(orphan);
    let over = job(&[given.to_vec(), facts].concat());
    assert_eq!(over.state, JobState::Cancelled);
    assert_eq!(over.state_reason.as_deref(), Some("cancel_unconfirmed"));
}

/// A request to a service that could not stop the work, and that such work is asked to stop.
fn unstoppable() -> [JobFact; 3] {
    let not_cancelable = Some("it has no stop".to_owned());
    let intent = Intent { not_cancelable, ..intent(Resubmit::SameKey) };
    [created(), dispatched(1), JobFact::SubmitIntended(Box::new(intent))]
}

#[test]
fn work_given_to_a_service_without_a_stop_is_never_timed_out() {
    let given = unstoppable();
    let tried = CancelTry::NotCancelable("it has no stop".to_owned());
    let Decision::Facts { facts, consequences } = decide(&job(&given), &request_cancel(), NOW) else {
        panic!("a request is always kept")
    };
    assert_eq!((facts.len(), facts.last(), consequences.len()), (2, Some(&JobFact::CancelTried(tried)), 0));
    let pending = [given.to_vec(), facts].concat();
    assert_eq!(job(&pending).cancel_limit_at(), None);
    let never = Refusal::NotDue { due_at: Timestamp::from_micros(i64::MAX) };
    check_at(NOW.plus_seconds(3_600), &pending, JobCommand::TimeOutCancel, Decision::refuse(never));
    let refusal = Refusal::NotCancelable { reason: "it has no stop".to_owned() };
    for given in [given.to_vec(), pending] {
        check(&given, cancel_or_refuse(), Decision::refuse(refusal.clone()));
    }
}

#[test]
fn attempt_that_asked_no_service_says_that_it_never_started() {
    let answer = JobCommand::RecordCancelAnswer {
        attempt_id: attempt(1),
        answer: CancelAnswer::NeverStarted,
        release: None,
    };
    let given = [created(), dispatched(1), cancel_requested()];
    let then = Decision::fact(cancelled(CancelCause::NeverStarted));
    let over = check(&given, answer.clone(), then).unwrap();
    assert_eq!(over.state_reason.as_deref(), Some("cancelled_before_start"));
    // What an earlier attempt asked for may have arrived.
    let open = [created(), dispatched(1), intended(Resubmit::SameKey), cancel_requested()];
    let (facts, orphan) = orphans(&open, &answer);
    assert_eq!((facts, orphan), (vec![cancelled(CancelCause::SubmitUnknown)], true));
}

#[test]
fn no_end_without_the_executors_word_forgets_what_a_service_may_have() {
    let open = [created_for_one_attempt(), dispatched(1), intended(Resubmit::SameKey)];
    let stopping = [open.to_vec(), vec![cancel_requested()]].concat();
    for (given, command) in [
        (open.to_vec(), lose_lease(1)),
        (stopping.clone(), lose_lease(1)),
        (stopping, JobCommand::TimeOutCancel),
    ] {
        assert!(orphans_late(&given, &command), "{command:?}");
    }
}

/// As `orphans`, after every limit has passed.
fn orphans_late(given: &[JobFact], command: &JobCommand) -> bool {
    match decide(&job(given), command, NOW.plus_seconds(86_400)) {
        Decision::Facts { consequences, .. } => consequences
            .iter()
            .any(|then| matches!(&then.command, Command::Operation(OperationCommand::AcceptOrphan { .. }))),
        other @ (Decision::Nothing | Decision::Refused { .. }) => panic!("{other:?}"),
    }
}

#[test]
fn who_made_the_request_says_that_it_is_settled_and_nothing_is_left_behind() {
    for state in [JobStateName::Completed, JobStateName::Failed] {
        let given = [created(), dispatched(1), intended(Resubmit::SameKey)];
        let Decision::Facts { facts, consequences } =
            decide(&job(&given), &ended(state, SubmitWord::Settled), NOW)
        else {
            panic!("an end of the current attempt is taken")
        };
        assert_eq!(consequences, []);
        assert_eq!(job(&[given.to_vec(), facts].concat()).intent, None);
    }
}

#[test]
fn an_end_that_says_nothing_of_the_request_leaves_it_to_the_next_attempt_or_to_the_orphan_ledger() {
    let again = [created(), dispatched(1), intended(Resubmit::SameKey)];
    let Decision::Facts { facts, consequences } =
        decide(&job(&again), &ended(JobStateName::Failed, SubmitWord::Unsaid), NOW)
    else {
        panic!("a failure of the current attempt is taken")
    };
    assert_eq!(consequences, []);
    assert!(job(&[again.to_vec(), facts].concat()).intent.is_some());

    let never = [created(), dispatched(1), intended(Resubmit::Never)];
    assert!(orphans(&never, &ended(JobStateName::Failed, SubmitWord::Unsaid)).1);
    for given in [again, never] {
        for state in [JobStateName::Completed, JobStateName::Cancelled, JobStateName::Unavailable] {
            assert!(orphans(&given, &ended(state, SubmitWord::Unsaid)).1, "{state:?}");
        }
    }
}

#[test]
fn work_that_is_given_away_anew_leaves_the_open_request_to_the_orphan_ledger() {
    let given = [created(), dispatched(1), intended(Resubmit::SameKey), lease_lost(), dispatched(2)];
    let under = |id: &str| JobCommand::Defer {
        attempt_id: attempt(2),
        operation_id: OperationId::new(id),
        operation: Box::new(new_operation()),
        then: AfterExternal::Finish,
        left_by: LeftBy::Executor,
    };
    assert!(!orphans(&given, &under(operation_id().as_str())).1);
    assert!(orphans(&given, &under("op-another")).1);
}

/// The end of the first attempt, as its reporter knows it.
fn ended(state: JobStateName, submit: SubmitWord) -> JobCommand {
    JobCommand::Report(Box::new(Report {
        by: Reporter::Daemon,
        attempt_id: Some(attempt(1)),
        state,
        details: Details::default(),
        retryable: Retryable::Yes,
        jitter: Jitter::default(),
        submit,
    }))
}

#[test]
fn a_late_handle_of_work_that_a_later_attempt_asks_for_again_is_no_orphan() {
    let given = [created(), dispatched(1), intended(Resubmit::SameKey), lease_lost(), dispatched(2)];
    let late = JobCommand::Defer {
        attempt_id: attempt(1),
        operation_id: operation_id(),
        operation: Box::new(new_operation()),
        then: AfterExternal::Finish,
        left_by: LeftBy::Executor,
    };
    let decided = decide(&job(&given), &late, NOW);
    assert_eq!(decided, Decision::refuse(Refusal::StaleAttempt));
}
