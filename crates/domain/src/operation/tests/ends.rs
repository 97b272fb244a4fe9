//! How an operation ends: once, with a word to its job in the same step.

use super::*;
use crate::operation::OrphanReason;

/// Every answer that ends an operation, the fact that it leaves and what the job is told.
fn last_answers() -> Vec<(PollAnswer, OperationFact, OperationEnding)> {
    vec![
        (
            PollAnswer::Completed(summary("12 pages")),
            completed(summary("12 pages")),
            OperationEnding::Completed(summary("12 pages")),
        ),
        (
            fails(Retryable::Yes),
            failed(),
            OperationEnding::Failed {
                reason: "no_paper".to_owned(),
                result: ResultRefs::default(),
                retryable: Retryable::Yes,
            },
        ),
        (
            PollAnswer::TimedOut,
            OperationFact::Resolved(Ending::TimedOut),
            OperationEnding::TimedOut(Retryable::No),
        ),
        (
            PollAnswer::Expired,
            OperationFact::Resolved(Ending::Expired),
            OperationEnding::Expired { last_error: None },
        ),
        (PollAnswer::Unknown, OperationFact::Resolved(Ending::Unknown), OperationEnding::Unknown),
        (PollAnswer::Cancelled, OperationFact::Cancelled, OperationEnding::Cancelled),
    ]
}

// conforms: O29
#[test]
fn an_operation_shows_one_of_eight_statuses() {
    let words = OperationStatus::ALL.map(OperationStatus::as_str);
    assert_eq!(
        words,
        ["pending", "running", "completed", "failed", "timed-out", "cancelled", "expired", "unknown"]
    );
    for status in OperationStatus::ALL {
        assert_eq!(serde_json::to_string(&status).unwrap(), format!("\"{status}\""));
    }
    let open: Vec<&str> = OperationStatus::ALL
        .iter()
        .filter(|status| !status.is_terminal())
        .map(|open| open.as_str())
        .collect();
    assert_eq!(open, ["pending", "running"]);
}

#[test]
fn the_last_answer_ends_the_operation_and_tells_the_job_in_the_same_step() {
    for given in [vec![accepted()], vec![accepted(), running()]] {
        for (answer, fact, ending) in last_answers() {
            let then = and_the_job([fact], ending);
            let operation = check(&given, answers(answer), then).unwrap();
            assert_eq!(operation.completed_at(), Some(NOW));
        }
    }
}

// conforms: O31
#[test]
fn a_completed_operation_keeps_its_result_and_hands_it_to_the_job() {
    let found = ResultRefs { data: Some(body(BodyName::Result, 3)), ..summary("12 pages") };
    let then = and_the_job([completed(found.clone())], OperationEnding::Completed(found.clone()));
    let operation = check(&[accepted()], answers(PollAnswer::Completed(found.clone())), then).unwrap();
    assert_eq!(operation.status(), OperationStatus::Completed);
    assert_eq!(operation.ended.unwrap().how, How::Resolved(Ending::Completed { result: found }));
}

// conforms: O33
#[test]
fn work_outside_that_ran_out_of_its_own_time_is_timed_out_and_not_expired() {
    let then =
        and_the_job([OperationFact::Resolved(Ending::TimedOut)], OperationEnding::TimedOut(Retryable::No));
    let operation = check(&[accepted()], answers(PollAnswer::TimedOut), then).unwrap();
    assert_eq!(operation.status(), OperationStatus::TimedOut);
    assert_eq!(operation.orphan(), None);
}

#[test]
fn operator_may_have_timed_out_work_submitted_again() {
    let policy = KindPolicy { timed_out_policy: TimedOutPolicy::Resubmit, ..KindPolicy::default() };
    let given = [accepted_with(|accepted| accepted.policy = policy)];
    let then =
        and_the_job([OperationFact::Resolved(Ending::TimedOut)], OperationEnding::TimedOut(Retryable::Yes));
    check(&given, answers(PollAnswer::TimedOut), then);
}

// conforms: O127
#[test]
fn service_may_say_that_the_work_expired_there() {
    let ended = OperationFact::Resolved(Ending::Expired);
    let then = and_the_job([ended], OperationEnding::Expired { last_error: None });
    let operation = check(&[accepted()], answers(PollAnswer::Expired), then).unwrap();
    assert_eq!(operation.status(), OperationStatus::Expired);
    // Its service says that it is over: nothing runs there.
    assert_eq!(operation.orphan(), None);
}

