//! Reader threads: each with its own connection, each read one short transaction.

use std::sync::Arc;
use std::thread::JoinHandle;

use rusqlite::Connection;
use store::{Reply, StoreError, Urgency};
use tokio::sync::oneshot;

use super::{SqliteOptions, connect, spawn};
use crate::OpenError;
use crate::queue::Queue;

type Read = Box<dyn FnOnce(&Connection) + Send>;

/// Reads that a thread takes at once: one, so that the others get theirs.
const ONE: usize = 1;

/// A few threads that read.
pub(crate) struct Readers {
    queue: Arc<Queue<Read>>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    /// Readers without a thread yet: what is asked waits.
    pub(crate) fn new() -> Self {
        Self { queue: Arc::new(Queue::new()), threads: Vec::new() }
    }

    /// The connections of all threads.
    pub(crate) fn connect(options: &SqliteOptions) -> Result<Vec<Connection>, OpenError> {
        (0..options.readers.max(1)).map(|_| connect::reader(&options.path, options.vfs.as_deref())).collect()
    }

    /// Starts a thread on each connection.
    pub(crate) fn start(&mut self, connections: Vec<Connection>) -> Result<(), OpenError> {
        for connection in connections {
            let queue = self.queue.clone();
            self.threads.push(spawn("longhaul-reader", move || {
                while let Some(reads) = queue.take(ONE) {
                    for read in reads {
                        read(&connection);
                    }
                }
            })?);
        }
        Ok(())
    }

    /// Reads on one of the threads.
    pub(crate) fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Reply<'_, T> {
        let (reply, answer) = oneshot::channel();
        let queued = self.queue.push(
            Box::new(move |connection| {
                let _ = reply.send(read(connection));
            }),
            Urgency::Result,
            0,
        );
        Box::pin(async move {
            queued?;
            answer.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the reader has ended".to_owned())))
        })
    }

    pub(crate) fn stop(&mut self) {
        self.queue.close();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
