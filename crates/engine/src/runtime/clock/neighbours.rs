//! How far the clock is off on each of the nodes that share a store, as each has written it down after its last heartbeat.

use std::collections::BTreeMap;

use store::{Store, StoreError};

use super::rounded_seconds;

/// The wall clock minus the time of the store on each node, in seconds, by the node's id. Nothing is written.
pub async fn clock_steps(store: &dyn Store) -> Result<BTreeMap<String, i64>, StoreError> {
    let sights = store.sights().await?;
    let correction_micros = store.clock().await?.correction_micros;
    let of = |sight: store::Sight| {
        let seconds = rounded_seconds(sight.step_micros(correction_micros));
        (sight.node_id, seconds)
    };
    Ok(sights.into_iter().map(of).collect())
}
