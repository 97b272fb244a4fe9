//! What a worker knows of due times without a question to the store: while nothing is due, nothing is asked.

use std::sync::{Mutex, MutexGuard};

use domain::Timestamp;
use domain::time::earliest;

use super::Next;

/// The earliest due time, if it is known.
#[derive(Default)]
pub(super) struct DueTimes {
    known: Mutex<Known>,
}

#[derive(Clone, Copy, Default)]
enum Known {
    /// The store must be asked.
    #[default]
    Unknown,
    /// Nothing is due before; never, if absent.
    NothingBefore(Option<Timestamp>),
}

impl DueTimes {
    /// When to come back if nothing is due now; none if the store must be asked. `noted` is what commits have named since.
    pub(super) fn nothing_before(&self, now: Timestamp, noted: Option<Timestamp>) -> Option<Next> {
        let mut known = self.lock();
        if let Known::NothingBefore(at) = *known
            && let at = earliest(at, noted)
            && at.is_none_or(|at| now < at)
        {
            *known = Known::NothingBefore(at);
            return Some(at.map_or(Next::WhenWoken, Next::At));
        }
        // Whatever goes wrong from here on, the store is asked again.
        *known = Known::Unknown;
        None
    }

    /// The store has said when the next one is due.
    pub(super) fn learned(&self, at: Option<Timestamp>) -> Next {
        *self.lock() = Known::NothingBefore(at);
        at.map_or(Next::WhenWoken, Next::At)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().expect("no holder of the lock panics")
    }
}
