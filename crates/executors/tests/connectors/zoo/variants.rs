//! Manners whose outcome depends on what the host was told to do about them.

use domain::job::{CancelAnswer, JobStateName};
use domain::operation::{ExpiryCause, OperationFact, OperationStatus, OrphanReason, Settlement};
use serde_json::json;
use slow_service::Manner;

use super::given::{TTL_SECONDS, Zoo, kind};

/// One of this manner under this policy, until everything is over; somebody may want to stop it early on.
async fn lived(manner: Manner, more: &str, seconds: u32, stops: Stops) -> (Zoo, domain::JobId) {
    let zoo = Zoo::open(&[(kind(manner), more)]).await;
    let input = json!({ "seconds": seconds, "result": 1, "manner": manner.name() });
    let job = zoo.create(&kind(manner), &input).await;
    zoo.settle(|_| true).await;
    for second in 0..TTL_SECONDS + 60 {
        zoo.second().await;
        if second == 5 && stops == Stops::Early {
            zoo.world.cancel(&job).await;
        }
    }
    zoo.assert_within_the_bounds();
    zoo.assert_over_in_time();
    (zoo, job)
}

#[derive(PartialEq, Eq)]
enum Stops {
    Early,
    Never,
}

#[tokio::test]
async fn a_service_that_forgets_now_and_then_is_asked_until_it_remembers_where_the_policy_says_so() {
    let more = ", unknown_policy: retry-until-expiry";
    let (zoo, job) = lived(Manner::ForgetsNowAndThen, more, 20, Stops::Never).await;
    assert_eq!(zoo.world.job(&job).state.name(), JobStateName::Completed);
    let unknown = |fact: &OperationFact| {
        matches!(fact, OperationFact::Polled(polled)
            if polled.error.as_ref().is_some_and(|error| error.code == "operation_unknown"))
    };
    let forgot = zoo.facts().into_iter().filter(|(_, _, fact)| unknown(fact));
    assert!(forgot.count() > 2);
}

#[tokio::test]
async fn what_never_ends_and_may_not_be_stopped_stays_on_the_orphan_list() {
    let (zoo, job) = lived(Manner::NeverEnds, ", cancel_policy: deny", 20, Stops::Never).await;
    let operation = zoo.world.operation(&job);
    assert_eq!(operation.status(), OperationStatus::Expired);
    assert_eq!(operation.orphan(), Some(OrphanReason::ExpiredWhileOpen));
    assert_eq!(zoo.service.requests().cancels, 0);
}

#[tokio::test]
async fn what_refuses_to_stop_and_outlasts_the_cancel_is_cancelled_without_confirmation() {
    let (zoo, job) = lived(Manner::RefusesCancel, "", 80, Stops::Early).await;
    assert_eq!(zoo.world.job(&job).state.name(), JobStateName::Cancelled);
    let operation = zoo.world.operation(&job);
    // It was listed until its service, asked again, said that it had ended by itself.
    let gave_up = OperationFact::Expired { cause: ExpiryCause::Abandoned("cancel_unconfirmed".to_owned()) };
    assert!(zoo.facts().iter().any(|(_, _, fact)| *fact == gave_up));
    let status = OperationStatus::Completed;
    assert_eq!(operation.settled, Some(Settlement::EndedOutside { status }));
    let answers = operation.cancel.unwrap().answers;
    assert!(matches!(answers[0].answer, CancelAnswer::Refused(_)), "{answers:?}");
}

#[tokio::test]
async fn a_service_that_is_busy_at_the_start_has_accepted_nothing() {
    for manner in [Manner::RateLimited429, Manner::Overloaded503] {
        let zoo = Zoo::open(&[(kind(manner), "")]).await;
        let input = json!({ "seconds": 20, "result": 1, "manner": manner.name(), "at": "start" });
        let job = zoo.create(&kind(manner), &input).await;
        zoo.settle(|_| true).await;
        for _ in 0..TTL_SECONDS + 120 {
            zoo.second().await;
        }
        let job = zoo.world.job(&job);
        assert_eq!((job.state.name(), job.attempt_count), (JobStateName::Failed, 3));
        assert_eq!(job.state_reason.as_deref(), Some("service_busy"));
        assert_eq!((zoo.service.starts().len(), zoo.operations().len()), (0, 0));
        assert_eq!(zoo.service.requests().starts, 3);
    }
}
