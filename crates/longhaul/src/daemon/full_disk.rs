//! A start on a full disk: the daemon serves reads and refuses writes, and what a start writes down is written when there is room again.

use std::future::Future;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use server::HostWarning;
use store::StoreError;

/// How long to wait before something is written again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// With less room than this the store's log cannot grow by one batch.
const LITTLE_ROOM: u64 = 256 * 1024;

/// Says that the disk of this directory is full, whenever it is.
pub(super) fn warning_of(data_dir: &Path) -> HostWarning {
    let data_dir = data_dir.to_owned();
    Arc::new(move || {
        // A disk that does not answer is told of by the store.
        let disk = rustix::fs::statvfs(&data_dir).ok()?;
        // What is reserved for root is room for a daemon of root.
        let free = if rustix::process::geteuid().is_root() { disk.f_bfree } else { disk.f_bavail };
        let room = free.saturating_mul(disk.f_frsize);
        let told =
            "the disk of the data directory is full: reads go on, writes are refused until there is room";
        (room < LITTLE_ROOM).then(|| told.to_owned())
    })
}

/// Whether there was no room for it.
pub(super) fn is_full(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        matches!(io, Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded))
            || cause.downcast_ref::<StoreError>() == Some(&StoreError::Full)
    })
}

/// Writes now; if the disk is full, says so, and writes as soon as there is room, while the daemon serves.
pub(super) async fn now_or_later<F, W>(what: &'static str, write: F) -> Result<()>
where
    F: Fn() -> W + Send + Sync + 'static,
    W: Future<Output = Result<()>> + Send + 'static,
{
    match write().await {
        Err(error) if is_full(&error) => {}
        written => return written,
    }
    tracing::warn!("the disk is full: {what} is written when there is room; reads go on, writes are refused");
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(AGAIN_AFTER).await;
            match write().await {
                Err(error) if is_full(&error) => {}
                Err(error) => return tracing::warn!("{what} cannot be written: {error:#}"),
                Ok(()) => return tracing::info!("there is room again: {what} is written"),
            }
        }
    });
    Ok(())
}
