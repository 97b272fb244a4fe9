//! Work that goes on while the database or its connections fail: whole lives of jobs, each step repeated until it is known, and
//! afterwards compared with the ledger.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use domain::{Claim, RecordId};
use store::{Commit, Loaded, Store, StoreError};
use store_sql::PostgresStore;
use tokio::task::JoinHandle;

use super::database::{Database, soon};
use crate::given::*;

const LOOK_EVERY: Duration = Duration::from_millis(1);

/// The positions that were acknowledged, by job.
pub type Acknowledged = BTreeMap<RecordId, Vec<u64>>;

pub struct Drill {
    over: Arc<AtomicBool>,
    written: Arc<AtomicU64>,
    writers: Vec<JoinHandle<Acknowledged>>,
}

impl Drill {
    /// So many callers, until the end.
    pub fn start(store: &Arc<PostgresStore>, writers: usize) -> Self {
        let (over, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let writers = (0..writers)
            .map(|writer| {
                let (store, over, written) = (store.clone(), over.clone(), written.clone());
                tokio::spawn(async move {
                    let mut acknowledged = Acknowledged::new();
                    while !over.load(Ordering::Relaxed) {
                        let id = job(&format!("{writer}-{}", acknowledged.len()));
                        let positions = live(&*store, &id, &format!("node-{writer}"), &written).await;
                        acknowledged.insert(id, positions);
                    }
                    acknowledged
                })
            })
            .collect();
        Self { over, written, writers }
    }

    /// Commits that were acknowledged so far.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Waits until so many commits were acknowledged.
    pub async fn reach(&self, enough: u64) {
        soon(async {
            while self.written() < enough {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        })
        .await;
    }

    /// Lets every caller finish what it is about.
    pub async fn end(self) -> Acknowledged {
        self.over.store(true, Ordering::Relaxed);
        let mut acknowledged = Acknowledged::new();
        for writer in self.writers {
            acknowledged.extend(soon(writer).await.unwrap());
        }
        acknowledged
    }
}

/// A job from its creation under a key to its end under a claim: three commits.
async fn live(store: &dyn Store, id: &RecordId, owner_name: &str, written: &AtomicU64) -> Vec<u64> {
    let mut creating = commit(vec![creation(id, created(), at(0))], at(0));
    creating.keys = vec![kept(key(id.as_str()), id, b"created")];
    let mut positions = vec![until_known(store, creating).await];
    written.fetch_add(1, Ordering::Relaxed);
    let claim = until_taken(store, id, owner_name).await;
    for fact in [dispatched(1), completed()] {
        let loaded = until_loaded(store, id).await;
        let mut next = change(id, Some(&loaded), vec![fact], at(1));
        next.fence = Some(claim.fence());
        positions.push(until_known(store, commit(vec![next], at(1))).await);
        written.fetch_add(1, Ordering::Relaxed);
    }
    positions
}

/// Every commit is repeated word for word until it is known.
pub async fn until_known(store: &dyn Store, step: Commit) -> u64 {
    loop {
        match store.commit(step.clone()).await {
            Ok(committed) => return committed.position,
            Err(StoreError::OutcomeUnknown | StoreError::Unavailable(_)) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

async fn until_loaded(store: &dyn Store, id: &RecordId) -> Loaded {
    loop {
        match store.load(id).await {
            Ok(loaded) => return loaded.expect("it was acknowledged"),
            Err(StoreError::Unavailable(_)) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

/// Nobody else has this name, so a claim under it is ours, whether we have heard of it or not.
async fn until_taken(store: &dyn Store, id: &RecordId, owner_name: &str) -> Claim {
    loop {
        match store.take(id, take(owner_name, at(1), 1)).await {
            Ok(taken) => return taken.claim,
            Err(StoreError::OutcomeUnknown | StoreError::Unavailable(_)) => {
                let claim = until_loaded(store, id).await.claim;
                if let Some(claim) = claim.filter(|claim| claim.owner == owner(owner_name)) {
                    return claim;
                }
            }
            Err(other) => panic!("{other}"),
        }
    }
}

/// The ledger holds what was acknowledged, at the positions that were told, and nothing else; keys, views and agenda agree.
pub async fn compare(database: &Database, store: &dyn Store, acknowledged: &Acknowledged) {
    let mut found = Acknowledged::new();
    let mut after = 0;
    loop {
        let page = store.facts_after(after, 1_000).await.unwrap();
        let Some(last) = page.last() else { break };
        after = last.position;
        for fact in page {
            found.entry(fact.stream).or_default().push(fact.position);
        }
    }
    assert_eq!(found.len(), acknowledged.len());
    for (id, positions) in acknowledged {
        assert_eq!(found.get(id), Some(positions), "{id}");
    }
    let raw = database.raw().await;
    let keys: i64 = raw.query_one("SELECT count(*) FROM idempotency_keys", &[]).await.unwrap().get(0);
    assert_eq!(usize::try_from(keys).unwrap(), acknowledged.len());
    assert_eq!(database.verified().await.differences, []);
}
