//! Callbacks that come before their operation: a service may be faster than the commit that writes its handle down. They are kept in
//! memory, few and not for long, until the operation is there; one that is lost costs no more than waiting for the first poll.

use std::sync::Arc;
use std::time::Duration;

use domain::{OperationId, RecordId};
use tokio::sync::Semaphore;

use super::hear;
use crate::serve::Server;

/// How many wait at the same time.
const MAX_WAITING: usize = 256;
/// How long one waits.
const WAITS: Duration = Duration::from_secs(30);

/// The places of those that wait.
pub(crate) struct EarlyCallbacks(Arc<Semaphore>);

impl Default for EarlyCallbacks {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_WAITING)))
    }
}

/// Keeps it until the operation is there; false if there is no place.
pub(super) fn remember(server: &Arc<Server>, operation: OperationId, body: Arc<[u8]>) -> bool {
    let Ok(place) = server.early_callbacks.0.clone().try_acquire_owned() else { return false };
    let server = server.clone();
    tokio::spawn(async move {
        let id = RecordId::Operation(operation.clone());
        let mut watched = server.daemon.changes().watch(&id);
        // It may have come between the look before and the watch.
        let is_there = matches!(server.store().load(&id).await, Ok(Some(_)));
        if is_there || tokio::time::timeout(WAITS, watched.next()).await.is_ok() {
            hear(server, operation, body);
        }
        drop(place);
    });
    true
}
