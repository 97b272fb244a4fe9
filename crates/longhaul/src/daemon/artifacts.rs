//! Artifacts whose job the store no longer knows: their removal was under way when an earlier daemon ended.

use std::sync::Arc;

use domain::RecordId;
use executors::process::Artifacts;
use store::Store;

/// Removes them. Nobody waits for it.
pub(super) async fn remove_unknown(store: Arc<dyn Store>, artifacts: Arc<Artifacts>) {
    let Ok(jobs) = artifacts.jobs() else { return };
    for job_id in jobs {
        let known = match store.load(&RecordId::from(job_id.clone())).await {
            Ok(Some(loaded)) => loaded.record.as_job().is_some_and(|job| !job.purged),
            Ok(None) => false,
            // Better kept too long than lost.
            Err(_) => true,
        };
        if !known {
            artifacts.remove(&job_id);
        }
    }
}
