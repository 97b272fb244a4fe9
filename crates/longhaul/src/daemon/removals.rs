//! What lies beside the store of jobs and runs that the store no longer knows: their removal was under way when an earlier daemon ended, or
//! another node has retired the run. Nobody waits for it.

use std::sync::{Arc, Weak};

use domain::{Record, RecordId};
use executors::Workspaces;
use executors::process::Artifacts;
use store::Store;

/// Removes the artifacts of jobs.
pub(super) async fn remove_artifacts(store: Arc<dyn Store>, artifacts: Arc<Artifacts>) {
    let Ok(jobs) = artifacts.jobs() else { return };
    for job_id in jobs {
        let is_kept = |record: &Record| record.as_job().is_some_and(|job| !job.purged);
        if !is_known(&*store, RecordId::from(job_id.clone()), is_kept).await {
            artifacts.remove(&job_id);
        }
    }
}

/// Removes the workspaces of runs, at the start and whenever enough was done since. It keeps nothing open.
pub(super) async fn remove_workspaces(store: Weak<dyn Store>, workspaces: Weak<Workspaces>) {
    let Some(mut looks) = workspaces.upgrade().map(|workspaces| workspaces.looks()) else { return };
    loop {
        let (Some(store), Some(workspaces)) = (store.upgrade(), workspaces.upgrade()) else { return };
        look(&*store, workspaces).await;
        drop(store);
        if looks.changed().await.is_err() {
            return;
        }
    }
}

async fn look(store: &dyn Store, workspaces: Arc<Workspaces>) {
    let here = workspaces.clone();
    let Ok(Ok(runs)) = tokio::task::spawn_blocking(move || here.runs()).await else { return };
    for kept in runs {
        let is_run = |record: &Record| matches!(record, Record::Run(_));
        if !is_known(store, RecordId::from(kept.run_id.clone()), is_run).await {
            workspaces.remove_kept(&kept);
        }
    }
}

async fn is_known(store: &dyn Store, id: RecordId, is_kept: fn(&Record) -> bool) -> bool {
    match store.load(&id).await {
        Ok(Some(loaded)) => is_kept(&loaded.record),
        Ok(None) => false,
        // Better kept too long than lost.
        Err(_) => true,
    }
}
