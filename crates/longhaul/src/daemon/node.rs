//! This process among those that work on its store: by whose clock it goes, how it is written down, and what all have in common.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use domain::Timestamp;
use engine::{Daemon, Measured, Membership, SharedClock, Standing, SystemClock, Timer};
use store::{Node, SharedStore, Store, Taking};
use store_sql::{PostgresStore, SCHEMA_VERSION, StoreTime};

use super::full_disk;
use crate::database::Opened;

/// The longest that the store may take to forget this node.
const FORGOTTEN_WITHIN: Duration = Duration::from_secs(2);

/// By whose clock this node goes, how it stands to its store, and the clock whose steps it adopts by itself if it has its store for itself.
/// Alone on a file it goes by its machine's clock; on a server by the database's, which is asked first.
pub(super) async fn clock_on(
    opened: &Opened,
    adopt_after_seconds: u64,
) -> Result<(Arc<dyn Timer>, Arc<Standing>, Option<Arc<SystemClock>>)> {
    Ok(match opened {
        Opened::File(store) => {
            let known = store.clock().await?;
            let clock = Arc::new(SystemClock::on(known, store.newest_fact(), adopt_after_seconds));
            (clock.clone(), Standing::alone(), Some(clock))
        }
        Opened::Server(store) => {
            let clock = Arc::new(shared_clock(store, adopt_after_seconds).await?);
            (clock.clone(), Standing::shared(clock), None)
        }
    })
}

async fn shared_clock(store: &Arc<PostgresStore>, adopt_after_seconds: u64) -> Result<SharedClock> {
    let known = store.clock().await?;
    store.pulse("").await?;
    let time = store.time();
    let first = measured((*time.borrow()).context("the database says no time")?);
    let newest_fact = store.newest_fact();
    let measure = move || time.borrow().map_or(first, measured);
    Ok(SharedClock::new(newest_fact, known, adopt_after_seconds, measure))
}

fn measured(time: StoreTime) -> Measured {
    let StoreTime { at, heard_at_boot, uncertainty, correction_micros, revision, .. } = time;
    Measured { at, heard_at_boot, uncertainty, correction_micros, revision }
}

/// Writes this node down, and keeps it among the others.
pub(super) async fn join(opened: &Opened, daemon: &Daemon, url: &str, now: Timestamp) -> Result<()> {
    let node = Node {
        id: daemon.node_id().to_owned(),
        name: machine(),
        url: url.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        schema_version: SCHEMA_VERSION,
        executors: daemon.executors().published(),
        started_at: now,
        heartbeat_at: now,
        attempts: 0,
        polls: 0,
        taking: Taking::Takes,
    };
    match opened {
        // The lock of the file proves that every earlier daemon is dead.
        Opened::File(store) => {
            let store = store.clone();
            let write = move || {
                let (store, node) = (store.clone(), node.clone());
                async move { Ok::<_, anyhow::Error>(store.keep_node(node, now).await?) }
            };
            full_disk::now_or_later("the entry of this node", write).await?;
        }
        Opened::Server(store) => {
            store.beat(node.clone()).await?;
            daemon.join(Membership { store: store.clone(), hints: store.hints(), node });
        }
    }
    Ok(())
}

/// This node has ended. If the store does not take it, it forgets the node by itself in time.
pub(super) async fn leave(store: &dyn Store, node_id: &str) {
    let _ = tokio::time::timeout(FORGOTTEN_WITHIN, store.remove_node(node_id)).await;
}

/// What this machine is called.
fn machine() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "unknown".to_owned() } else { name.trim().to_owned() }
}
