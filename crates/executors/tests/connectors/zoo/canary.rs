//! What is private stays where private things are: what a job brings and gives.

use serde_json::json;
use slow_service::Manner;

use super::given::{TTL_SECONDS, Zoo, kind};

const CANARY: &str = "canary-7f3a9";

#[tokio::test]
async fn no_fact_and_no_view_shows_what_a_job_brings_or_gives() {
    let manners = [Manner::Honest, Manner::NeverEnds, Manner::Forgets, Manner::Error500];
    let zoo = Zoo::open(&manners.map(|manner| (kind(manner), ""))).await;
    for manner in manners {
        let input = json!({ "seconds": 5, "result": { "text": CANARY }, "manner": manner.name() });
        zoo.create(&kind(manner), &input).await;
    }
    for _ in 0..TTL_SECONDS + 30 {
        zoo.second().await;
    }
    let ids: Vec<String> = zoo.service.starts().into_iter().map(|start| start.id).collect();
    assert_eq!(ids.len(), manners.len());
    zoo.world.store.inspect(|tables| {
        let shown = format!("{:?} {:?}", tables.facts, tables.views);
        assert!(!shown.contains(CANARY));
        // By its service's own id the work is found by whoever may see it.
        assert!(ids.iter().all(|id| shown.contains(id)), "{ids:?}");
        let kept = tables.bodies.values().filter(|bytes| String::from_utf8_lossy(bytes).contains(CANARY));
        // What each brought, and what two of them gave.
        assert_eq!(kept.count(), manners.len() + 2);
    });
}
