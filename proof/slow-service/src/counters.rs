//! What the service was asked, counted.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counts at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Connections accepted.
    pub connections: u64,
    /// `POST /work`, refused and repeated ones included.
    pub starts: u64,
    /// `GET /work/{id}`.
    pub statuses: u64,
    /// `GET /work?key=`.
    pub lookups: u64,
    /// `GET /work/{id}/result`.
    pub results: u64,
    /// `POST /work/{id}/cancel`.
    pub cancels: u64,
    /// Callbacks that were answered with success.
    pub callbacks: u64,
    /// Callbacks that were not.
    pub failed_callbacks: u64,
}

/// The counts as they rise.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) connections: AtomicU64,
    pub(crate) starts: AtomicU64,
    pub(crate) statuses: AtomicU64,
    pub(crate) lookups: AtomicU64,
    pub(crate) results: AtomicU64,
    pub(crate) cancels: AtomicU64,
    pub(crate) callbacks: AtomicU64,
    pub(crate) failed_callbacks: AtomicU64,
}

impl Counters {
    pub(crate) fn read(&self) -> Requests {
        let read = |count: &AtomicU64| count.load(Ordering::SeqCst);
        Requests {
            connections: read(&self.connections),
            starts: read(&self.starts),
            statuses: read(&self.statuses),
            lookups: read(&self.lookups),
            results: read(&self.results),
            cancels: read(&self.cancels),
            callbacks: read(&self.callbacks),
            failed_callbacks: read(&self.failed_callbacks),
        }
    }
}

pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::SeqCst);
}
