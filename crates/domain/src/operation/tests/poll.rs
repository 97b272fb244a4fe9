//! Polls that leave the work open: what they change, and when the next one is.

use super::*;
use crate::attention::Retention;
use crate::limits::{MAX_LABEL_BYTES, MAX_NOTE_BYTES, MAX_PROGRESS_BYTES};
use crate::policy::UnknownPolicy;

fn polled(polled: Polled) -> Decision<OperationFact> {
    Decision::fact(OperationFact::Polled(polled))
}

fn hint(seconds: i64) -> PollHints {
    PollHints { retry_after: Hint::Seconds(seconds), ..PollHints::default() }
}

fn progress(text: &str) -> PollHints {
    PollHints { progress_hint: Some(text.to_owned()), ..PollHints::default() }
}

fn due_at(given: &[OperationFact]) -> Option<Timestamp> {
    operation(given).attention(Retention::DEFAULT).due_at
}

// conforms: O30
#[test]
fn a_poll_that_changes_nothing_holds_only_the_time_of_the_next() {
    let operation = check(&[accepted()], still_pending(), polled(polled_again_in(5))).unwrap();
    assert_eq!((operation.status(), operation.polls), (OperationStatus::Pending, 1));
    assert_eq!((operation.last_polled_at, operation.next_poll_at), (Some(NOW), NOW.plus_seconds(5)));
    let begun = [accepted(), running()];
    let again = still(ReportedStatus::Running, PollHints::default());
    let operation = check(&begun, again, polled(polled_again_in(5))).unwrap();
    assert_eq!(operation.status(), OperationStatus::Running);
}

#[test]
fn a_poll_holds_what_changed() {
    let seen = PollHints {
        retry_after: Hint::Seconds(10),
        fail_after: Hint::Seconds(60),
        progress_hint: Some("page 3".to_owned()),
        progress: Some(Json::parse("{\"page\":3}").unwrap()),
    };
    let then = Polled {
        status: Some(ReportedStatus::Running),
        interval_seconds: Some(10),
        progress_hint: Some("page 3".to_owned()),
        progress: Some(Json::parse("{\"page\":3}").unwrap()),
        expires_at: Some(NOW.plus_seconds(60)),
        ..polled_again_in(10)
    };
    let seen_again = PollHints { fail_after: Hint::Absent, ..seen.clone() };
    check(&[accepted()], still(ReportedStatus::Running, seen), polled(then.clone()));
    let given = [accepted(), OperationFact::Polled(then)];
    check(&given, still(ReportedStatus::Running, seen_again), polled(polled_again_in(10)));
}

#[test]
fn work_that_has_begun_does_not_unbegin() {
    let operation = check(&[accepted(), running()], still_pending(), polled(polled_again_in(5))).unwrap();
    assert_eq!(operation.status(), OperationStatus::Running);
}

// conforms: L43
#[test]
fn interval_and_hint_are_those_of_the_newest_fact_that_carried_them() {
    let first = Polled {
        interval_seconds: Some(10),
        progress_hint: Some("page 3".to_owned()),
        ..polled_again_in(10)
    };
    let given = [accepted(), OperationFact::Polled(first)];
    let silent = check(&given, still_pending(), polled(polled_again_in(10))).unwrap();
    assert_eq!((silent.interval_seconds, silent.progress_hint.as_deref()), (10, Some("page 3")));
    let then =
        Polled { interval_seconds: Some(2), progress_hint: Some("page 4".to_owned()), ..polled_again_in(2) };
    let hints = PollHints { progress_hint: Some("page 4".to_owned()), ..hint(2) };
    let newer = check(&given, still(ReportedStatus::Pending, hints), polled(then)).unwrap();
    assert_eq!((newer.interval_seconds, newer.progress_hint.as_deref()), (2, Some("page 4")));
}

// conforms: O36 O38
#[test]
fn a_hint_of_a_poll_is_clamped() {
    for (asked, granted) in [(0, 1), (-3, 1), (99_999, 300), (i64::MAX, 300), (i64::MIN, 1)] {
        let then = Polled {
            interval_seconds: Some(granted),
            asked_retry_after_seconds: Some(asked),
            invalid_hint: asked < 0,
            ..polled_again_in(u64::from(granted))
        };
        check(&[accepted()], still(ReportedStatus::Pending, hint(asked)), polled(then));
    }
}

