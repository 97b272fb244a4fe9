//! Sessions for reading: a few, opened when they are needed and again when they were lost.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use store::StoreError;
use tokio::sync::Semaphore;

use super::address::PostgresAddress;
use super::session::Session;

/// A read whose connection was lost is asked again for this long.
const ASK_AGAIN_FOR: Duration = Duration::from_secs(10);
/// How long to wait before the next try, from the first to the longest.
const WAIT_FROM: Duration = Duration::from_millis(20);
const WAIT_TO: Duration = Duration::from_secs(1);

/// Sessions for reading.
pub(super) struct Pool {
    address: PostgresAddress,
    idle: Mutex<Vec<Session>>,
    places: Semaphore,
}

impl Pool {
    pub(super) fn new(address: PostgresAddress, most: usize) -> Self {
        Self { address, idle: Mutex::default(), places: Semaphore::new(most.max(1)) }
    }

    /// Reads on a session of its own. A lost connection is no answer: the read is asked again on another.
    pub(super) async fn read<T, F>(&self, read: impl Fn(Arc<Session>) -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let _place = self.places.acquire().await.expect("places are never closed");
        let begun = Instant::now();
        let mut wait = WAIT_FROM;
        loop {
            let error = match self.session().await {
                Ok(session) => {
                    let session = Arc::new(session);
                    let answer = read(session.clone()).await;
                    let lost = session.is_lost();
                    // Heartbeats write on these sessions: one that may only read stays so, also when the database takes writes again.
                    if !lost
                        && !session.is_read_only()
                        && let Ok(session) = Arc::try_unwrap(session)
                    {
                        self.lock().push(session);
                    }
                    match answer {
                        Err(error) if lost => error,
                        answer => return answer,
                    }
                }
                Err(error) => error,
            };
            if begun.elapsed() + wait > ASK_AGAIN_FOR {
                return Err(error);
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(WAIT_TO);
        }
    }

    async fn session(&self) -> Result<Session, StoreError> {
        loop {
            let idle = self.lock().pop();
            match idle {
                Some(session) if session.is_lost() => {}
                Some(session) => return Ok(session),
                None => break,
            }
        }
        let connected = Session::connect(&self.address, None).await;
        connected.map_err(|error| StoreError::Unavailable(error.to_string()))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Session>> {
        self.idle.lock().expect("no holder of the lock panics")
    }
}
