//! What may still run outside after the host has given it up: asked to stop, looked at, settled.

use super::cancel::{sent, telling};
use super::*;
use crate::attention::Retention;
use crate::job::CancelAnswer;
use crate::operation::{Aftermath, LATE_POLLS_SECONDS, LatePolled, MAX_LATE_POLLS, OrphanReason};

fn later() -> Timestamp {
    EXPIRES_AT.plus_seconds(60)
}

fn expired() -> OperationFact {
    OperationFact::Expired { cause: ExpiryCause::LifetimeOver }
}

fn orphan() -> Vec<OperationFact> {
    vec![accepted(), expired()]
}

fn unknown_submit() -> Vec<OperationFact> {
    vec![
        accepted_with(|accepted| {
            accepted.handle = None;
            accepted.cancelability = Cancelability::NotCancelable("nobody knows its handle".to_owned());
        }),
        OperationFact::Expired { cause: ExpiryCause::SubmitOutcomeUnknown },
    ]
}

fn settle() -> OperationCommand {
    OperationCommand::Settle { by: Some("ada".to_owned()), note: "it is gone".to_owned() }
}

fn stopped() -> OperationFact {
    OperationFact::Settled(Settlement::Stopped)
}

fn cancel_answer(answer: CancelAnswer) -> OperationCommand {
    OperationCommand::RecordCancelAnswer { answer, told: None, said: None, jitter: Jitter(0) }
}

fn unreachable(next_try_at: Option<Timestamp>) -> OperationFact {
    OperationFact::CancelAnswered { answer: CancelAnswer::Unreachable, told: None, said: None, next_try_at }
}

#[test]
fn what_is_given_up_is_asked_to_stop_and_due_for_it_at_once() {
    let given = [accepted(), expired(), cancel_requested()];
    let attention = operation(&given).attention(Retention::DEFAULT);
    assert_eq!(attention.due_at, operation(&given).cancel.unwrap().next_try_at);
    let settled = [accepted(), expired(), cancel_requested(), stopped()];
    let kept_until = operation(&settled).ended.unwrap().at.plus_seconds(Retention::DEFAULT.other_seconds);
    assert_eq!(operation(&settled).attention(Retention::DEFAULT).due_at, Some(kept_until));
}

#[test]
fn a_service_that_has_stopped_it_after_all_settles_it() {
    let given = [accepted(), expired(), cancel_requested()];
    let then = telling([stopped()], sent(CancelAnswer::Cancelled, None));
    let operation = check_at(later(), &given, cancel_answer(CancelAnswer::Cancelled), then).unwrap();
    assert_eq!((operation.orphan(), operation.status()), (None, OperationStatus::Expired));
}

#[test]
fn a_service_that_cannot_be_reached_is_asked_a_few_times_more_and_no_further() {
    let mut given = vec![accepted(), expired(), cancel_requested()];
    for tries in 1..10 {
        let next = KindPolicy::default().next_poll_after_error(tries, Jitter(0), later());
        let then = telling([unreachable(Some(next))], sent(CancelAnswer::Unreachable, None));
        check_at(later(), &given, cancel_answer(CancelAnswer::Unreachable), then);
        given.push(unreachable(Some(later())));
    }
    let then = telling([unreachable(None)], sent(CancelAnswer::Unreachable, None));
    check_at(later(), &given, cancel_answer(CancelAnswer::Unreachable), then);
}

#[test]
fn somebody_may_ask_again_when_nobody_tries_any_more() {
    let given = [accepted(), expired(), cancel_requested(), unreachable(None)];
    let again = OperationCommand::RequestCancel {
        by: Some("ada".to_owned()),
        reason: "not needed".to_owned(),
        origin: CancelOrigin::Caller,
    };
    let asked =
        OperationFact::CancelRequested { by: Some("ada".to_owned()), reason: "not needed".to_owned() };
    check_at(later(), &given, again.clone(), Decision::fact(asked));
    let being_tried = [accepted(), expired(), cancel_requested()];
    check_at(later(), &being_tried, again.clone(), Decision::Nothing);
    let reason = "nobody knows its handle".to_owned();
    check_at(later(), &unknown_submit(), again, Decision::refuse(Refusal::NotCancelable { reason }));
}

#[test]
fn somebody_who_has_looked_settles_it_once() {
    let by_hand = OperationFact::Settled(Settlement::ByHand {
        by: Some("ada".to_owned()),
        note: "it is gone".to_owned(),
    });
    for given in [orphan(), unknown_submit(), vec![accepted(), OperationFact::Resolved(Ending::Unknown)]] {
        let operation = check_at(later(), &given, settle(), Decision::fact(by_hand.clone())).unwrap();
        assert_eq!(operation.orphan(), None);
        let settled = [given, vec![by_hand.clone()]].concat();
        check_at(later(), &settled, settle(), Decision::Nothing);
    }
}

