//! SQLite's file locks between the open handles of one file: many readers, one writer that first reserves,
//! then waits for the readers to leave.
//!
//! A refused lock answers busy at once; waiting is left to SQLite's busy timeout.

use std::collections::BTreeMap;

use crate::fault::Failure;
use crate::storage::HandleId;

/// How strongly a handle holds its file; each level includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Unlocked,
    Shared,
    Reserved,
    Pending,
    Exclusive,
}

/// The levels held on one file. A handle that is not listed is unlocked.
#[derive(Debug, Default)]
pub(crate) struct FileLocks {
    levels: BTreeMap<HandleId, Level>,
}

impl FileLocks {
    /// Raises the handle to the level, or leaves it where it is because another handle is in the way.
    pub(crate) fn raise(&mut self, handle: HandleId, wanted: Level) -> Result<(), Failure> {
        let held = self.level(handle);
        if held >= wanted {
            return Ok(());
        }
        let others = self.strongest_of_others(handle);
        let in_the_way = match wanted {
            Level::Unlocked => false,
            Level::Shared => others >= Level::Pending,
            Level::Reserved | Level::Pending => others >= Level::Reserved,
            Level::Exclusive => others >= Level::Shared,
        };
        if !in_the_way {
            self.levels.insert(handle, wanted);
            return Ok(());
        }
        // Pending keeps new readers out, so that a writer which reserved cannot be starved.
        if wanted == Level::Exclusive && held == Level::Reserved {
            self.levels.insert(handle, Level::Pending);
        }
        Err(Failure::Busy)
    }

    /// Lowers the handle to the level; never raises it.
    pub(crate) fn lower(&mut self, handle: HandleId, level: Level) {
        let lowered = self.level(handle).min(level);
        self.levels.insert(handle, lowered);
    }

    /// Forgets a handle that is being closed.
    pub(crate) fn release(&mut self, handle: HandleId) {
        self.levels.remove(&handle);
    }

    /// Whether any handle may be about to write.
    pub(crate) fn is_reserved(&self) -> bool {
        self.levels.values().any(|level| *level >= Level::Reserved)
    }

    fn level(&self, handle: HandleId) -> Level {
        self.levels.get(&handle).copied().unwrap_or(Level::Unlocked)
    }

    fn strongest_of_others(&self, handle: HandleId) -> Level {
        let others = self.levels.iter().filter(|(other, _)| **other != handle);
        others.map(|(_, level)| *level).max().unwrap_or(Level::Unlocked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READER: HandleId = HandleId(1);
    const WRITER: HandleId = HandleId(2);

    #[test]
    fn readers_share_with_one_reserved_writer() {
        let mut locks = FileLocks::default();
        locks.raise(WRITER, Level::Shared).unwrap();
        locks.raise(WRITER, Level::Reserved).unwrap();
        assert_eq!(locks.raise(READER, Level::Shared), Ok(()));
        assert_eq!(locks.raise(READER, Level::Reserved), Err(Failure::Busy));
        assert!(locks.is_reserved());
    }

    #[test]
    fn writer_that_waits_for_a_reader_keeps_new_readers_out() {
        let mut locks = FileLocks::default();
        locks.raise(READER, Level::Shared).unwrap();
        locks.raise(WRITER, Level::Shared).unwrap();
        locks.raise(WRITER, Level::Reserved).unwrap();
        assert_eq!(locks.raise(WRITER, Level::Exclusive), Err(Failure::Busy));

        locks.lower(READER, Level::Unlocked);
        assert_eq!(locks.raise(READER, Level::Shared), Err(Failure::Busy));
        assert_eq!(locks.raise(WRITER, Level::Exclusive), Ok(()));

        locks.release(WRITER);
        assert_eq!(locks.raise(READER, Level::Shared), Ok(()));
    }
}
