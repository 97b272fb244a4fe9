//! Faults that a test switches on, and the failures that the disk answers with.
//!
//! A failed write changes nothing. What a failed sync does to the data is decided in `power_loss`.

/// What goes wrong when the armed operation comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// One sync fails with `SQLITE_IOERR_FSYNC`. What it should have made durable stays in doubt for good,
    /// even if a later sync succeeds. Whoever else has the file open is told at its own next sync, once. Both as on Linux.
    SyncFails,
    /// Every write fails with `SQLITE_FULL` until the disk is healed.
    DiskFull,
    /// One write fails with `SQLITE_IOERR_WRITE`.
    WriteFails,
}

/// Why the disk did not do what it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    CannotOpen,
    NoSuchFile,
    Busy,
    NotMapped,
    ShortRead,
    SyncFailed,
    Full,
    WriteFailed,
}

/// The armed fault and the count of those that fired.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    armed: Option<(usize, Fault)>,
    fired: usize,
}

impl Faults {
    pub(crate) fn arm(&mut self, from_operation: usize, fault: Fault) {
        self.armed = Some((from_operation, fault));
    }

    pub(crate) fn disarm(&mut self) {
        self.armed = None;
    }

    pub(crate) fn fired(&self) -> usize {
        self.fired
    }

    /// Whether the write that would become this operation may happen.
    pub(crate) fn before_write(&mut self, operation: usize) -> Result<(), Failure> {
        match self.due(operation) {
            None | Some(Fault::SyncFails) => Ok(()),
            Some(Fault::DiskFull) => {
                self.fired += 1;
                Err(Failure::Full)
            }
            Some(Fault::WriteFails) => {
                self.fire_once();
                Err(Failure::WriteFailed)
            }
        }
    }

    /// Whether the sync that would become this operation may succeed.
    pub(crate) fn before_sync(&mut self, operation: usize) -> Result<(), Failure> {
        match self.due(operation) {
            None | Some(Fault::DiskFull | Fault::WriteFails) => Ok(()),
            Some(Fault::SyncFails) => {
                self.fire_once();
                Err(Failure::SyncFailed)
            }
        }
    }

    fn due(&self, operation: usize) -> Option<Fault> {
        self.armed.filter(|(from, _)| operation >= *from).map(|(_, fault)| fault)
    }

    fn fire_once(&mut self) {
        self.fired += 1;
        self.armed = None;
    }
}
