//! What the writers have done so far: for the metrics, and for drills that must have happened.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the store was opened.
#[derive(Default)]
pub struct PostgresFigures {
    batches: AtomicU64,
    requests: AtomicU64,
    connections: AtomicU64,
    doubts: AtomicU64,
    repeats: AtomicU64,
}

impl PostgresFigures {
    pub(super) fn batch(&self, requests: usize) {
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.requests.fetch_add(requests as u64, Ordering::Relaxed);
    }

    pub(super) fn connection(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn doubt(&self) {
        self.doubts.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn repeated(&self, commits: u64) {
        self.repeats.fetch_add(commits, Ordering::Relaxed);
    }

    /// Batches so far.
    pub fn batches(&self) -> u64 {
        self.batches.load(Ordering::Relaxed)
    }

    /// Requests in them.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Connections that writers have opened again.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Transactions whose end was unknown at first.
    pub fn doubts(&self) -> u64 {
        self.doubts.load(Ordering::Relaxed)
    }

    /// Commits that were found to be written already when they were asked again.
    pub fn repeats(&self) -> u64 {
        self.repeats.load(Ordering::Relaxed)
    }
}
