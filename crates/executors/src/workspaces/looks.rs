//! When what runs have left here is compared with the store, which may have forgotten them: another node retires runs too.
//!
//! Work asks for it and no clock does, so that an idle node asks nothing. A look costs a read for each run that is found, hence as many
//! attempts lie between two looks as the first of them found.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;

/// How many attempts are opened between two looks, at least.
pub const LOOK_AFTER_ATTEMPTS: usize = 1_000;

/// Counts attempts, and says when to look.
pub(super) struct Looks {
    after: usize,
    due_at: AtomicUsize,
    opened: AtomicUsize,
    wanted: watch::Sender<()>,
}

impl Looks {
    pub(super) fn after(attempts: usize) -> Self {
        let (opened, wanted) = (AtomicUsize::new(0), watch::Sender::new(()));
        Self { after: attempts, due_at: AtomicUsize::new(attempts), opened, wanted }
    }

    /// An attempt was opened.
    pub(super) fn count(&self) {
        let opened = self.opened.fetch_add(1, Ordering::Relaxed) + 1;
        if opened >= self.due_at.load(Ordering::Relaxed) {
            self.opened.store(0, Ordering::Relaxed);
            self.wanted.send_replace(());
        }
    }

    /// A look has found so many runs.
    pub(super) fn found(&self, runs: usize) {
        self.due_at.store(runs.max(self.after), Ordering::Relaxed);
    }

    /// Changes when a look is wanted.
    pub(super) fn wanted(&self) -> watch::Receiver<()> {
        self.wanted.subscribe()
    }
}