// conforms: L17
#[test]
fn a_failure_without_a_code_still_has_a_reason() {
    let answer = PollAnswer::Failed(PollFailure {
        failure_detail: "it broke".to_owned(),
        error_code: None,
        result: ResultRefs::default(),
        retryable: Retryable::No,
    });
    let fact = OperationFact::Resolved(Ending::Failed {
        failure_detail: "it broke".to_owned(),
        error_code: None,
        result: ResultRefs::default(),
    });
    let ending = OperationEnding::Failed {
        reason: "operation_failed".to_owned(),
        result: ResultRefs::default(),
        retryable: Retryable::No,
    };
    check(&[accepted()], answers(answer), and_the_job([fact], ending));
}

// conforms: L36
#[test]
fn the_status_is_derived_from_the_end_and_stored_nowhere() {
    let open = operation(&[accepted()]);
    assert_eq!((open.completed_at(), open.failure_detail()), (None, None));
    for (status, end) in ends() {
        let over = operation(&[accepted(), end]);
        assert_eq!((over.status(), over.completed_at()), (status, Some(BEFORE)));
        assert_eq!(over.failure_detail().is_none(), status == OperationStatus::Completed, "{status}");
        let stored = serde_json::to_value(&over).unwrap();
        let fields = stored.as_object().unwrap();
        assert!(!fields.contains_key("state") && !fields.contains_key("status"), "{fields:?}");
    }
}

// conforms: L45
#[test]
fn dispatched_polled_and_resolved_alone_take_an_operation_from_start_to_result() {
    let mut facts = Vec::new();
    for when in [
        OperationCommand::Accept(Box::new(new_operation())),
        still(ReportedStatus::Running, PollHints::default()),
        poll_error(unreachable_error()),
        answers(PollAnswer::Completed(summary("12 pages"))),
    ] {
        let decision = match fold(None, &facts, NOW) {
            None => decide_new(&id(), &when, NOW),
            Some(operation) => decide(&operation, &when, NOW),
        };
        let Decision::Facts { facts: more, .. } = decision else { panic!("refused: {decision:?}") };
        facts.extend(more);
    }
    assert!(matches!(
        facts[..],
        [
            OperationFact::Dispatched(_),
            OperationFact::Polled(Polled { error: None, .. }),
            OperationFact::Polled(Polled { error: Some(_), .. }),
            OperationFact::Resolved(_)
        ]
    ));
    assert_eq!(fold(None, &facts, NOW).unwrap().status(), OperationStatus::Completed);
}

// conforms: L39 L40
#[test]
fn a_resolution_is_the_newest_poll_and_the_time_of_the_end() {
    let then = and_the_job([completed(summary("done"))], OperationEnding::Completed(summary("done")));
    let given = [accepted(), running()];
    let operation = check(&given, answers(PollAnswer::Completed(summary("done"))), then).unwrap();
    assert_eq!((operation.last_polled_at, operation.completed_at()), (Some(NOW), Some(NOW)));
    let later = fold(Some(operation), &[failed()], NOW.plus_seconds(9)).unwrap();
    assert_eq!(later.completed_at(), Some(NOW));
}

// conforms: L42 O32
#[test]
fn a_failure_is_told_once_and_is_final() {
    let how = |operation: Operation| operation.ended.map(|ended| ended.how);
    let told = Ending::Failed {
        failure_detail: "out of paper".to_owned(),
        error_code: Some("no_paper".to_owned()),
        result: ResultRefs::default(),
    };
    let given = [accepted(), failed()];
    for answer in [
        PollAnswer::Open(ReportedStatus::Running, PollHints::default()),
        PollAnswer::Failed(PollFailure {
            failure_detail: "another story".to_owned(),
            error_code: None,
            result: ResultRefs::default(),
            retryable: Retryable::Yes,
        }),
    ] {
        let operation = check(&given, answers(answer), Decision::Nothing).unwrap();
        assert_eq!(operation.failure_detail(), Some("out of paper"));
        assert_eq!(how(operation), Some(How::Resolved(told.clone())));
    }
    let completed = operation(&[accepted(), completed(summary("done"))]);
    assert_eq!(completed.failure_detail(), None);
}

