//! Asking to stop: confirmed, taken in, refused, or not heard at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::job::{CancelAnswer, JobStateName};
use domain::operation::{Cancelability, OperationStatus};
use serde_json::json;

use crate::service::{Reply, Service, reply};
use crate::submits::connector;
use crate::world::World;

/// An answer to the cancel, and how it is told.
type Manner = (fn() -> Reply, &'static str);

/// A service that answers the cancel like this, and knows of it in its status if it took it in.
fn service(cancel: fn() -> Reply) -> Service {
    let stopped = Arc::new(AtomicBool::new(false));
    Service::start(move |asked| match asked.method.as_str() {
        "POST" => reply(202, json!({ "id": "r-1", "state": "queued" })),
        "DELETE" => {
            stopped.store(true, Ordering::SeqCst);
            cancel()
        }
        _ if stopped.load(Ordering::SeqCst) => reply(200, json!({ "state": "stopped" })),
        _ => reply(200, json!({ "state": "rendering" })),
    })
}

async fn cancelled(service: &Service) -> (World, domain::JobId) {
    let world = World::new(&connector(service, "  idempotent: true"));
    let id = world.create(r#"{"scene":"forest"}"#, 1).await;
    world.until_state(&id, JobStateName::AwaitingExternal).await;
    world.cancel(&id).await;
    let answered = |world: &World| {
        let operation = world.operation(&id);
        operation.ended.is_some() || operation.cancel.is_some_and(|cancel| !cancel.answers.is_empty())
    };
    world.until(answered).await;
    (world, id)
}

#[tokio::test]
async fn a_cancel_that_the_service_confirms_ends_the_job() {
    for confirm in [|| reply(204, ""), || reply(200, r#"{"state":"stopped"}"#)] {
        let service = service(confirm);
        let (world, id) = cancelled(&service).await;
        assert_eq!(world.operation(&id).status(), OperationStatus::Cancelled);
        world.until_state(&id, JobStateName::Cancelled).await;
        let asked = service.asked_for("DELETE", "/renders/r-1");
        assert_eq!(asked.len(), 1);
    }
}

#[tokio::test]
async fn a_cancel_that_is_taken_in_is_confirmed_by_the_next_poll() {
    let service = service(|| reply(202, ""));
    let (world, id) = cancelled(&service).await;
    let answers = world.operation(&id).cancel.unwrap().answers;
    assert_eq!(answers[0].answer, CancelAnswer::Accepted);
    world.next_poll(&id).await;
    world.until_state(&id, JobStateName::Cancelled).await;
    assert_eq!(world.operation(&id).status(), OperationStatus::Cancelled);
}

#[tokio::test]
async fn a_refused_cancel_is_kept_with_what_the_service_said() {
    let service = service(|| reply(409, json!({ "message": "too late" })));
    let (world, id) = cancelled(&service).await;
    let answers = world.operation(&id).cancel.unwrap().answers;
    assert_eq!(answers[0].answer, CancelAnswer::Refused("too late".to_owned()));
    assert_eq!(answers[0].told.as_deref(), Some("HTTP 409"));
}

#[tokio::test]
async fn a_service_that_does_not_hear_the_cancel_is_asked_again() {
    let manners: [Manner; 3] =
        [(|| reply(503, ""), "HTTP 503"), (|| reply(500, ""), "HTTP 500"), (|| Reply::Hang, "timed_out")];
    for (manner, told) in manners {
        let service = service(manner);
        let (world, id) = cancelled(&service).await;
        let cancel = world.operation(&id).cancel.unwrap();
        assert_eq!(cancel.answers[0].answer, CancelAnswer::Unreachable);
        assert_eq!(cancel.answers[0].told.as_deref(), Some(told));
        assert!(cancel.next_try_at.is_some());
    }
}

#[tokio::test]
async fn a_connector_without_a_cancel_says_so_and_why() {
    let service = service(|| reply(204, ""));
    let yaml = connector(&service, "  idempotent: true");
    let (before, after) = yaml.split_once("cancel:\n").unwrap();
    let after = after.split_once("read:\n").unwrap().1;
    let yaml = format!("{before}not_cancelable_because: frames are printed in ink\nread:\n{after}");
    let world = World::new(&yaml);
    let id = world.create(r#"{"scene":"forest"}"#, 1).await;
    world.until_state(&id, JobStateName::AwaitingExternal).await;
    let why = Cancelability::NotCancelable("frames are printed in ink".to_owned());
    assert_eq!(world.operation(&id).cancelability, why);
}
