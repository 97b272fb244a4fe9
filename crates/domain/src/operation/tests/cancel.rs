//! Stopping an operation: by a caller, who is told if it cannot, or by its job, whose own cancel goes on.

use super::*;
use crate::attention::Retention;
use crate::job::{CancelAnswer, CancelRecipient, CancelSent, CancelTry};
use crate::limits::{KEPT_CANCEL_ANSWERS, MAX_LABEL_BYTES, MAX_NOTE_BYTES};
use crate::policy::CancelPolicy;

const ORIGINS: [CancelOrigin; 2] = [CancelOrigin::Caller, CancelOrigin::ParentJob];

fn request_cancel(origin: CancelOrigin) -> OperationCommand {
    OperationCommand::RequestCancel { by: Some("ada".to_owned()), reason: "not needed".to_owned(), origin }
}

fn answer(answer: CancelAnswer) -> OperationCommand {
    OperationCommand::RecordCancelAnswer { answer, told: None, said: None, jitter: Jitter(0) }
}

fn answered(answer: CancelAnswer, next_try_at: Option<Timestamp>) -> OperationFact {
    OperationFact::CancelAnswered { answer, told: None, said: None, next_try_at }
}

/// What the job is told of an answer of its service.
pub(super) fn sent(answer: CancelAnswer, told: Option<&str>) -> CancelTry {
    let (to, told) = (CancelRecipient::Service, told.map(str::to_owned));
    CancelTry::Sent(CancelSent { to, answer: Some(answer), told })
}

/// The facts, and the word to the job of what came of its cancel.
pub(super) fn telling(facts: impl Into<Vec<OperationFact>>, tried: CancelTry) -> Decision<OperationFact> {
    let attempt_id = link().attempt_id;
    Decision::facts(facts).then(job_id(), JobCommand::RecordCancelTry { attempt_id, tried })
}

