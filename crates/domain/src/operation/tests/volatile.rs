//! Operations that do not outlive the daemon that left them outside.

use super::*;
use crate::policy::Persistence;

fn volatile() -> OperationFact {
    accepted_with(|accepted| accepted.policy.persistence = Persistence::Volatile)
}

fn lost() -> OperationFact {
    OperationFact::Expired { cause: ExpiryCause::VolatileLost }
}

fn job_has_failed(facts: impl Into<Vec<OperationFact>>) -> Decision<OperationFact> {
    let (reason, result) = ("volatile_lost".to_owned(), ResultRefs::default());
    and_the_job(facts, OperationEnding::GivenUp { reason, result })
}

// conforms: O130
#[test]
fn volatile_operation_is_given_up_with_its_daemon() {
    let reaches_out = OperationFact::CancelRequested { by: None, reason: "volatile_lost".to_owned() };
    for (given, then) in [
        (vec![volatile()], job_has_failed([lost(), reaches_out.clone()])),
        (vec![volatile(), running()], job_has_failed([lost(), reaches_out])),
        (vec![volatile(), cancel_requested()], job_has_failed([lost()])),
    ] {
        let operation = check(&given, OperationCommand::Lose, then).unwrap();
        assert!(operation.is_volatile());
        assert_eq!(operation.status(), OperationStatus::Expired);
        assert_eq!(operation.orphan().map(OrphanReason::as_str), Some("volatile_lost"));
        assert!(operation.handle.is_some(), "its service can be asked to stop it");
        assert!(operation.failure_detail().is_some_and(|told| told.contains("volatile")));
    }
}

// conforms: O130
#[test]
fn durable_operation_is_never_lost() {
    let refused = Decision::refuse(Refusal::OperationOpen);
    check(&[accepted(), running()], OperationCommand::Lose, refused);
    assert!(!operation(&[accepted()]).is_volatile());
}

#[test]
fn volatile_operation_that_has_ended_is_not_lost_again() {
    for (_, end) in ends().into_iter().chain([(OperationStatus::Expired, lost())]) {
        check(&[volatile(), end], OperationCommand::Lose, Decision::Nothing);
    }
}
