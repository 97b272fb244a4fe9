//! The workspaces of a node, and what earlier daemons left of theirs.

use std::path::Path;
use std::sync::{Arc, Weak};

use anyhow::{Context, Result};
use domain::{Record, RecordId};
use executors::Workspaces;
use store::Store;

use crate::config::{Among, Config};
use crate::database::Opened;

/// Opens them. Nothing of an earlier daemon of this node runs any more: what its attempts worked with goes.
pub(super) fn open(data_dir: &Path, node: &str, config: &Config, opened: &Opened) -> Result<Arc<Workspaces>> {
    let among = match opened {
        Opened::File(_) => Among::Alone,
        Opened::Server(_) => Among::Others,
    };
    let dir = data_dir.join("workspaces");
    let workspaces = Workspaces::in_dir(&dir, node, config.workspaces.settings(among))
        .with_context(|| format!("cannot make the workspaces in {}", dir.display()))?;
    workspaces.sweep_open().with_context(|| format!("cannot look into {}", dir.display()))?;
    Ok(Arc::new(workspaces))
}

/// Removes those of runs that the store no longer knows, at the start and whenever enough was done since: their removal was under way
/// when an earlier daemon ended, or another node has retired the run. Nobody waits for it, and it keeps nothing open.
pub(super) async fn remove_unknown(store: Weak<dyn Store>, workspaces: Weak<Workspaces>) {
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
        let known = match store.load(&RecordId::from(kept.run_id.clone())).await {
            Ok(Some(loaded)) => matches!(&*loaded.record, Record::Run(_)),
            Ok(None) => false,
            // Better kept too long than lost.
            Err(_) => true,
        };
        if !known {
            workspaces.remove_kept(&kept);
        }
    }
}