/// Operations that cannot be stopped, and why.
fn unstoppable() -> [(OperationFact, &'static str); 2] {
    let deny = KindPolicy { cancel_policy: CancelPolicy::Deny, ..KindPolicy::default() };
    [
        (
            accepted_with(|accepted| {
                accepted.cancelability = Cancelability::NotCancelable("already printing".to_owned());
            }),
            "already printing",
        ),
        (accepted_with(|accepted| accepted.policy = deny), "denied by the host's policy"),
    ]
}

#[test]
fn a_cancel_is_recorded_and_due_at_once_whoever_asks() {
    for origin in ORIGINS {
        let operation =
            check(&[accepted()], request_cancel(origin), Decision::fact(cancel_requested())).unwrap();
        assert_eq!(operation.status(), OperationStatus::Pending);
        let cancel = operation.cancel.as_ref().unwrap();
        assert_eq!((cancel.requested_at, cancel.next_try_at, cancel.tries), (NOW, Some(NOW), 0));
        let later = operation.clone();
        assert_eq!(later.attention(Retention::DEFAULT).due_at, Some(BEFORE.plus_seconds(5)));
        let polled = fold(Some(operation), &[running()], NOW).unwrap();
        assert_eq!(polled.attention(Retention::DEFAULT).due_at, Some(NOW));
    }
}

#[test]
fn a_second_request_changes_nothing() {
    for origin in ORIGINS {
        check(&[accepted(), cancel_requested()], request_cancel(origin), Decision::Nothing);
    }
}

#[test]
fn a_cancel_after_the_end_changes_nothing() {
    for (_, end) in ends_with_nothing_left() {
        for origin in ORIGINS {
            check(&[accepted(), end.clone()], request_cancel(origin), Decision::Nothing);
        }
    }
    for (unstoppable, _) in unstoppable() {
        check(&[unstoppable, failed()], request_cancel(CancelOrigin::Caller), Decision::Nothing);
    }
}

#[test]
fn a_caller_is_told_why_an_operation_cannot_be_stopped() {
    for (given, reason) in unstoppable() {
        let refusal = Refusal::NotCancelable { reason: reason.to_owned() };
        check(&[given], request_cancel(CancelOrigin::Caller), Decision::refuse(refusal));
    }
}

#[test]
fn a_caller_is_told_so_also_after_the_job_has_asked() {
    for (given, reason) in unstoppable() {
        let refused = CancelAnswer::Refused(reason.to_owned());
        let given = [given, cancel_requested(), answered(refused, None)];
        let refusal = Refusal::NotCancelable { reason: reason.to_owned() };
        check(&given, request_cancel(CancelOrigin::Caller), Decision::refuse(refusal));
        check(&given, request_cancel(CancelOrigin::ParentJob), Decision::Nothing);
    }
}

#[test]
fn the_cancel_of_a_job_is_recorded_although_its_operation_cannot_be_stopped() {
    for (given, reason) in unstoppable() {
        let refused = OperationFact::CancelAnswered {
            answer: CancelAnswer::Refused(reason.to_owned()),
            told: Some("not asked".to_owned()),
            said: None,
            next_try_at: None,
        };
        let then = telling([cancel_requested(), refused], CancelTry::NotCancelable(reason.to_owned()));
        let operation = check(&[given], request_cancel(CancelOrigin::ParentJob), then).unwrap();
        assert_eq!(operation.status(), OperationStatus::Pending);
        assert_eq!(operation.cancel.unwrap().next_try_at, None);
    }
}

#[test]
fn a_confirmed_cancel_ends_the_operation_and_tells_the_job() {
    let given = [accepted(), cancel_requested()];
    let ending = OperationEnding::Cancelled;
    let conclude = JobCommand::ConcludeOperation { operation_id: id(), ending, jitter: Jitter(0) };
    let then =
        telling([OperationFact::Cancelled], sent(CancelAnswer::Cancelled, None)).then(job_id(), conclude);
    let operation = check(&given, answer(CancelAnswer::Cancelled), then).unwrap();
    assert_eq!((operation.status(), operation.orphan()), (OperationStatus::Cancelled, None));
}

#[test]
fn a_service_that_answered_is_not_asked_again() {
    for said in [CancelAnswer::Accepted, CancelAnswer::Refused("too late".to_owned())] {
        let then = telling([answered(said.clone(), None)], sent(said.clone(), None));
        let operation = check(&[accepted(), cancel_requested()], answer(said), then).unwrap();
        assert_eq!(operation.status(), OperationStatus::Pending);
        let cancel = operation.cancel.unwrap();
        assert_eq!((cancel.tries, cancel.next_try_at, cancel.answers.len()), (1, None, 1));
    }
}

#[test]
fn a_service_that_cannot_be_reached_is_asked_again_later_and_later() {
    let mut given = vec![accepted(), cancel_requested()];
    for wait in [1, 2, 4, 8, 16, 32, 60, 60] {
        let said = OperationCommand::RecordCancelAnswer {
            answer: CancelAnswer::Unreachable,
            told: None,
            said: None,
            jitter: Jitter(u16::MAX),
        };
        let Decision::Facts { facts, .. } = decide(&operation(&given), &said, NOW) else {
            panic!("a pending cancel takes an answer")
        };
        let [OperationFact::CancelAnswered { next_try_at: Some(next), .. }] = facts[..] else {
            panic!("unreachable is tried again: {facts:?}")
        };
        let micros = next.micros() - NOW.micros();
        assert!(
            micros <= wait * 1_000_000 && micros >= (wait - 1).max(1) * 1_000_000,
            "{micros} of {wait} s"
        );
        given.extend(facts);
    }
}

#[test]
fn only_the_newest_answers_are_kept() {
    let mut given = vec![accepted(), cancel_requested()];
    for _ in 0..KEPT_CANCEL_ANSWERS + 3 {
        given.push(answered(CancelAnswer::Unreachable, Some(NOW)));
    }
    let then = telling([answered(CancelAnswer::Accepted, None)], sent(CancelAnswer::Accepted, None));
    let cancel = check(&given, answer(CancelAnswer::Accepted), then).unwrap().cancel.unwrap();
    assert_eq!(cancel.answers.len(), KEPT_CANCEL_ANSWERS);
    assert_eq!(cancel.answers.last().unwrap().answer, CancelAnswer::Accepted);
}

#[test]
fn the_job_is_not_told_of_a_request_that_was_not_made() {
    for (answer, told, tried) in [
        (
            CancelAnswer::Refused("no brake".to_owned()),
            "not asked",
            CancelTry::NotCancelable("no brake".to_owned()),
        ),
        (
            CancelAnswer::Refused("no URL".to_owned()),
            "not asked: request_not_rendered",
            CancelTry::NotSent("request_not_rendered".to_owned()),
        ),
        (
            CancelAnswer::Unreachable,
            "specialist_unregistered",
            CancelTry::NotSent("specialist_unregistered".to_owned()),
        ),
        (CancelAnswer::Unreachable, "timed_out", sent(CancelAnswer::Unreachable, Some("timed_out"))),
    ] {
        let when = OperationCommand::RecordCancelAnswer {
            answer,
            said: None,
            told: Some(told.to_owned()),
            jitter: Jitter(0),
        };
        let given = operation(&[accepted(), cancel_requested()]);
        let Decision::Facts { consequences, .. } = decide(&given, &when, NOW) else { panic!("it is taken") };
        let Decision::Facts { consequences: expected, .. } = telling([accepted()], tried) else {
            unreachable!()
        };
        assert_eq!(consequences, expected, "{told}");
    }
}

#[test]
fn an_answer_that_nobody_asked_for_is_refused() {
    let refused = Decision::refuse(Refusal::NoCancelPending);
    check(&[accepted()], answer(CancelAnswer::Cancelled), refused);
}

#[test]
fn an_answer_after_the_end_changes_nothing() {
    for (_, end) in ends_with_nothing_left() {
        check(&[accepted(), cancel_requested(), end], answer(CancelAnswer::Cancelled), Decision::Nothing);
    }
}

#[test]
fn work_that_completes_before_the_cancel_reaches_it_is_completed() {
    let given = [accepted(), cancel_requested()];
    let then = and_the_job([completed(summary("done"))], OperationEnding::Completed(summary("done")));
    check(&given, answers(PollAnswer::Completed(summary("done"))), then);
}

#[test]
fn what_is_said_with_a_cancel_has_limits() {
    let (by, reason) = (None, String::new());
    let origin = CancelOrigin::ParentJob;
    let long = "x".repeat(MAX_NOTE_BYTES + 1);
    let by_someone_long = Some("x".repeat(MAX_LABEL_BYTES + 1));
    for (when, what, limit) in [
        (
            OperationCommand::RequestCancel { by, reason: long.clone(), origin },
            "cancel reason",
            MAX_NOTE_BYTES,
        ),
        (
            OperationCommand::RequestCancel { by: by_someone_long, reason, origin },
            "cancel requester",
            MAX_LABEL_BYTES,
        ),
        (answer(CancelAnswer::Refused(long)), "refusal of the cancel", MAX_NOTE_BYTES),
    ] {
        check(&[accepted()], when, Decision::refuse(Refusal::TooLarge { what, limit }));
    }
}

#[test]
fn a_refusal_to_stop_is_told_to_whoever_asks_why() {
    let refused = answered(CancelAnswer::Refused("already printing".to_owned()), None);
    let operation = operation(&[accepted(), cancel_requested(), refused]);
    let told = crate::job::waiting_outside(&operation).detail;
    assert!(told.ends_with("; asked to stop it, it refused: already printing"), "{told}");
    let own = crate::job::KeptCancelAnswer {
        told: Some("not asked".to_owned()),
        ..operation.cancel.unwrap().answers.pop().unwrap()
    };
    assert_eq!(crate::job::cancel_told(&own), "it was not asked to stop: already printing");
}
