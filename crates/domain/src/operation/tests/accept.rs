//! A service took the work: what it belongs to, and what the host grants it.

use super::*;
use crate::limits::{MAX_BODY_BYTES, MAX_LABEL_BYTES, MAX_NOTE_BYTES};
use crate::operation::OrphanReason;

fn accept(new: NewOperation) -> OperationCommand {
    OperationCommand::Accept(Box::new(new))
}

fn granted() -> OperationFact {
    accepted_with(|accepted| {
        accepted.next_poll_at = NOW.plus_seconds(5);
        accepted.expires_at = NOW.plus_seconds(900);
    })
}

// conforms: L32 L38
#[test]
fn accepted_work_is_linked_to_its_job_attempt_kind_and_specialist() {
    let operation = check(&[], accept(new_operation()), Decision::fact(granted())).unwrap();
    assert_eq!(operation.link, link());
    assert_eq!((operation.dispatched_at, operation.last_polled_at), (NOW, None));
    assert_eq!((operation.status(), operation.polls), (OperationStatus::Pending, 0));
}

// conforms: L34
#[test]
fn nothing_that_happens_later_changes_what_an_operation_belongs_to() {
    let known = accepted_with(|accepted| accepted.external_job_id = Some("render-7".to_owned()));
    let new = operation(&[known]);
    let mut later = vec![
        running(),
        poll_failed(),
        cancel_requested(),
        OperationFact::CancelAnswered {
            answer: crate::job::CancelAnswer::Accepted,
            told: None,
            said: None,
            next_try_at: None,
        },
        OperationFact::Contradicted { status: OperationStatus::Failed },
        OperationFact::LatePolled(LatePolled { error: None, next_poll_at: None }),
        OperationFact::Settled(Settlement::Stopped),
        OperationFact::TimersMoved { by_micros: 1_000_000 },
        OperationFact::Purged { handle_kept: true },
        OperationFact::Retired,
    ];
    later.extend(ends().into_iter().map(|(_, end)| end));
    for fact in later {
        let after = fold(Some(new.clone()), &[fact], NOW).unwrap();
        assert_eq!((&after.link, after.handle, after.dispatched_at), (&new.link, new.handle, BEFORE));
        assert_eq!(after.external_job_id.as_deref(), Some("render-7"));
        assert_eq!((after.policy, after.cancelability), (new.policy.clone(), new.cancelability.clone()));
    }
}

