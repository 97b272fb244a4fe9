//! What a service says in errors: private texts, so many of them, until a purge.

use super::*;
use crate::job::CancelAnswer;
use crate::limits::KEPT_TEXTS;

fn said(seed: u8) -> OperationFact {
    let error = PollError {
        code: "service_error".to_owned(),
        status: Some(500),
        said: Some(body(BodyName::Error, seed)),
        ..PollError::default()
    };
    OperationFact::Polled(Polled { error: Some(error), ..polled_again_in(10) })
}

#[test]
fn only_the_first_different_texts_are_kept() {
    let polls = (0..20).flat_map(|seed| [said(seed), said(seed)]);
    let operation = operation(&[accepted()].into_iter().chain(polls).collect::<Vec<_>>());
    let first: Vec<_> = (0..20).take(KEPT_TEXTS).map(|seed| body(BodyName::Error, seed)).collect();
    assert_eq!(operation.texts, first);
    let error = operation.last_error.unwrap();
    assert!(error.shown().starts_with("HTTP 500, sha256:"), "{}", error.shown());
    assert_eq!(error.said, Some(body(BodyName::Error, 19)), "the digest of the newest is known all the same");
}

#[test]
fn purge_takes_the_texts_and_keeps_the_handle_of_an_orphan() {
    check(&[accepted(), said(1)], OperationCommand::Purge, Decision::refuse(Refusal::OperationOpen));
    for (end, handle_kept) in
        [(failed(), false), (OperationFact::Expired { cause: ExpiryCause::LifetimeOver }, true)]
    {
        let given = [accepted(), said(1), end];
        let purged = OperationFact::Purged { handle_kept };
        check(&given, OperationCommand::Purge, Decision::fact(purged.clone()));
        let given = [&given[..], &[purged, said(2)]].concat();
        let operation = operation(&given);
        assert_eq!(operation.texts, [], "nothing more is kept");
        assert_eq!(operation.handle.is_some(), handle_kept);
        check(&given, OperationCommand::Purge, Decision::Nothing);
    }
}

#[test]
fn words_of_a_failed_poll_are_in_no_fact_and_no_view() {
    let error = PollError { message: "no bed for the patient".to_owned(), ..unreachable_error() };
    let then = Polled { error: Some(unreachable_error()), ..polled_again_in(1) };
    check(&[accepted()], poll_error(error.clone()), Decision::fact(OperationFact::Polled(then)));
    // A fact of an older version may hold them.
    let old = OperationFact::Polled(Polled { error: Some(error.clone()), ..polled_again_in(1) });
    let late = LatePolled { error: Some(error), next_poll_at: None };
    let expired = OperationFact::Expired { cause: ExpiryCause::LifetimeOver };
    let shown = operation(&[accepted(), old, expired, OperationFact::LatePolled(late)]);
    assert_eq!(shown.last_error, Some(unreachable_error()));
    assert_eq!(shown.aftermath.unwrap().last_error, Some(unreachable_error()));
    assert_eq!(shown.diagnostics[0].message, "HTTP 503");
}

#[test]
fn purge_takes_the_words_of_an_old_refused_cancel() {
    let answered = |told: &str| OperationFact::CancelAnswered {
        answer: CancelAnswer::Refused("too late for the patient".to_owned()),
        told: Some(told.to_owned()),
        said: None,
        next_try_at: None,
    };
    for (told, is_ours) in [("HTTP 409", false), ("not asked: foreign_origin", false), ("not asked", true)] {
        let given = [
            accepted(),
            cancel_requested(),
            answered(told),
            failed(),
            OperationFact::Purged { handle_kept: false },
        ];
        let answers = operation(&given).cancel.unwrap().answers;
        let CancelAnswer::Refused(words) = &answers[0].answer else { panic!("{answers:?}") };
        assert_eq!(words.contains("patient"), is_ours, "{told}: {words}");
    }
}

#[test]
fn body_of_another_kind_is_no_text() {
    let error = PollError {
        code: "service_error".to_owned(),
        said: Some(body(BodyName::Result, 1)),
        ..PollError::default()
    };
    let refusal = Refusal::WrongBody { expected: "error", given: "result" };
    check(&[accepted()], poll_error(error), Decision::refuse(refusal));
}
