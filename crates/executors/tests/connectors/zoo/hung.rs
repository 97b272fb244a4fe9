//! A service that hangs slows only itself.

use std::collections::{BTreeMap, BTreeSet};

use domain::operation::OperationFact;
use domain::{RecordId, Timestamp};
use serde_json::json;

use super::given::Zoo;

const OTHERS: usize = 19;
const EACH: usize = 3;
/// More than all places of the node.
const HUNG: usize = 40;

// conforms: O82
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nineteen_services_are_asked_in_time_beside_one_that_hangs_with_more_work_than_there_are_places() {
    let mut kinds: Vec<_> = (0..OTHERS).map(|number| (format!("honest-{number}"), "")).collect();
    // Whoever waits behind it waits longer than this test.
    kinds.push(("hung".to_owned(), ", status_timeout_ms: 600000"));
    let zoo = Zoo::open(&kinds).await;
    let mut hung = BTreeSet::new();
    for _ in 0..HUNG {
        let input = json!({ "seconds": 80, "manner": "hangs" });
        hung.insert(zoo.create("hung", &input).await);
    }
    for (kind, _) in &kinds[..OTHERS] {
        for _ in 0..EACH {
            zoo.create(kind, &json!({ "seconds": 80, "result": 1 })).await;
        }
    }
    zoo.settle(|_| true).await;
    let hangs = zoo.operations().into_iter().filter(|operation| hung.contains(&operation.link.job_id));
    let hangs: BTreeSet<RecordId> = hangs.map(|operation| operation.id.into()).collect();
    assert_eq!(hangs.len(), HUNG);
    for _ in 0..60 {
        zoo.second_for(|id| !hangs.contains(id)).await;
    }
    let mut due: BTreeMap<RecordId, Timestamp> = BTreeMap::new();
    let mut polls = 0;
    for (id, at, fact) in zoo.facts() {
        let id = RecordId::from(id);
        let next = if let OperationFact::Dispatched(accepted) = &fact {
            accepted.next_poll_at
        } else if let OperationFact::Polled(polled) = &fact {
            polled.next_poll_at
        } else {
            continue;
        };
        let before = due.insert(id.clone(), next);
        if let (Some(due), false) = (before, hangs.contains(&id)) {
            polls += 1;
            assert!(at <= due.plus_seconds(1), "{id} was due at {due:?} and asked about at {at:?}");
        }
    }
    assert!(polls > OTHERS * EACH * 20, "{polls} polls say little");
}
