//! Mutexes that nobody holds while something panics.

use std::sync::{Mutex, MutexGuard};

/// A mutex of which no holder panics.
pub(crate) trait Locked<T> {
    /// Waits for the lock.
    fn locked(&self) -> MutexGuard<'_, T>;
}

impl<T> Locked<T> for Mutex<T> {
    fn locked(&self) -> MutexGuard<'_, T> {
        self.lock().expect("no holder of the lock panics")
    }
}