// conforms: O36 O38 O40 O41
#[test]
fn the_hints_of_the_service_are_clamped() {
    let new = NewOperation {
        retry_after: Hint::Seconds(99_999),
        fail_after: Hint::Seconds(99_999),
        ..new_operation()
    };
    let then = accepted_with(|accepted| {
        accepted.interval_seconds = 300;
        accepted.next_poll_at = NOW.plus_seconds(300);
        accepted.expires_at = NOW.plus_seconds(900);
        accepted.asked_retry_after_seconds = Some(99_999);
        accepted.asked_ttl_seconds = Some(99_999);
    });
    let operation = check(&[], accept(new), Decision::fact(then)).unwrap();
    let told =
        operation.clamps().into_iter().map(|clamp| (clamp.limit, clamp.asked_seconds, clamp.granted_seconds));
    let expected = [("max_retry_after_seconds", 99_999, 300), ("max_ttl_seconds", 99_999, 900)];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

// conforms: O39
#[test]
fn the_smallest_bound_on_its_life_counts() {
    let new = |fail_after, action_ttl, deadline_in| NewOperation {
        fail_after: Hint::Seconds(fail_after),
        action_ttl: Hint::Seconds(action_ttl),
        deadline_at: Some(NOW.plus_seconds(deadline_in)),
        ..new_operation()
    };
    for (new, life, limit) in [
        (new(1_800, 600, 120), 120, LifeLimit::Job),
        (new(60, 1_800, 400), 60, LifeLimit::FailAfter),
        (new(90, 30, 400), 30, LifeLimit::ActionTtl),
    ] {
        let then = accepted_with(|accepted| {
            accepted.next_poll_at = NOW.plus_seconds(5);
            accepted.expires_at = NOW.plus_seconds(life);
            accepted.bounded_by = Some(limit);
            accepted.asked_ttl_seconds = (limit == LifeLimit::Job).then_some(600);
        });
        check(&[], accept(new), Decision::fact(then));
    }
}

#[test]
fn work_whose_deadline_has_passed_is_not_accepted() {
    for deadline_at in [BEFORE, NOW] {
        let new = NewOperation { deadline_at: Some(deadline_at), ..new_operation() };
        check(&[], accept(new), Decision::refuse(Refusal::DeadlineElapsed));
    }
}

#[test]
fn a_hint_that_makes_no_sense_is_replaced_and_leaves_a_diagnostic() {
    for retry_after in [Hint::Seconds(-3), Hint::Invalid] {
        let then = accepted_with(|accepted| {
            accepted.interval_seconds = 1;
            accepted.invalid_hint = true;
            accepted.next_poll_at = NOW.plus_seconds(1);
            accepted.expires_at = NOW.plus_seconds(900);
            accepted.asked_retry_after_seconds = retry_after.seconds();
        });
        let new = NewOperation { retry_after, ..new_operation() };
        let operation = check(&[], accept(new), Decision::fact(then)).unwrap();
        assert_eq!(operation.diagnostics.len(), 1);
        assert_eq!(
            (operation.diagnostics[0].code.as_str(), operation.diagnostics[0].at),
            ("hint-invalid", NOW)
        );
    }
}

#[test]
fn an_operation_is_accepted_once() {
    check(&[accepted()], accept(new_operation()), Decision::refuse(Refusal::AlreadyExists));
    let mut twice = operation(&[accepted()]);
    assert!(apply(&mut twice, &accepted(), NOW).is_err());
}

#[test]
fn every_other_command_needs_an_operation() {
    for command in [
        still_pending(),
        poll_error(unreachable_error()),
        OperationCommand::RequestCancel { by: None, reason: String::new(), origin: CancelOrigin::Caller },
        OperationCommand::RecordCancelAnswer {
            answer: crate::job::CancelAnswer::Accepted,
            told: None,
            said: None,
            jitter: Jitter(0),
        },
        OperationCommand::Expire,
        OperationCommand::Retire,
    ] {
        check(&[], command, Decision::refuse(Refusal::UnknownRecord));
    }
}

#[test]
fn every_limited_field_is_taken_at_its_limit_and_refused_over_it() {
    type Set = fn(&mut NewOperation, usize);
    let fields: [(&'static str, usize, Set); 5] = [
        ("operation kind", MAX_LABEL_BYTES, |new, n| new.kind = "x".repeat(n)),
        ("specialist", MAX_LABEL_BYTES, |new, n| new.specialist = "x".repeat(n)),
        ("progress_hint", MAX_NOTE_BYTES, |new, n| new.progress_hint = Some("x".repeat(n))),
        ("cancel/unavailable-reason", MAX_NOTE_BYTES, |new, n| {
            new.cancelability = Cancelability::NotCancelable("x".repeat(n));
        }),
        ("handle", MAX_BODY_BYTES, |new, n| new.handle.as_mut().unwrap().size = n as u64),
    ];
    for (what, limit, set) in fields {
        let mut new = new_operation();
        set(&mut new, limit);
        assert!(matches!(decide_new(&id(), &accept(new.clone()), NOW), Decision::Facts { .. }), "{what}");
        set(&mut new, limit + 1);
        check(&[], accept(new), Decision::refuse(Refusal::TooLarge { what, limit }));
    }
}

#[test]
fn a_policy_that_cannot_be_held_is_refused() {
    let policy = KindPolicy { max_attempts: 0, ..KindPolicy::default() };
    let new = NewOperation { policy, ..new_operation() };
    check(&[], accept(new), Decision::refuse(Refusal::InvalidPolicy { field: "max_attempts" }));
}

#[test]
fn an_open_operation_is_no_orphan() {
    assert_eq!(operation(&[accepted()]).orphan(), None::<OrphanReason>);
}
