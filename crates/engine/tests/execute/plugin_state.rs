//! What a plugin remembers of a turn is written with the end of its job, on the row as it is then, or not at all.

use std::sync::Arc;

use domain::job::{JobCommand, JobStateName};
use engine::JsonObject;
use engine::{Order, StateChange, StateUpdate};
use store::{MAX_PLUGIN_STATE_BYTES, Store, StoreError};

use crate::scripted::{Act, Scripted};
use crate::world::{World, job, on_every_store, report};

fn merge(members: &str) -> StateUpdate {
    let members: JsonObject = serde_json::from_str(members).unwrap();
    StateUpdate { plugin: "gauge".to_owned(), change: StateChange::Merge(members), facts: Vec::new() }
}

/// The end of a job, with what its plugin remembers of it.
fn ending(name: &str, members: &str) -> Order {
    let completed: JobCommand = report(1, JobStateName::Completed);
    let order = Order::new(job(name), completed, Arc::from("tester"));
    Order { plugin_state: Some(merge(members)), ..order }
}

async fn state(store: &dyn Store) -> Option<String> {
    store.plugin_state("gauge").await.unwrap().map(|state| state.state.to_string())
}

// conforms: D38
#[tokio::test]
async fn state_is_written_with_the_end_of_the_job_and_survives_a_repeat() {
    on_every_store(async |world| {
        world.dispatched("a").await;
        world.engine.execute(ending("a", r#"{"n":1763337600123456789}"#)).await.unwrap();
        assert_eq!(world.state(&job("a")).await, JobStateName::Completed);
        assert_eq!(state(&*world.store).await.as_deref(), Some(r#"{"n":1763337600123456789}"#));
        // The same report again changes nothing, not even the state.
        world.engine.execute(ending("a", r#"{"n":2}"#)).await.unwrap();
        assert_eq!(world.store.plugin_state("gauge").await.unwrap().unwrap().version, 1);
    })
    .await;
}

#[tokio::test]
async fn turn_that_meets_another_is_merged_with_what_the_other_left() {
    let store = Arc::new(Scripted::default());
    let world = World::on(store.clone());
    world.dispatched("a").await;
    world.dispatched("b").await;
    let beside = World::on(store.inner.clone());
    store.next_commits([Act::LetFirst(beside.engine.clone(), vec![ending("b", r#"{"b":1,"both":"b"}"#)])]);
    world.engine.execute(ending("a", r#"{"a":1,"both":"a"}"#)).await.unwrap();
    assert_eq!(state(&*store.inner).await.as_deref(), Some(r#"{"a":1,"b":1,"both":"a"}"#));
    assert_eq!(world.store.plugin_state("gauge").await.unwrap().unwrap().version, 2);
}

#[tokio::test]
async fn refused_report_and_one_whose_state_is_too_large_leave_the_state_as_it_was() {
    on_every_store(async |world| {
        world.dispatched("a").await;
        let large = format!(r#"{{"x":"{}"}}"#, "y".repeat(MAX_PLUGIN_STATE_BYTES));
        let refused = world.engine.execute(ending("a", &large)).await.unwrap_err();
        let told = StoreError::TooLarge { what: "state of a plugin", limit: MAX_PLUGIN_STATE_BYTES };
        assert_eq!(refused.to_string(), told.to_string());
        assert_eq!(world.state(&job("a")).await, JobStateName::Dispatching);
        let stale: JobCommand = report(9, JobStateName::Completed);
        let stale =
            Order { plugin_state: Some(merge("{\"a\":1}")), ..Order::new(job("a"), stale, Arc::from("t")) };
        world.engine.execute(stale).await.unwrap_err();
        assert_eq!(state(&*world.store).await, None);
    })
    .await;
}
