//! Who does the work of whom: an executor is looked up by the circle of the job and the kind that it names, never by who it was last time.

use domain::job::{CancelAnswer, JobCommand, JobStateName};
use engine::Executors;

use crate::given::{Given, job};
use crate::specialist::{Answer, Scripted, done, goes_on};

// conforms: L33 L88
#[tokio::test]
async fn the_circle_s_own_executor_is_found_first_and_the_common_one_else() {
    let (common, acme) = (
        Scripted::deferring([goes_on(300, "c"), goes_on(300, "c")]),
        Scripted::deferring([goes_on(300, "a")]),
    );
    let mut executors = Executors::default();
    executors.register("press", common.named("press").1);
    executors.register_for(Some("acme"), "press", acme.named("press").1);
    let given = Given::with(executors);
    let others = given.create(job("press").circle("umbrella")).await;
    let nobodys = given.create(job("press")).await;
    let own = given.create(job("press").circle("acme")).await;
    for id in [&others, &nobodys, &own] {
        given.until(id, JobStateName::AwaitingExternal).await;
    }
    assert_eq!((common.times("produce"), acme.times("produce")), (2, 1));
    given.clock.advance_seconds(6);
    given.settle().await;
    assert_eq!((common.times("poll"), acme.times("poll")), (2, 1), "each service is asked about its own");
    acme.clone().answering_cancels([CancelAnswer::Cancelled]);
    given.order(&own, JobCommand::RequestCancel { by: None, reason: "enough".to_owned() }).await;
    given.until(&own, JobStateName::Cancelled).await;
    assert_eq!((common.times("cancel"), acme.times("cancel")), (0, 1));
}

// conforms: L33 L56 L88
#[tokio::test]
async fn an_executor_of_another_circle_is_none() {
    let acme = Scripted::deferring([done()]);
    let mut executors = Executors::default();
    executors.register_for(Some("acme"), "press", acme.named("press").1);
    let given = Given::with(executors);
    let (own, others) = (given.create(job("press").circle("acme")).await, given.create(job("press")).await);
    given.until(&own, JobStateName::AwaitingExternal).await;
    let failed = given.until(&others, JobStateName::Failed).await;
    assert_eq!(failed.state_reason.as_deref(), Some("specialist_unregistered"));
    assert_eq!(acme.times("produce"), 1);
}

// conforms: L33
#[tokio::test]
async fn work_outside_is_asked_about_by_whoever_has_its_kind_now_whatever_the_record_says_of_then() {
    let then = Scripted::deferring([Answer::Hangs]).called("the old press");
    let given = Given::new([then.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    assert_eq!(given.operation_of(&id).await.link.specialist, "the old press");
    let Given { store, clock, daemon, .. } = given;
    drop(daemon);
    crate::given::settle().await;
    let now = Scripted::deferring([done()]).called("the new press");
    let given = Given::on(store, clock, [now.named("press")]);
    given.next_poll(&id).await;
    given.until(&id, JobStateName::Completed).await;
    assert_eq!((now.times("poll"), &given.operation_of(&id).await.link.specialist[..]), (1, "the old press"));
}
