//! Claims on events: whoever holds one keeps it from the router, and what is settled is not done again.

use domain::{EventId, Record};
use serde_json::{Value, json};
use store::{Store, Taking};

use crate::given::{Answer, World, assert_fits, world};

impl World {
    /// An event that nobody routes, because the node takes nothing.
    async fn waiting_event(&self) -> String {
        let sent = self.post("/events", json!({ "type": "tide", "payload": { "level": 7 } })).send().await;
        let id = sent.value()["event_id"].as_str().expect("it has an id").to_owned();
        assert_eq!(self.event_status(&id).await, "waiting");
        id
    }

    async fn event_status(&self, id: &str) -> &'static str {
        let loaded =
            self.store.load(&EventId::new(id).into()).await.expect("it can be read").expect("it is there");
        let Record::Event(event) = &*loaded.record else { panic!("it is an event") };
        event.status().as_str()
    }

    async fn until_settled(&self, id: &str) {
        while self.event_status(id).await == "waiting" {
            tokio::task::yield_now().await;
        }
    }

    async fn claim_event(&self, id: Option<&str>, owner: &str) -> Value {
        let mut asked = json!({ "resource_type": "EVENT", "owner_id": owner });
        if let Some(id) = id {
            asked["resource_id"] = json!(id);
        }
        self.post("/claims", asked).send().await.ok()["claim"].clone()
    }
}

// conforms: A18 A19 A22 A66
#[tokio::test]
async fn event_that_somebody_has_claimed_is_not_routed_until_it_is_given_back() {
    let world = world().await;
    world.daemon.tell(Taking::Drains);
    let (first, second) = (world.waiting_event().await, world.waiting_event().await);
    let claim = world.claim_event(None, "runner-1").await;
    assert_fits("claim-record", &claim);
    assert_eq!(
        (&claim["resource_id"], &claim["resource_type"]),
        (&json!(first), &json!("EVENT")),
        "the oldest"
    );
    assert_eq!(world.claim_event(Some(&second), "runner-2").await["resource_id"], json!(second));
    assert_eq!(world.claim_event(None, "runner-3").await, json!(null), "all are held");
    let third = world.waiting_event().await;
    world.daemon.tell(Taking::Takes);
    world.until_settled(&third).await;
    assert_eq!(world.event_status(&first).await, "waiting");
    let fence = json!({ "owner_id": "runner-1", "claim_version": claim["claim_version"] });
    world.post(&format!("/claims/EVENT/{first}/release"), fence).send().await.ok();
    world.until_settled(&first).await;
    assert_eq!(world.event_status(&second).await, "waiting");
    world.clock.advance_seconds(121);
    world.until_settled(&second).await;
}

#[tokio::test]
async fn whoever_waits_for_an_event_is_given_the_next_and_nothing_if_none_comes() {
    let world = world().await;
    world.daemon.tell(Taking::Drains);
    let asked = json!({ "resource_type": "EVENT", "owner_id": "runner-1", "wait_seconds": 60 });
    let waiting = world.post("/claims", asked).send();
    let (claimed, id) = tokio::join!(waiting, world.waiting_event());
    assert_eq!(claimed.ok()["claim"]["resource_id"], json!(id));
    let asked = json!({ "resource_type": "EVENT", "owner_id": "runner-2", "wait_seconds": 0 });
    assert_eq!(world.post("/claims", asked).send().await.ok()["claim"], json!(null));
}

// conforms: A33
#[tokio::test]
async fn settled_event_is_not_claimed_and_settling_it_again_does_nothing() {
    let world = world().await;
    let sent = world.post("/events", json!({ "type": "tide" })).send().await;
    let id = sent.value()["event_id"].as_str().expect("it has an id").to_owned();
    world.until_settled(&id).await;
    let asked = json!({ "resource_type": "EVENT", "resource_id": id, "owner_id": "runner-1" });
    world.post("/claims", asked).send().await.problem(409, "refused");
    let before = world.store.facts_after(0, 1_000).await.unwrap();
    let settle = domain::event::EventCommand::Settle { routes: Vec::new(), moves_its_run: true };
    let order = engine::Order::new(EventId::new(id.as_str()), settle, std::sync::Arc::from("again"));
    world.daemon.engine().execute(order).await.expect("it is so already");
    assert_eq!(world.store.facts_after(0, 1_000).await.unwrap(), before, "nothing was written");
}

/// Waits for a claim on one event by its id, and lets somebody do this once it waits.
async fn claim_once_waiting(world: &World, id: &str, owner: &str, then: impl Future<Output = ()>) -> Answer {
    let asked = json!({ "resource_type": "EVENT", "resource_id": id, "owner_id": owner, "wait_seconds": 60 });
    let call = world.post("/claims", asked).send();
    tokio::pin!(call);
    let waits = async {
        while world.daemon.changes().under_watch().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        answer = &mut call => panic!("it does not wait: {} {}", answer.status, answer.body),
        () = waits => {}
    }
    let (answer, ()) = tokio::join!(call, then);
    answer
}

#[tokio::test]
async fn claim_on_an_event_by_id_waits_until_it_is_given_back() {
    let world = world().await;
    world.daemon.tell(Taking::Drains);
    let id = world.waiting_event().await;
    let held = world.claim_event(Some(&id), "runner-1").await;
    let asked = json!({ "resource_type": "EVENT", "resource_id": id, "owner_id": "runner-2" });
    world.post("/claims", asked).send().await.problem(409, "lease_held");
    let release = async {
        let fence = json!({ "owner_id": "runner-1", "claim_version": held["claim_version"] });
        world.post(&format!("/claims/EVENT/{id}/release"), fence).send().await.ok();
    };
    let claim = claim_once_waiting(&world, &id, "runner-2", release).await.ok()["claim"].clone();
    assert_eq!((&claim["resource_id"], &claim["owner_id"]), (&json!(id), &json!("runner-2")));
}

#[tokio::test]
async fn claim_on_an_event_by_id_ends_its_wait_when_it_is_settled() {
    let world = world().await;
    world.daemon.tell(Taking::Drains);
    let id = world.waiting_event().await;
    world.claim_event(Some(&id), "runner-1").await;
    let settle = async {
        let settle = domain::event::EventCommand::Settle { routes: Vec::new(), moves_its_run: true };
        let order = engine::Order::new(EventId::new(id.as_str()), settle, std::sync::Arc::from("test"));
        world.daemon.engine().execute(order).await.expect("it waits");
    };
    claim_once_waiting(&world, &id, "runner-2", settle).await.problem(409, "refused");
}