#[test]
fn a_hint_that_makes_no_sense_leaves_a_diagnostic() {
    let nonsense = PollHints { retry_after: Hint::Invalid, ..PollHints::default() };
    let then = Polled { interval_seconds: Some(1), invalid_hint: true, ..polled_again_in(1) };
    let operation = check(&[accepted()], still(ReportedStatus::Pending, nonsense), polled(then)).unwrap();
    assert_eq!(operation.diagnostics[0].code, "hint-invalid");
    assert_eq!((operation.errors_in_row, operation.last_error), (0, None));
}

#[test]
fn jitter_makes_a_poll_later_and_never_sooner() {
    let poll =
        Poll { answer: PollAnswer::Open(ReportedStatus::Pending, hint(100)), jitter: Jitter(u16::MAX) };
    let Decision::Facts { facts, .. } =
        decide(&operation(&[accepted()]), &OperationCommand::RecordPoll(Box::new(poll)), NOW)
    else {
        panic!("an open operation takes a poll")
    };
    let next = fold(Some(operation(&[accepted()])), &facts, NOW).unwrap().next_poll_at;
    assert!(next > NOW.plus_seconds(109) && next < NOW.plus_seconds(110), "{next:?}");
}

// conforms: L48
#[test]
fn an_open_operation_is_due_its_interval_after_the_newest_poll_or_else_its_dispatch() {
    assert_eq!(due_at(&[accepted()]), Some(BEFORE.plus_seconds(5)));
    let then = Polled { interval_seconds: Some(7), ..polled_again_in(7) };
    let operation = check(&[accepted()], still(ReportedStatus::Pending, hint(7)), polled(then)).unwrap();
    assert_eq!(operation.last_polled_at, Some(NOW));
    assert_eq!(operation.attention(Retention::DEFAULT).due_at, Some(NOW.plus_seconds(7)));
    let over = fold(Some(operation), &[failed()], NOW).unwrap();
    let kept_until = NOW.plus_seconds(Retention::DEFAULT.other_seconds);
    assert_eq!(over.attention(Retention::DEFAULT).due_at, Some(kept_until));
}

// conforms: O8 O41
#[test]
fn a_later_poll_may_shorten_the_life_and_never_lengthen_it() {
    let gives_up = |seconds| {
        let hints = PollHints { fail_after: Hint::Seconds(seconds), ..PollHints::default() };
        still(ReportedStatus::Pending, hints)
    };
    let sooner = Polled { expires_at: Some(NOW.plus_seconds(60)), ..polled_again_in(5) };
    let operation = check(&[accepted()], gives_up(60), polled(sooner.clone())).unwrap();
    assert_eq!(operation.expires_at, NOW.plus_seconds(60));
    let shortened = [accepted(), OperationFact::Polled(sooner)];
    for seconds in [60, 61, 800, 99_999, i64::MAX] {
        let after = check(&shortened, gives_up(seconds), polled(polled_again_in(5))).unwrap();
        assert_eq!(after.expires_at, NOW.plus_seconds(60));
    }
    for seconds in [900, 99_999, i64::MAX] {
        let after = check(&[accepted()], gives_up(seconds), polled(polled_again_in(5))).unwrap();
        assert_eq!(after.expires_at, EXPIRES_AT);
    }
}

#[test]
fn silence_and_nonsense_about_its_life_change_nothing() {
    for fail_after in [Hint::Absent, Hint::Invalid] {
        let hints = PollHints { fail_after, ..PollHints::default() };
        check(&[accepted()], still(ReportedStatus::Pending, hints), polled(polled_again_in(5)));
    }
}

#[test]
fn a_poll_that_fails_changes_no_status_and_is_tried_again() {
    let given = [accepted(), running()];
    let then = Polled { error: Some(unreachable_error()), ..polled_again_in(1) };
    let operation = check(&given, poll_error(unreachable_error()), polled(then)).unwrap();
    assert_eq!((operation.status(), operation.polls), (OperationStatus::Running, 2));
    assert_eq!((operation.last_polled_at, operation.completed_at()), (Some(NOW), None));
    assert_eq!(operation.interval_seconds, 5);
    assert_eq!((operation.errors_in_row, operation.last_error), (1, Some(unreachable_error())));
    assert_eq!(operation.diagnostics[0].code, "connect_failed");
}