#[test]
fn what_cannot_run_outside_is_not_settled() {
    check(&[accepted()], settle(), Decision::refuse(Refusal::NotOrphaned));
    for (_, end) in ends_with_nothing_left() {
        check(&[accepted(), end], settle(), Decision::refuse(Refusal::NotOrphaned));
    }
}

// conforms: L34
#[test]
fn a_handle_that_comes_after_all_is_kept_once() {
    let learn_under = |external_job_id: &str, handle| OperationCommand::AcceptOrphan {
        operation: Box::new(NewOperation {
            handle,
            external_job_id: Some(external_job_id.to_owned()),
            ..new_operation()
        }),
        reason: "stale_attempt".to_owned(),
    };
    let learn = |handle| learn_under("r-7", handle);
    let learned = OperationFact::HandleLearned {
        handle: body(BodyName::Handle, 7),
        cancelability: Cancelability::Cancelable,
        external_job_id: Some("r-7".to_owned()),
    };
    let handle = Some(body(BodyName::Handle, 7));
    let operation =
        check_at(later(), &unknown_submit(), learn(handle), Decision::fact(learned.clone())).unwrap();
    assert_eq!(operation.orphan(), Some(OrphanReason::SubmitOutcomeUnknown));
    let known = [unknown_submit(), vec![learned]].concat();
    check_at(later(), &known, learn(handle), Decision::Nothing);
    let other = learn_under("r-8", Some(body(BodyName::Handle, 8)));
    let operation = check_at(later(), &known, other, Decision::Nothing).unwrap();
    assert_eq!((operation.handle, operation.external_job_id.as_deref()), (handle, Some("r-7")));
    check_at(later(), &unknown_submit(), learn(None), Decision::Nothing);
}

#[test]
fn work_is_not_accepted_without_a_handle() {
    let accept = OperationCommand::Accept(Box::new(NewOperation { handle: None, ..new_operation() }));
    let refusal = Refusal::WrongBody { expected: "handle", given: "nothing" };
    assert_eq!(decide_new(&id(), &accept, NOW), Decision::refuse(refusal));
}

#[test]
fn a_submit_of_which_nobody_knows_is_written_down_as_an_orphan_without_a_handle() {
    let orphan = OperationCommand::AcceptOrphan {
        operation: Box::new(NewOperation { handle: None, ..new_operation() }),
        reason: "submit_outcome_unknown".to_owned(),
    };
    let Decision::Facts { facts, .. } = decide_new(&id(), &orphan, NOW) else { panic!("it is kept") };
    assert_eq!(operation(&facts).orphan(), Some(OrphanReason::SubmitOutcomeUnknown));
}

fn late_polled(error: Option<PollError>, next_poll_at: Option<Timestamp>) -> OperationFact {
    OperationFact::LatePolled(LatePolled { error, next_poll_at })
}

#[test]
fn its_service_is_asked_about_it_at_its_own_interval_and_then_less_and_less_often() {
    let given = orphan();
    let (at, interval) = (operation(&given).completed_at().unwrap(), 5);
    let first = at.plus_seconds(interval);
    assert_eq!(operation(&given).late_poll_at(), Some(first));
    assert_eq!(operation(&given).attention(Retention::DEFAULT).due_at, Some(first));
    let second = late_polled(None, Some(first.plus_seconds(2 * interval)));
    let after = check_at(first, &given, still_pending(), Decision::fact(second.clone())).unwrap();
    assert_eq!((after.status(), after.polls), (OperationStatus::Expired, 0));
    assert_eq!(after.attention(Retention::DEFAULT).due_at, after.late_poll_at());
    let given = [given, vec![second]].concat();
    let due_at = first.plus_seconds(2 * interval);
    let third = Some(due_at.plus_seconds(4 * interval));
    let failed = Decision::fact(late_polled(Some(unreachable_error()), third));
    let after = check_at(due_at, &given, poll_error(unreachable_error()), failed).unwrap();
    let aftermath = Aftermath { polls: 2, last_error: Some(unreachable_error()), next_poll_at: third };
    assert_eq!(after.aftermath, Some(aftermath));
    check_at(first, &given, still_pending(), Decision::Nothing);
}

#[test]
fn its_service_is_asked_about_it_no_longer_than_the_bounds_say() {
    let mut now = operation(&orphan()).completed_at().unwrap();
    let last = now.plus_seconds(LATE_POLLS_SECONDS);
    let mut orphan = operation(&orphan());
    let mut polls = 0;
    while let Some(due_at) = orphan.late_poll_at() {
        assert!(due_at > now && due_at <= last, "{due_at:?}");
        now = due_at;
        let decision = decide(&orphan, &poll_error(unreachable_error()), now);
        let Decision::Facts { facts, .. } = decision else { panic!("{decision:?}") };
        orphan = fold(Some(orphan), &facts, now).unwrap();
        polls += 1;
        assert!(polls <= MAX_LATE_POLLS);
    }
    assert!(polls > 10, "{polls}");
    assert_eq!(decide(&orphan, &poll_error(unreachable_error()), now), Decision::Nothing);
    let again = OperationFact::CancelRequested { by: None, reason: "not needed".to_owned() };
    let orphan = fold(Some(orphan), &[again], now).unwrap();
    assert_eq!(orphan.late_poll_at(), Some(now.plus_seconds(5)), "whoever asks again begins anew");
}