// conforms: O77
#[test]
fn the_first_end_wins_and_another_word_is_a_diagnostic() {
    for (first, end) in ends() {
        let given = [accepted(), end];
        let before = operation(&given);
        for (answer, fact, _) in last_answers() {
            let said = operation(&[accepted(), fact]).status();
            // Where something may still run, its service's word that it ended is worth more: see `orphans.rs`.
            let after = if before.orphan().is_some() {
                let decision = decide(&before, &answers(answer), NOW);
                let Decision::Facts { facts, consequences } = decision else { panic!("{decision:?}") };
                assert_eq!(consequences, [], "its job is over");
                fold(Some(before.clone()), &facts, NOW).unwrap()
            } else {
                let contradicted = OperationFact::Contradicted { status: said };
                let then = if said == first { Decision::Nothing } else { Decision::fact(contradicted) };
                check(&given, answers(answer), then).unwrap()
            };
            assert_eq!((after.status(), &after.ended), (first, &before.ended));
            if said == OperationStatus::Unknown && before.orphan().is_some() {
                continue;
            }
            let codes: Vec<&str> = after.diagnostics.iter().map(|kept| kept.code.as_str()).collect();
            assert_eq!(codes, if said == first { vec![] } else { vec!["late-status-ignored"] });
        }
        let soon = BEFORE.plus_seconds(1);
        check_at(soon, &given, still_pending(), Decision::Nothing);
        check_at(soon, &given, poll_error(unreachable_error()), Decision::Nothing);
    }
    // Another result of what is completed is none.
    let given = [accepted(), completed(summary("done"))];
    let before = operation(&given);
    let after = check(&given, answers(PollAnswer::Completed(summary("other"))), Decision::Nothing).unwrap();
    assert_eq!((after.ended, after.diagnostics), (before.ended, vec![]));
}

#[test]
fn contradictions_are_kept_up_to_the_hosts_limit() {
    let limit = usize::from(KindPolicy::default().diagnostics_max_items);
    let mut given = vec![accepted(), completed(summary("done"))];
    let contradiction = OperationFact::Contradicted { status: OperationStatus::TimedOut };
    for _ in 0..limit {
        check(&given, answers(PollAnswer::TimedOut), Decision::fact(contradiction.clone()));
        given.push(contradiction.clone());
    }
    let operation = check(&given, answers(PollAnswer::TimedOut), Decision::Nothing).unwrap();
    assert_eq!(operation.diagnostics.len(), limit);
}

#[test]
fn a_contradiction_is_kept_however_many_polls_failed_before() {
    let limit = usize::from(KindPolicy::default().diagnostics_max_items);
    let mut given = vec![accepted()];
    given.extend((0..limit + 3).map(|_| poll_failed()));
    given.push(completed(summary("done")));
    let then = Decision::fact(OperationFact::Contradicted { status: OperationStatus::TimedOut });
    let operation = check(&given, answers(PollAnswer::TimedOut), then).unwrap();
    assert_eq!(operation.diagnostics.len(), limit);
    assert_eq!(operation.diagnostics.last().unwrap().code, "late-status-ignored");
}

#[test]
fn what_may_still_run_outside_is_an_orphan_with_its_reason() {
    for (status, end) in ends() {
        let expected = if end == OperationFact::Resolved(Ending::Expired) {
            None
        } else if status == OperationStatus::Expired {
            Some(OrphanReason::ExpiredWhileOpen)
        } else if status == OperationStatus::Unknown {
            Some(OrphanReason::Unknown)
        } else {
            None
        };
        assert_eq!(operation(&[accepted(), end]).orphan(), expected, "{status}");
    }
    let abandoned = OperationFact::Expired { cause: ExpiryCause::Abandoned("job_expired".to_owned()) };
    let operation = operation(&[accepted(), abandoned]);
    assert_eq!(operation.orphan(), Some(OrphanReason::ExpiredWhileOpen));
    assert_eq!(operation.failure_detail(), Some("job_expired"));
}

#[test]
fn only_an_operation_that_is_over_is_retired() {
    check(&[accepted()], OperationCommand::Retire, Decision::refuse(Refusal::OperationOpen));
    for (_, end) in ends() {
        check(&[accepted(), end], OperationCommand::Retire, Decision::fact(OperationFact::Retired));
    }
}
