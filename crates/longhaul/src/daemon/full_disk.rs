//! A start on a full disk: the daemon serves reads and refuses writes, and what a start writes down is written when there is room again.

use std::future::Future;
use std::io::ErrorKind;
use std::time::Duration;

use anyhow::Result;
use store::StoreError;

/// How long to wait before something is written again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

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