#[test]
fn a_service_that_says_that_it_ended_takes_it_off_the_list_and_changes_nothing_else() {
    for (answer, status) in [
        (PollAnswer::Completed(ResultRefs::default()), OperationStatus::Completed),
        (fails(Retryable::Yes), OperationStatus::Failed),
        (PollAnswer::TimedOut, OperationStatus::TimedOut),
        (PollAnswer::Cancelled, OperationStatus::Cancelled),
    ] {
        let settled = OperationFact::Settled(Settlement::EndedOutside { status });
        let then = Decision::facts([OperationFact::Contradicted { status }, settled]);
        let operation = check_at(later(), &orphan(), answers(answer), then).unwrap();
        assert_eq!((operation.orphan(), operation.late_poll_at()), (None, None));
        assert_eq!(operation.status(), OperationStatus::Expired);
    }
}

#[test]
fn a_service_that_does_not_know_it_settles_nothing() {
    let next = operation(&orphan()).late_poll_after(Jitter(0), later());
    let unknown =
        PollError { code: "operation_unknown".to_owned(), message: String::new(), ..PollError::default() };
    let then = Decision::fact(late_polled(Some(unknown), next));
    let operation = check_at(later(), &orphan(), answers(PollAnswer::Unknown), then).unwrap();
    assert_eq!(operation.orphan(), Some(OrphanReason::ExpiredWhileOpen));
}

#[test]
fn nobody_is_asked_about_what_has_no_handle_or_is_settled() {
    assert_eq!(operation(&unknown_submit()).late_poll_at(), None);
    assert_eq!(operation(&[orphan(), vec![stopped()]].concat()).late_poll_at(), None);
    for (_, end) in ends_with_nothing_left() {
        assert_eq!(operation(&[accepted(), end]).late_poll_at(), None);
    }
}

#[test]
fn what_somebody_has_vouched_for_is_not_asked_about_again() {
    let again = || OperationCommand::RequestCancel {
        by: None,
        reason: "not needed".to_owned(),
        origin: CancelOrigin::OrphanLedger,
    };
    let by_hand = Settlement::ByHand { by: None, note: "it is gone".to_owned() };
    for settled in [None, Some(by_hand)] {
        let given = match settled {
            None => vec![accepted(), OperationFact::Cancelled],
            Some(settled) => [orphan(), vec![OperationFact::Settled(settled)]].concat(),
        };
        check_at(later(), &given, again(), Decision::refuse(Refusal::NotOrphaned));
    }
    check(&[accepted()], again(), Decision::refuse(Refusal::NotOrphaned));
    let ended = Settlement::EndedOutside { status: OperationStatus::Failed };
    for settled in [Settlement::Stopped, ended] {
        let given = [orphan(), vec![OperationFact::Settled(settled)]].concat();
        check_at(later(), &given, again(), Decision::Nothing);
    }
    let asked = OperationFact::CancelRequested { by: None, reason: "not needed".to_owned() };
    check_at(later(), &orphan(), again(), Decision::fact(asked));
}

#[test]
fn every_try_to_stop_it_counts_and_keeps_how_it_was_answered() {
    let tried = |told: &str| OperationFact::CancelAnswered {
        answer: CancelAnswer::Unreachable,
        told: Some(told.to_owned()),
        said: None,
        next_try_at: None,
    };
    let given =
        [accepted(), expired(), cancel_requested(), tried("HTTP 500"), cancel_requested(), tried("HTTP 404")];
    let cancel = operation(&given).cancel.unwrap();
    assert_eq!((cancel.tries, cancel.tries_in_all()), (1, 2));
    let told: Vec<_> = cancel.answers.iter().map(|kept| kept.told.as_deref()).collect();
    assert_eq!(told, [Some("HTTP 500"), Some("HTTP 404")]);
    let answer = OperationCommand::RecordCancelAnswer {
        answer: CancelAnswer::Refused("no".to_owned()),
        told: Some("HTTP 409".to_owned()),
        said: None,
        jitter: Jitter(0),
    };
    let then = OperationFact::CancelAnswered {
        answer: CancelAnswer::Refused("no".to_owned()),
        told: Some("HTTP 409".to_owned()),
        said: None,
        next_try_at: None,
    };
    let refused = sent(CancelAnswer::Refused("no".to_owned()), Some("HTTP 409"));
    check_at(later(), &given, answer, telling([then], refused));
}
