//! Work outside within the host's bounds: stopped, given up in time, asked about no more often than is granted. The clock is moved by hand.

use domain::job::{CancelAnswer, JobCommand, JobState, JobStateName};
use domain::operation::{OperationStatus, OrphanReason, Settlement};
use engine::{Clock, Output, Polled, Produced};

use crate::given::{Given, job};
use crate::specialist::{Answer, Scripted, done, goes_on, handle};

#[tokio::test]
async fn a_cancel_reaches_the_service_and_is_confirmed_by_it() {
    let press = Scripted::deferring([]).answering_cancels([CancelAnswer::Cancelled]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    given.order(&id, JobCommand::RequestCancel { by: None, reason: "enough".to_owned() }).await;
    let ended = given.until(&id, JobStateName::Cancelled).await;
    assert_eq!(ended.state_reason.as_deref(), Some("cancelled"));
    assert_eq!(press.times("cancel press-7"), 1);
    assert_eq!(given.operation_of(&id).await.orphan(), None);
}

#[tokio::test]
async fn a_service_that_only_took_the_cancel_in_is_polled_until_it_says_so() {
    let press =
        Scripted::deferring([Answer::Says(Polled::Cancelled)]).answering_cancels([CancelAnswer::Accepted]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    given.order(&id, JobCommand::RequestCancel { by: None, reason: "enough".to_owned() }).await;
    given.settle().await;
    assert_eq!(given.state_of(&id).await, JobStateName::AwaitingExternal);
    given.next_poll(&id).await;
    given.until(&id, JobStateName::Cancelled).await;
}

#[tokio::test]
async fn a_cancel_that_nobody_confirms_ends_in_time_and_the_work_is_listed_until_it_is_stopped() {
    // A service that says nothing else cannot be reached.
    let press = Scripted::deferring([]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    given.order(&id, JobCommand::RequestCancel { by: None, reason: "enough".to_owned() }).await;
    given.settle().await;
    for _ in 0..30 {
        given.clock.advance_seconds(1);
        given.settle().await;
    }
    let ended = given.until(&id, JobStateName::Cancelled).await;
    assert_eq!(ended.state_reason.as_deref(), Some("cancel_unconfirmed"));
    assert_eq!(given.operation_of(&id).await.orphan(), Some(OrphanReason::CancelUnconfirmed));
    press.clone().answering_cancels([CancelAnswer::Cancelled]);
    for _ in 0..120 {
        given.clock.advance_seconds(1);
        given.settle().await;
    }
    assert_eq!(given.operation_of(&id).await.orphan(), None, "it was asked until it had stopped");
}

// conforms: O8 O81
#[tokio::test]
async fn work_that_never_ends_is_given_up_when_its_life_is_over_and_asked_to_stop() {
    let press = Scripted::deferring([]).answering_cancels([CancelAnswer::Cancelled]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    let expires_at = given.operation_of(&id).await.expires_at;
    given.clock.set(expires_at);
    let ended = given.until(&id, JobStateName::Expired).await;
    assert_eq!(ended.state_reason.as_deref(), Some("operation_expired"));
    given.settle().await;
    assert_eq!(press.times("cancel press-7"), 1);
    assert_eq!(given.operation_of(&id).await.orphan(), None);
}

#[tokio::test]
async fn what_was_given_up_is_asked_about_until_its_service_says_that_it_ended() {
    let press = Scripted::deferring([goes_on(5, "inking"), Answer::Raises, done()])
        .answering_cancels([CancelAnswer::Accepted]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    given.clock.set(given.operation_of(&id).await.expires_at);
    let ended = given.until(&id, JobStateName::Expired).await;
    given.settle().await;
    assert_eq!((press.times("cancel press-7"), press.times("poll")), (1, 0));
    for polls in 1..=3 {
        let orphan = given.operation_of(&id).await;
        assert_eq!(orphan.orphan(), Some(OrphanReason::ExpiredWhileOpen));
        given.clock.set(orphan.late_poll_at().expect("it is asked about"));
        given.settle().await;
        assert_eq!(press.times("poll press-7"), polls);
    }
    let settled = given.operation_of(&id).await;
    let status = OperationStatus::Completed;
    assert_eq!(settled.settled, Some(Settlement::EndedOutside { status }));
    assert_eq!((settled.orphan(), settled.late_poll_at()), (None, None));
    assert_eq!(settled.status(), OperationStatus::Expired);
    assert_eq!(given.load(&id).await, ended, "the job's end stays as it was");
}

#[tokio::test]
async fn nobody_is_asked_for_ever_about_what_was_given_up() {
    let press = Scripted::deferring([]).answering_cancels([CancelAnswer::Refused("no".to_owned())]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    given.clock.set(given.operation_of(&id).await.expires_at);
    given.until(&id, JobStateName::Expired).await;
    given.settle().await;
    while let Some(due_at) = given.operation_of(&id).await.late_poll_at() {
        given.clock.set(due_at);
        given.settle().await;
    }
    let asked = press.times("poll press-7");
    assert!((10..=40).contains(&asked), "{asked}");
    given.clock.advance_seconds(86_400);
    given.settle().await;
    assert_eq!(press.times("poll press-7"), asked);
    assert_eq!(given.operation_of(&id).await.orphan(), Some(OrphanReason::ExpiredWhileOpen), "nobody knows");
}

// conforms: R27 R56
#[tokio::test]
async fn a_thousand_waiting_operations_cost_nothing_until_one_is_due() {
    let press = Scripted::deferring([]);
    let given = Given::new([press.named("press")]);
    let mut ids = Vec::new();
    for _ in 0..1_000 {
        ids.push(given.create(job("press")).await);
    }
    for id in &ids {
        given.until(id, JobStateName::AwaitingExternal).await;
    }
    given.settle().await;
    let asked = given.store_calls();
    given.clock.advance_seconds(4);
    given.settle().await;
    assert_eq!(given.store_calls(), asked);
}

#[tokio::test]
async fn no_more_polls_are_under_way_at_one_service_than_its_policy_grants() {
    let hangs = Scripted::deferring([
        Answer::Hangs,
        Answer::Hangs,
        Answer::Hangs,
        Answer::Hangs,
        Answer::Hangs,
        Answer::Hangs,
        Answer::Hangs,
        Answer::Hangs,
    ]);
    let given = Given::new([hangs.named("hangs")]);
    for _ in 0..8 {
        let id = given.create(job("hangs")).await;
        given.until(&id, JobStateName::AwaitingExternal).await;
    }
    given.clock.advance_seconds(6);
    given.settle().await;
    assert_eq!(hangs.times("poll"), 4);
    // When the first have run out of their time the others get their turn.
    for _ in 0..6 {
        given.clock.advance_seconds(1);
        given.settle().await;
    }
    assert!(hangs.times("poll") >= 8, "{}", hangs.times("poll"));
}

/// As long as nobody has seen how long its answers take, the questions that are not answered say it.
#[tokio::test]
async fn what_is_put_off_at_a_service_that_hangs_is_not_taken_again_and_again() {
    let hangs = Scripted::deferring([Answer::Hangs, Answer::Hangs, Answer::Hangs, Answer::Hangs]);
    let given = Given::new([hangs.named("hangs")]);
    for _ in 0..100 {
        let id = given.create(job("hangs")).await;
        given.until(&id, JobStateName::AwaitingExternal).await;
    }
    given.clock.advance_seconds(6);
    given.settle().await;
    let asked = given.store_calls();
    for _ in 0..100 {
        given.clock.set(given.clock.now().plus_micros(20_000));
        given.settle().await;
    }
    assert_eq!(hangs.times("poll"), 4);
    let asked = given.store_calls() - asked;
    assert!(asked < 600, "{asked}");
}

// conforms: O4 O47
#[tokio::test]
async fn an_executor_goes_on_with_what_came_from_outside() {
    let mut deferral = handle();
    deferral.then = domain::job::AfterExternal::Resume;
    let press =
        Scripted::producing([Produced::Deferred(deferral), Produced::Completed(Output::default())], [done()]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    given.next_poll(&id).await;
    let completed = given.until(&id, JobStateName::Completed).await;
    assert_eq!((completed.attempt_count, press.times("produce")), (1, 2));
    assert_eq!(press.times("produce 1 with 12"), 1, "it gets what came, and never the handle");
    assert!(matches!(completed.state, JobState::Completed));
}

#[tokio::test]
async fn somebody_who_wants_to_know_now_is_bound_by_the_shortest_interval() {
    let press = Scripted::deferring([goes_on(60, "page 1"), goes_on(60, "page 2")]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    let operation = given.operation_of(&id).await.id;
    let too_soon = given.daemon.poll_now(&operation).await.unwrap_err();
    assert_eq!(too_soon.code(), "not_due");
    given.clock.advance_seconds(1);
    given.daemon.poll_now(&operation).await.unwrap();
    assert_eq!(given.operation_of(&id).await.progress_hint.as_deref(), Some("page 1"));
    assert_eq!(given.daemon.poll_now(&operation).await.unwrap_err().code(), "not_due");
    given.clock.advance_seconds(1);
    given.daemon.poll_now(&operation).await.unwrap();
    assert_eq!((press.times("poll"), given.operation_of(&id).await.polls), (2, 2));
}

#[tokio::test]
async fn an_operation_that_is_being_asked_about_is_not_asked_about_twice() {
    let press = Scripted::deferring([Answer::Hangs]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    given.next_poll(&id).await;
    let operation = given.operation_of(&id).await.id;
    assert_eq!(given.daemon.poll_now(&operation).await.unwrap_err().code(), "claim_held");
    assert_eq!(press.times("poll"), 1);
}
