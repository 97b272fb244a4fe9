//! Claims of daemons that are dead: the lock on the store proves that no other daemon lives, so that their leases need not be waited for.
//!
//! A claim that is handed back is due at once; the workers then decide what becomes of its job, as after any lost lease.

use std::path::Path;

use anyhow::{Context, Result};
use engine::Clock;
use futures::future::join_all;
use store::{Store, StoreError};
use store_sql::{ClaimLine, claims_after, open_for_reading};

/// Hands back every live claim whose owner is a daemon. To be called under the store's lock, before any worker runs.
pub(super) async fn hand_back(store: &dyn Store, path: &Path, clock: &dyn Clock, owner: &str) -> Result<()> {
    let prefix = format!("{owner}-");
    let mut after = String::new();
    loop {
        let page = page(path, &after).await?;
        let Some(last) = page.last() else { return Ok(()) };
        last.id.as_str().clone_into(&mut after);
        let now = clock.now();
        let dead = page
            .iter()
            .filter(|line| line.claim.owner.as_str().starts_with(&prefix) && line.claim.is_live(now));
        let handed_back = dead.map(|line| store.hand_back(&line.id, line.claim.fence(), now));
        for outcome in join_all(handed_back).await {
            match outcome {
                Ok(()) | Err(StoreError::Fenced) => {}
                Err(error) => {
                    return Err(error).context("a claim of an earlier daemon cannot be handed back");
                }
            }
        }
    }
}

async fn page(path: &Path, after: &str) -> Result<Vec<ClaimLine>> {
    let (path, after) = (path.to_owned(), after.to_owned());
    let read = tokio::task::spawn_blocking(move || -> Result<Vec<ClaimLine>> {
        Ok(claims_after(&open_for_reading(&path)?, &after)?)
    });
    read.await?
}
