//! Nodes: written down, ordered about, forgotten; and no part of the ledger.

use store::{MAX_NODE_TEXT_BYTES, Node, Store, StoreError, Taking};

use crate::given::*;
use crate::subject::on_every_store;

fn node(id: &str, seconds: u64) -> Node {
    Node {
        id: id.to_owned(),
        name: "the machine in the cellar".to_owned(),
        url: "http://127.0.0.1:7420".to_owned(),
        version: "0.1.0".to_owned(),
        schema_version: 4,
        executors: vec!["noop".to_owned(), "press".to_owned()],
        started_at: at(seconds),
        heartbeat_at: at(seconds),
        attempts: 0,
        polls: 0,
        taking: Taking::Takes,
    }
}

async fn ids(store: &dyn Store) -> Vec<String> {
    store.nodes().await.unwrap().into_iter().map(|node| node.id).collect()
}

#[tokio::test]
async fn heartbeat_changes_what_a_node_does_and_not_what_it_was_told() {
    on_every_store(async |store| {
        store.keep_node(node("a", 1), at(0)).await.unwrap();
        store.keep_node(node("b", 2), at(0)).await.unwrap();
        assert_eq!(store.nodes().await, Ok(vec![node("b", 2), node("a", 1)]));
        assert_eq!(store.tell_node("a", Taking::Drains).await, Ok(true));
        assert_eq!(store.tell_node("c", Taking::Drains).await, Ok(false));
        let beaten = Node { heartbeat_at: at(9), attempts: 3, polls: 2, ..node("a", 1) };
        store.keep_node(beaten.clone(), at(0)).await.unwrap();
        let told = Node { taking: Taking::Drains, ..beaten };
        assert_eq!(store.nodes().await.unwrap()[1], told);
        assert_eq!(store.tell_node("a", Taking::Takes).await, Ok(true));
        assert_eq!(store.nodes().await.unwrap()[1].taking, Taking::Takes);
        assert!(store.facts_after(0, 10).await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn nodes_that_ended_or_were_not_heard_of_since_are_gone() {
    on_every_store(async |store| {
        for (id, seconds) in [("a", 1), ("b", 5), ("c", 9)] {
            store.keep_node(node(id, seconds), at(0)).await.unwrap();
        }
        store.keep_node(node("d", 3), at(5)).await.unwrap();
        assert_eq!(ids(&*store).await, ["c", "b", "d"]);
        store.remove_node("c").await.unwrap();
        store.remove_node("nobody").await.unwrap();
        assert_eq!(ids(&*store).await, ["b", "d"]);
    })
    .await;
}

#[tokio::test]
async fn node_with_a_text_over_its_limit_is_refused() {
    on_every_store(async |store| {
        let long = Node { name: "x".repeat(MAX_NODE_TEXT_BYTES + 1), ..node("a", 1) };
        let refused = store.keep_node(long, at(0)).await.unwrap_err();
        assert!(matches!(refused, StoreError::TooLarge { .. }), "{refused:?}");
        assert!(ids(&*store).await.is_empty());
    })
    .await;
}
