//! The life that the host granted, and nothing beyond it.

use super::*;
use crate::attention::Retention;

fn expired(cause: ExpiryCause) -> OperationFact {
    OperationFact::Expired { cause }
}

fn given_up() -> Decision<OperationFact> {
    let reaches_out = OperationFact::CancelRequested { by: None, reason: "operation_expired".to_owned() };
    and_the_job(
        [expired(ExpiryCause::LifetimeOver), reaches_out],
        OperationEnding::Expired { last_error: None },
    )
}

// conforms: O34
#[test]
fn an_operation_expires_when_its_life_is_over_and_not_before() {
    let asked_already =
        and_the_job([expired(ExpiryCause::LifetimeOver)], OperationEnding::Expired { last_error: None });
    for (given, then) in [
        (vec![accepted()], given_up()),
        (vec![accepted(), running()], given_up()),
        (vec![accepted(), cancel_requested()], asked_already),
    ] {
        let refusal = Refusal::NotDue { due_at: EXPIRES_AT };
        check_at(EXPIRES_AT.plus_micros(-1), &given, OperationCommand::Expire, Decision::refuse(refusal));
        let operation = check_at(EXPIRES_AT, &given, OperationCommand::Expire, then).unwrap();
        assert_eq!(
            (operation.status(), operation.completed_at()),
            (OperationStatus::Expired, Some(EXPIRES_AT))
        );
    }
}

// conforms: O8 O41 O81
#[test]
fn no_answer_of_the_service_keeps_it_alive_past_what_the_host_granted() {
    let more_time = PollHints {
        retry_after: Hint::Seconds(1),
        fail_after: Hint::Seconds(i64::MAX),
        ..PollHints::default()
    };
    for when in [still(ReportedStatus::Running, more_time), poll_error(unreachable_error())] {
        check_at(EXPIRES_AT, &[accepted()], when, given_up());
    }
    for (when, status) in [
        (answers(PollAnswer::Completed(summary("too late"))), OperationStatus::Completed),
        (answers(fails(Retryable::Yes)), OperationStatus::Failed),
        (answers(PollAnswer::Unknown), OperationStatus::Unknown),
    ] {
        let mut then = given_up();
        if let Decision::Facts { facts, .. } = &mut then {
            if status != OperationStatus::Unknown {
                // Nothing runs there any more: it is not asked to stop.
                facts.pop();
            }
            facts.push(OperationFact::Contradicted { status });
            if status != OperationStatus::Unknown {
                facts.push(OperationFact::Settled(Settlement::EndedOutside { status }));
            }
        }
        let operation = check_at(EXPIRES_AT, &[accepted()], when, then).unwrap();
        assert_eq!(operation.status(), OperationStatus::Expired);
        assert_eq!(operation.diagnostics.len(), 1);
    }
}

// conforms: L41
#[test]
fn only_a_success_has_a_result_and_it_is_set_once() {
    let data =
        Some(crate::BodyRef { name: crate::BodyName::Result, sha256: crate::Digest([7; 32]), size: 3 });
    let result = crate::job::ResultRefs { data, ..crate::job::ResultRefs::default() };
    let failure = PollAnswer::Failed(PollFailure {
        failure_detail: "out of paper".to_owned(),
        error_code: None,
        result: result.clone(),
        retryable: Retryable::No,
    });
    let given = [accepted()];
    let Decision::Facts { facts, .. } = decide(&operation(&given), &answers(failure), NOW) else {
        panic!("a failure is taken")
    };
    assert!(
        matches!(&facts[..], [OperationFact::Resolved(Ending::Failed { result, .. })] if result.data.is_none())
    );
    let completed = OperationFact::Resolved(Ending::Completed { result: result.clone() });
    let other = crate::job::ResultRefs { summary: Some("other".to_owned()), ..result.clone() };
    let twice = OperationFact::Resolved(Ending::Completed { result: other });
    let over = operation(&[accepted(), completed, twice, OperationFact::Resolved(Ending::TimedOut)]);
    assert_eq!(over.ended.map(|ended| ended.how), Some(How::Resolved(Ending::Completed { result })));
}

#[test]
fn no_word_of_a_service_changes_what_the_host_owns() {
    let granted = operation(&[accepted()]).policy;
    let demands = PollHints {
        retry_after: Hint::Seconds(i64::MAX),
        fail_after: Hint::Seconds(i64::MAX),
        ..PollHints::default()
    };
    let decided = decide(&operation(&[accepted()]), &still(ReportedStatus::Running, demands), NOW);
    let Decision::Facts { facts, .. } = decided else { panic!("a poll is taken") };
    let after = operation(&[vec![accepted()], facts].concat());
    assert_eq!(after.policy, granted);
    // Every field that the host owns is there, and each can be set per kind.
    let host: crate::policy::HostPolicy = serde_json::from_str(
        r#"{"kind_overrides":{"render":{"min_retry_after_seconds":2,"max_retry_after_seconds":60,
            "default_retry_after_seconds":7,"max_ttl_seconds":86400,"max_attempts":9,"max_response_bytes":1024,
            "cancel_policy":"deny","persistence":"volatile","diagnostics_max_items":3,
            "diagnostics_max_bytes":64}}}"#,
    )
    .unwrap();
    let render = host.for_kind("render");
    assert_eq!((render.min_retry_after_seconds, render.max_retry_after_seconds), (2, 60));
    assert_eq!((render.max_ttl_seconds, render.max_attempts), (86_400, 9));
    assert_eq!((render.max_response_bytes, render.diagnostics_max_items), (1_024, 3));
    assert_eq!(render.cancel_policy, crate::policy::CancelPolicy::Deny);
    assert_eq!(render.persistence, crate::policy::Persistence::Volatile);
}

#[test]
fn an_end_does_not_expire() {
    for (_, end) in ends() {
        let given = [accepted(), end];
        check_at(EXPIRES_AT, &given, OperationCommand::Expire, Decision::Nothing);
        let abandon = OperationCommand::Abandon { reason: "job_expired".to_owned() };
        check(&given, abandon, Decision::Nothing);
    }
}

#[test]
fn an_operation_whose_job_has_ended_is_given_up_without_a_word_to_it() {
    let abandon = OperationCommand::Abandon { reason: "job_expired".to_owned() };
    let reaches_out = OperationFact::CancelRequested { by: None, reason: "job_expired".to_owned() };
    let then = Decision::facts([expired(ExpiryCause::Abandoned("job_expired".to_owned())), reaches_out]);
    let operation = check(&[accepted()], abandon, then).unwrap();
    assert_eq!(operation.status(), OperationStatus::Expired);
}

#[test]
fn an_operation_is_due_at_its_end_even_if_its_next_poll_is_later() {
    let given = [accepted_with(|accepted| accepted.next_poll_at = EXPIRES_AT.plus_seconds(60))];
    let attention = operation(&given).attention(Retention::DEFAULT);
    assert_eq!((attention.due_at, attention.limit_at), (Some(EXPIRES_AT), Some(EXPIRES_AT)));
}
