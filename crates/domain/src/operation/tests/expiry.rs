//! The life that the host granted, and nothing beyond it.

use super::*;
use crate::attention::Retention;

fn expired(cause: ExpiryCause) -> OperationFact {
    OperationFact::Expired { cause }
}

fn given_up() -> Decision<OperationFact> {
    and_the_job([expired(ExpiryCause::LifetimeOver)], OperationEnding::Expired)
}

// conforms: O34
#[test]
fn an_operation_expires_when_its_life_is_over_and_not_before() {
    for given in [vec![accepted()], vec![accepted(), running()], vec![accepted(), cancel_requested()]] {
        let refusal = Refusal::NotDue { due_at: EXPIRES_AT };
        check_at(EXPIRES_AT.plus_micros(-1), &given, OperationCommand::Expire, Decision::refuse(refusal));
        let operation = check_at(EXPIRES_AT, &given, OperationCommand::Expire, given_up()).unwrap();
        assert_eq!(
            (operation.status(), operation.completed_at()),
            (OperationStatus::Expired, Some(EXPIRES_AT))
        );
    }
}

// conforms: O41
#[test]
fn no_answer_of_the_service_keeps_it_alive_past_what_the_host_granted() {
    let more_time = PollHints {
        retry_after: Hint::Seconds(1),
        fail_after: Hint::Seconds(i64::MAX),
        ..PollHints::default()
    };
    for when in [
        still(ReportedStatus::Running, more_time),
        answers(PollAnswer::Completed(summary("too late"))),
        answers(fails(Retryable::Yes)),
        answers(PollAnswer::Unknown),
        poll_error(unreachable_error()),
    ] {
        check_at(EXPIRES_AT, &[accepted()], when, given_up());
    }
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
    let then = Decision::fact(expired(ExpiryCause::Abandoned("job_expired".to_owned())));
    let operation = check(&[accepted()], abandon, then).unwrap();
    assert_eq!(operation.status(), OperationStatus::Expired);
}

#[test]
fn an_operation_is_due_at_its_end_even_if_its_next_poll_is_later() {
    let given = [accepted_with(|accepted| accepted.next_poll_at = EXPIRES_AT.plus_seconds(60))];
    let attention = operation(&given).attention(Retention::DEFAULT);
    assert_eq!((attention.due_at, attention.limit_at), (Some(EXPIRES_AT), Some(EXPIRES_AT)));
}
