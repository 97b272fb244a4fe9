//! Asking to stop: confirmed, taken in, refused, or not heard at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::Fact;
use domain::job::{CancelAnswer, CancelTry, JobFact, JobStateName};
use domain::operation::{Cancelability, OperationStatus};
use serde_json::json;
use store::Store;

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
    assert!(!format!("{:?}", answers[0].answer).contains("too late"), "a service's words stand in no fact");
    let said = world.text_of(&id, answers[0].said.unwrap());
    assert_eq!(said, "too late");
    assert_eq!(answers[0].told.as_deref(), Some("HTTP 409"));
}

#[tokio::test]
async fn a_cancel_that_cannot_be_sent_keeps_its_words_private() {
    for (url, told, words) in [
        ("${operation.location}", "not asked: foreign_origin", "chosen-by-the-service.example"),
        ("${input.address}", "not asked: request_not_rendered", "cannot be read"),
    ] {
        let service = Service::start(|_| {
            let accepted = reply(202, json!({ "id": "r-1", "state": "rendering" }));
            accepted.with("Location", "http://chosen-by-the-service.example/renders/r-1")
        });
        let yaml = connector(&service, "  idempotent: true");
        let (before, after) = yaml.split_once("  method: DELETE\n").unwrap();
        let own = format!("  url: http://{}/renders/${{operation.remote_id}}", service.address);
        let world = World::new(&format!(
            "{before}  method: DELETE\n{}",
            after.replacen(&own, &format!("  url: {url}"), 1)
        ));
        let id = world.create(r#"{"scene":"forest","address":"http://[PATIENT-7"}"#, 1).await;
        world.until_state(&id, JobStateName::AwaitingExternal).await;
        world.cancel(&id).await;
        world
            .until(|world| world.operation(&id).cancel.is_some_and(|cancel| !cancel.answers.is_empty()))
            .await;
        let operation = world.operation(&id);
        let answer = &operation.cancel.as_ref().unwrap().answers[0];
        assert_eq!(answer.told.as_deref(), Some(told));
        let private = world.text_of(&id, answer.said.unwrap());
        assert!(private.contains(words), "{private}");
        assert!(service.asked_for("DELETE", "/renders/r-1").is_empty());
        for record in [id.clone().into(), operation.id.clone().into()] {
            let facts = world.store.facts_of(&record, 0, 100).await.unwrap();
            let facts = facts.iter().map(|fact| format!("{:?}", fact.fact)).collect::<Vec<_>>().join("\n");
            assert!(!facts.contains(words), "{facts}");
        }
        let tried = world.job(&id).cancel.unwrap().tried.unwrap().tried;
        assert_eq!(tried, CancelTry::NotSent(told.strip_prefix("not asked: ").unwrap().to_owned()));
    }
}

// conforms: R67 R73
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
        let job = world.job(&id);
        assert_eq!(job.state.name(), JobStateName::AwaitingExternal);
        assert_eq!(job.state_reason.as_deref(), Some("cancel_requested"));
        let facts = world.store.facts_of(&id.into(), 0, 100).await.unwrap();
        let requests =
            facts.iter().filter(|fact| matches!(fact.fact, Fact::Job(JobFact::CancelRequested { .. })));
        assert_eq!(requests.count(), 1, "{facts:?}");
    }
}

// conforms: L6
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
    // It is known before the service has taken the work.
    let facts = world.store.facts_of(&id.into(), 0, 100).await.unwrap();
    assert!(facts.iter().any(|fact| matches!(&fact.fact, Fact::Job(JobFact::SubmitIntended(intent))
        if intent.not_cancelable.as_deref() == Some("frames are printed in ink"))));
}
