//! A service that cannot make up its mind: the first end stays, whatever it says afterwards.

use std::sync::Arc;

use domain::job::JobStateName;
use domain::operation::{OperationFact, OperationStatus};
use domain::policy::HostPolicy;
use domain::{BodyName, Record};
use engine::{
    Assignment, Executor, Executors, Failure, Link, ManualClock, Output, Outside, Polled, Produced,
    Specialist,
};
use executors::http::Transport;
use executors::outbound::{Outbound, OutboundRules};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use slow_service::HandClock;
use store::MemoryStore;

use super::given::{connector, service};
use crate::world::{World, parsed};

const FLIPS: usize = 1_000;

/// A connector whose callbacks carry the answer.
struct TakesItsWord(Executor);

impl Specialist for TakesItsWord {
    fn produce(&self, assignment: Assignment, link: Link) -> BoxFuture<'_, Produced> {
        self.0.specialist.produce(assignment, link)
    }

    fn poll(&self, outside: Outside) -> BoxFuture<'_, Result<Polled, domain::operation::PollError>> {
        self.0.specialist.poll(outside)
    }

    fn read_callback(&self, body: &[u8]) -> Option<Polled> {
        let said: Value = serde_json::from_slice(body).ok()?;
        Some(match said["state"].as_str()? {
            "done" => Polled::Completed(Output { data: Some(body.to_vec()), ..Output::default() }),
            "failed" => Polled::Failed(Failure::permanent("contradiction", "after all")),
            _ => Polled::Unknown,
        })
    }
}

#[tokio::test]
async fn a_thousand_contradictions_after_the_end_change_nothing() {
    let hand = HandClock::new();
    let service = service(&hand).await;
    let clock = Arc::new(ManualClock::at(domain::Timestamp::from_seconds(1_767_225_600)));
    let mut executors = Executors::default();
    let file = parsed(&connector(&service, "flips", ""));
    let outbound =
        Outbound::new(OutboundRules { allow: file.allowed().to_vec(), ..OutboundRules::default() });
    let transport: Arc<dyn Transport> = Arc::new(outbound.unwrap());
    let secrets = executors::http::Secrets::default();
    let inner =
        executors::http::HttpConnector::over(file, secrets, transport, clock.clone(), None).executor();
    executors.register("flips", Executor { specialist: Arc::new(TakesItsWord(inner.clone())), ..inner });
    let store = Arc::new(MemoryStore::new());
    let world = World::beside(store, clock, Vec::new(), HostPolicy::default(), None, &mut executors);

    let input = json!({ "seconds": 3, "result": { "pages": 3 }, "manner": "flips" });
    let job = world.create_for("flips", &input.to_string(), 1).await;
    world.until_state(&job, JobStateName::AwaitingExternal).await;
    while world.job(&job).state.name() != JobStateName::Completed {
        hand.advance(std::time::Duration::from_secs(1));
        world.next_poll(&job).await;
    }
    let (ended, result) = (world.job(&job), world.result(&world.job(&job)));
    let operation = world.operation(&job);
    world.clock.advance_seconds(5);
    for flip in 0..FLIPS {
        let state = ["failed", "done", "unknown"][flip % 3];
        let said = json!({ "state": state, "flip": flip }).to_string();
        world.daemon.called_back(&operation.id, said.into_bytes().into()).await.unwrap();
    }
    assert_eq!((world.job(&job), world.result(&ended)), (ended, result));
    let after = world.operation(&job);
    assert_eq!((after.status(), &after.ended), (OperationStatus::Completed, &operation.ended));
    // Kept as evidence, up to a limit.
    let contradicted = world.store.inspect(|tables| {
        let facts = tables.facts.values();
        facts
            .filter(|stored| {
                matches!(&stored.fact, domain::Fact::Operation(OperationFact::Contradicted { .. }))
            })
            .count()
    });
    assert_eq!(contradicted, usize::from(after.policy.diagnostics_max_items));
    let results = world.store.inspect(|tables| {
        let of_job = |record: &Arc<Record>| matches!(&**record, Record::Job(_));
        assert_eq!(tables.views.values().filter(|record| of_job(record)).count(), 1);
        tables.bodies.keys().filter(|(_, name, _)| *name == BodyName::Result.as_str()).count()
    });
    assert_eq!(results, 1);
}
