//! The snapshot of a file, beside the daemon that writes it: all pages as they are at one moment, in steps, by SQLite's own backup.
//!
//! Why so. A backup without a transaction around it begins anew whenever the daemon writes between two steps, and beside a busy one it
//! never ends; `VACUUM INTO` writes every row and index anew and so reads for many times as long. Here one read transaction is
//! held for as long as it takes to copy the pages one after the other, as quickly as the disk gives them. It holds up no
//! writer. What it does hold up is the log, which cannot begin anew meanwhile: it grows by what the daemon writes in that
//! time. It is measured after each step, and past a limit the backup gives up rather than fill the daemon's disk.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use store::StoreError;

use super::{BackupError, Stage, Watch, beside};
use crate::database::unsigned;

/// Pages of one step: 4 MiB.
const STEP_PAGES: i32 = 1_024;
/// The log may grow by this much, or by half of the store if that is more.
const LOG_MAY_GROW_BYTES: u64 = 1_073_741_824;

/// A file that is read as it is at one moment.
pub(super) struct Snapshot {
    connection: Connection,
    /// Bytes of its pages.
    pub(super) bytes: u64,
}

impl Snapshot {
    /// From now on nothing that is written is seen.
    pub(super) fn of(store: &Path) -> Result<Self, BackupError> {
        let connection = crate::open_for_reading(store)?;
        let failed = |error| BackupError::of_database(store, error);
        connection.execute_batch("BEGIN").map_err(failed)?;
        let number = |sql| connection.query_row(sql, [], |row| Ok(unsigned(row, 0)?)).map_err(failed);
        // Only a read begins the transaction.
        number("SELECT count(*) FROM meta")?;
        let bytes = number("PRAGMA page_count")? * number("PRAGMA page_size")?;
        Ok(Self { connection, bytes })
    }

    /// Copies every page.
    pub(super) fn copy_to(
        self,
        target: &mut Connection,
        store: &Path,
        draft: &Path,
        watch: Watch<'_>,
    ) -> Result<(), BackupError> {
        let failed = |error| BackupError::of_database(draft, error);
        let log = beside(store, "-wal");
        let log_bytes = || std::fs::metadata(&log).map_or(0, |about| about.len());
        let (at_first, most) = (log_bytes(), LOG_MAY_GROW_BYTES.max(self.bytes / 2));
        let backup = Backup::new(&self.connection, target).map_err(failed)?;
        loop {
            match backup.step(STEP_PAGES).map_err(failed)? {
                StepResult::Done => return Ok(()),
                StepResult::More => {}
                StepResult::Busy | StepResult::Locked | _ => {
                    let told = "another program keeps the database locked".to_owned();
                    return Err(StoreError::Unavailable(told).into());
                }
            }
            let progress = backup.progress();
            let copied = self.share(progress.pagecount - progress.remaining, progress.pagecount);
            watch(Stage::Copying, copied, Some(self.bytes));
            let grown = log_bytes().saturating_sub(at_first);
            if grown > most {
                return Err(BackupError::LogGrew { path: store.to_owned(), grown });
            }
        }
    }

    fn share(&self, pages: i32, of: i32) -> u64 {
        let whole = |pages: i32| u64::try_from(pages).unwrap_or_default();
        self.bytes / whole(of).max(1) * whole(pages)
    }
}