#[test]
fn waits_after_failed_polls_double_up_to_their_cap_with_full_jitter() {
    let next = |errors, jitter| {
        let mut given = vec![accepted()];
        given.extend((0..errors).map(|_| poll_failed()));
        let failing = OperationCommand::RecordPoll(Box::new(Poll {
            answer: PollAnswer::NotNow {
                error: unreachable_error(),
                retry_after: crate::policy::Hint::Absent,
            },
            jitter,
        }));
        let before = operation(&given);
        let Decision::Facts { facts, .. } = decide(&before, &failing, NOW) else {
            panic!("an open operation takes a failed poll")
        };
        let next_poll_at = fold(Some(before), &facts, NOW).unwrap().next_poll_at;
        next_poll_at.micros() - NOW.micros()
    };
    let most = Jitter(u16::MAX);
    let seconds = |errors| (next(errors, most) + 999_999) / 1_000_000;
    assert_eq!([0, 1, 2, 3, 4, 5, 6, 7, 40].map(seconds), [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    for errors in [0, 5, 40] {
        assert_eq!(next(errors, Jitter(0)), 1_000_000, "never sooner than the host's shortest wait");
    }
}

// conforms: O36
#[test]
fn service_without_time_is_asked_later_if_it_says_so_and_within_the_hosts_bounds() {
    use crate::policy::Hint;
    let next = |retry_after, jitter| {
        let failing = OperationCommand::RecordPoll(Box::new(Poll {
            answer: PollAnswer::NotNow { error: unreachable_error(), retry_after },
            jitter,
        }));
        let before = operation(&[accepted()]);
        let Decision::Facts { facts, .. } = decide(&before, &failing, NOW) else {
            panic!("an open operation takes a failed poll")
        };
        (fold(Some(before), &facts, NOW).unwrap().next_poll_at.micros() - NOW.micros()) / 1_000_000
    };
    for (hint, seconds) in [
        (Hint::Absent, 1),
        (Hint::Invalid, 1),
        (Hint::Seconds(-5), 1),
        (Hint::Seconds(0), 1),
        (Hint::Seconds(100), 100),
        (Hint::Seconds(i64::MAX), 300),
    ] {
        assert_eq!(next(hint, Jitter(0)), seconds, "{hint:?}");
        assert!(next(hint, Jitter(u16::MAX)) <= seconds + seconds / 10, "{hint:?}");
    }
}

#[test]
fn a_good_poll_ends_the_row_of_failed_ones() {
    let given = [accepted(), poll_failed(), poll_failed()];
    let operation = check(&given, still_pending(), polled(polled_again_in(5))).unwrap();
    assert_eq!((operation.errors_in_row, operation.last_error), (0, None));
    assert_eq!(operation.diagnostics.len(), 2);
}

#[test]
fn only_the_newest_diagnostics_are_kept_and_each_is_cut() {
    let policy = KindPolicy { diagnostics_max_items: 3, diagnostics_max_bytes: 10, ..KindPolicy::default() };
    let mut given = vec![accepted_with(|accepted| accepted.policy = policy)];
    given.extend((0..5).map(|number| {
        let error = PollError {
            code: number.to_string(),
            message: "schön und gut".to_owned(),
            status: Some(503),
            said: Some(body(BodyName::Error, 1)),
        };
        OperationFact::Polled(Polled { error: Some(error), ..polled_again_in(5) })
    }));
    let kept = operation(&given).diagnostics;
    let codes: Vec<&str> = kept.iter().map(|diagnostic| diagnostic.code.as_str()).collect();
    assert_eq!(codes, ["2", "3", "4"]);
    assert_eq!(kept[0].message, "HTTP 503, ");
}

// conforms: O35
#[test]
fn a_service_that_does_not_know_the_work_ends_it_unless_the_policy_says_to_ask_again() {
    let ended = OperationFact::Resolved(Ending::Unknown);
    let then = and_the_job([ended], OperationEnding::Unknown);
    let operation = check(&[accepted()], answers(PollAnswer::Unknown), then).unwrap();
    assert_eq!(operation.status(), OperationStatus::Unknown);

    let policy = KindPolicy { unknown_policy: UnknownPolicy::RetryUntilExpiry, ..KindPolicy::default() };
    let given = [accepted_with(|accepted| accepted.policy = policy)];
    let error =
        PollError { code: "operation_unknown".to_owned(), message: String::new(), ..PollError::default() };
    let then = Polled { error: Some(error), ..polled_again_in(1) };
    let operation = check(&given, answers(PollAnswer::Unknown), polled(then)).unwrap();
    assert_eq!((operation.status(), operation.errors_in_row), (OperationStatus::Pending, 1));
}

// conforms: O81
#[test]
fn the_last_poll_that_the_host_grants_ends_the_operation() {
    let policy = KindPolicy { max_attempts: 2, ..KindPolicy::default() };
    let given = [accepted_with(|accepted| accepted.policy = policy), running()];
    let failing = Polled { error: Some(unreachable_error()), ..polled_again_in(1) };
    for (when, last) in [(still_pending(), polled_again_in(5)), (poll_error(unreachable_error()), failing)] {
        let last_error = last.error.clone();
        let over = OperationFact::Expired { cause: ExpiryCause::MaxAttemptsExhausted };
        let reaches_out = OperationFact::CancelRequested { by: None, reason: "operation_expired".to_owned() };
        let then = and_the_job(
            [OperationFact::Polled(last), over, reaches_out],
            OperationEnding::Expired { last_error: last_error.clone() },
        );
        let operation = check(&given, when, then).unwrap();
        assert_eq!((operation.status(), operation.polls), (OperationStatus::Expired, 2));
        assert_eq!(operation.failure_detail(), Some("max-attempts-exhausted"));
    }
}

#[test]
fn the_last_poll_that_the_host_grants_may_still_bring_the_result() {
    let policy = KindPolicy { max_attempts: 1, ..KindPolicy::default() };
    let given = [accepted_with(|accepted| accepted.policy = policy)];
    let then = and_the_job([completed(summary("done"))], OperationEnding::Completed(summary("done")));
    check(&given, answers(PollAnswer::Completed(summary("done"))), then);
}

#[test]
fn every_limited_part_of_a_poll_is_taken_at_its_limit_and_refused_over_it() {
    type Say = fn(usize) -> OperationCommand;
    let fields: [(&'static str, usize, Say); 7] = [
        ("progress_hint", MAX_NOTE_BYTES, |n| still(ReportedStatus::Pending, progress(&"x".repeat(n)))),
        ("progress", MAX_PROGRESS_BYTES, |n| {
            let text = format!("\"{}\"", "x".repeat(n - 2));
            let hints = PollHints { progress: Some(Json::parse(&text).unwrap()), ..PollHints::default() };
            still(ReportedStatus::Pending, hints)
        }),
        ("failure_detail", MAX_NOTE_BYTES, |n| {
            answers(PollAnswer::Failed(PollFailure {
                failure_detail: "x".repeat(n),
                error_code: None,
                result: ResultRefs::default(),
                retryable: Retryable::No,
            }))
        }),
        ("error_code", MAX_LABEL_BYTES, |n| {
            answers(PollAnswer::Failed(PollFailure {
                failure_detail: String::new(),
                error_code: Some("x".repeat(n)),
                result: ResultRefs::default(),
                retryable: Retryable::No,
            }))
        }),
        ("result_summary", crate::limits::MAX_SUMMARY_BYTES, |n| {
            answers(PollAnswer::Completed(summary(&"x".repeat(n))))
        }),
        ("result", crate::limits::MAX_BODY_BYTES, |n| {
            let data = Some(BodyRef { size: n as u64, ..body(BodyName::Result, 1) });
            answers(PollAnswer::Completed(ResultRefs { data, ..ResultRefs::default() }))
        }),
        ("poll error code", MAX_LABEL_BYTES, |n| {
            poll_error(PollError { code: "x".repeat(n), message: String::new(), ..PollError::default() })
        }),
    ];
    for (what, limit, say) in fields {
        let taken = decide(&operation(&[accepted()]), &say(limit), NOW);
        assert!(matches!(taken, Decision::Facts { .. }), "{what}");
        check(&[accepted()], say(limit + 1), Decision::refuse(Refusal::TooLarge { what, limit }));
    }
    let long =
        PollError { code: String::new(), message: "x".repeat(MAX_NOTE_BYTES + 1), ..PollError::default() };
    let refusal = Refusal::TooLarge { what: "poll error message", limit: MAX_NOTE_BYTES };
    check(&[accepted()], poll_error(long), Decision::refuse(refusal));
}

#[test]
fn last_poll_tells_whether_the_service_hung() {
    let failed = |code: &str| {
        let error = Some(PollError { code: code.to_owned(), message: String::new(), ..PollError::default() });
        OperationFact::Polled(Polled { error, ..polled_again_in(5) })
    };
    let history = |facts: &[OperationFact]| operation(facts).poll_history();
    assert_eq!(history(&[accepted()]), PollHistory::NeverPolled);
    for code in [POLL_TIMED_OUT, "timed_out"] {
        assert_eq!(history(&[accepted(), failed(code)]), PollHistory::Hung, "{code}");
        assert_eq!(history(&[accepted(), failed(code), running()]), PollHistory::Answered, "{code}");
    }
    assert_eq!(history(&[accepted(), failed("bad_answer")]), PollHistory::Answered);
    assert_eq!(history(&[accepted(), running()]), PollHistory::Answered);
}
