//! Checkpoints on their own thread and connection, so that they never lie between a commit and its answer.
//!
//! A passive pass moves most of the log while the writer goes on: in a moment in which it has nothing to do, if there is one before the
//! log is twice as long, because both want the same disk. If the log is still long, a second pass holds the writer
//! for the little that is left, so that the log begins anew and stays bounded. If much is left, someone reads for long, as a backup
//! does: the writer is not held for what would be in vain.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::watch;

use super::failure::Failure;
use super::spawn;
use crate::OpenError;

/// Pages in the log that start a passive pass: 8 MiB.
const PASSIVE_PAGES: i32 = 2_048;
/// Pages in the log that start it whatever the writer does: 16 MiB.
const HURRY_PAGES: i32 = 2 * PASSIVE_PAGES;
/// The writer has nothing to do if the log has not grown for this long.
const QUIET: Duration = Duration::from_millis(20);
/// Pages in the log that start a pass that holds the writer: 32 MiB.
const RESTART_PAGES: i32 = 8_192;

pub(crate) struct Checkpointer {
    wake_up: WakeUp,
    thread: Option<JoinHandle<()>>,
}

/// How the writer says that the log has grown.
#[derive(Clone)]
pub(crate) struct WakeUp {
    shared: Arc<Shared>,
}

struct Shared {
    pages: AtomicI32,
    asked: Mutex<Asked>,
    changed: Condvar,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Nothing,
    Checkpoint,
    End,
}

impl Checkpointer {
    /// A checkpointer without its thread yet: what is asked waits.
    pub(crate) fn new() -> Self {
        let shared = Arc::new(Shared {
            pages: AtomicI32::new(0),
            asked: Mutex::new(Asked::Nothing),
            changed: Condvar::new(),
        });
        Self { wake_up: WakeUp { shared }, thread: None }
    }

    pub(crate) fn start(
        &mut self,
        connection: Connection,
        stop: Arc<watch::Sender<Option<String>>>,
    ) -> Result<(), OpenError> {
        let shared = self.wake_up.shared.clone();
        self.thread = Some(spawn("longhaul-checkpoint", move || run(&connection, &shared, &stop))?);
        Ok(())
    }

    pub(crate) fn wake_up(&self) -> WakeUp {
        self.wake_up.clone()
    }

    pub(crate) fn stop(&mut self) {
        self.wake_up.ask(Asked::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl WakeUp {
    /// The log has this many pages now.
    pub(crate) fn log_has(&self, pages: i32) {
        self.shared.pages.store(pages, Ordering::Relaxed);
        if pages >= PASSIVE_PAGES {
            self.ask(Asked::Checkpoint);
        }
    }

    fn ask(&self, what: Asked) {
        let mut asked = self.shared.asked.lock().expect("no holder of the lock panics");
        if *asked != Asked::End && *asked != what {
            *asked = what;
            self.shared.changed.notify_one();
        }
    }
}

fn run(connection: &Connection, shared: &Shared, stop: &watch::Sender<Option<String>>) {
    let mut restart_from = RESTART_PAGES;
    loop {
        let mut asked = shared.asked.lock().expect("no holder of the lock panics");
        while *asked == Asked::Nothing {
            asked = shared.changed.wait(asked).expect("no holder of the lock panics");
        }
        if *asked == Asked::End {
            return;
        }
        let asked = wait_for_a_quiet_moment(shared, asked);
        if *asked == Asked::End {
            return;
        }
        drop(asked);
        if let Err(error) = pass(connection, shared, &mut restart_from)
            && let Failure::Fatal(reason) = Failure::from(error)
        {
            // A failed sync here may have lost pages that the log no longer holds.
            stop.send_replace(Some(reason));
            return;
        }
    }
}

/// What is asked since: whatever made the log grow meanwhile is moved with the rest.
fn wait_for_a_quiet_moment<'a>(
    shared: &'a Shared,
    mut asked: MutexGuard<'a, Asked>,
) -> MutexGuard<'a, Asked> {
    loop {
        let before = shared.pages.load(Ordering::Relaxed);
        if before < HURRY_PAGES && *asked != Asked::End {
            asked = shared.changed.wait_timeout(asked, QUIET).expect("no holder of the lock panics").0;
        }
        let now = shared.pages.load(Ordering::Relaxed);
        if *asked == Asked::End {
            return asked;
        }
        if now == before || now >= HURRY_PAGES {
            *asked = Asked::Nothing;
            return asked;
        }
    }
}

fn pass(connection: &Connection, shared: &Shared, restart_from: &mut i32) -> rusqlite::Result<()> {
    let left = checkpoint(connection, "PRAGMA wal_checkpoint(PASSIVE)")?;
    let pages = shared.pages.load(Ordering::Relaxed);
    if pages < RESTART_PAGES {
        *restart_from = RESTART_PAGES;
    } else if pages >= *restart_from && left < PASSIVE_PAGES {
        // If a reader is in the way, the log grows a little more before the writer is held again.
        *restart_from = pages.saturating_add(PASSIVE_PAGES);
        checkpoint(connection, "PRAGMA wal_checkpoint(RESTART)")?;
    }
    Ok(())
}

/// A connection that has read nothing yet answers -1 and does nothing; a read comes first. The statement is stepped to its
/// end, because its error may come after its row. Gives the pages that a reader keeps from being moved.
fn checkpoint(connection: &Connection, pragma: &str) -> rusqlite::Result<i32> {
    connection.query_row("SELECT count(*) FROM meta", [], |row| row.get::<_, i64>(0))?;
    let mut statement = connection.prepare_cached(pragma)?;
    let mut rows = statement.query([])?;
    let mut left = 0;
    while let Some(row) = rows.next()? {
        left = row.get::<_, i32>(1)? - row.get::<_, i32>(2)?;
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn writer_is_not_held_for_the_sake_of_a_log_that_a_long_read_keeps() {
        let directory = tempfile::tempdir().unwrap();
        let open = || {
            let connection = Connection::open(directory.path().join("store.sqlite")).unwrap();
            connection.busy_timeout(Duration::from_mins(1)).unwrap();
            connection
        };
        let (writer, reader, checkpointer) = (open(), open(), open());
        writer
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE meta (value BLOB)",
            )
            .unwrap();
        reader.execute_batch("BEGIN; SELECT count(*) FROM meta").unwrap();
        let pages = RESTART_PAGES + 100;
        writer.execute("INSERT INTO meta VALUES (zeroblob(?1))", [i64::from(pages) * 4_096]).unwrap();
        let shared = Shared {
            pages: AtomicI32::new(pages),
            asked: Mutex::new(Asked::Nothing),
            changed: Condvar::new(),
        };
        let (mut restart_from, begun) = (RESTART_PAGES, Instant::now());
        pass(&checkpointer, &shared, &mut restart_from).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(30), "it waited for the reader");
        reader.execute_batch("ROLLBACK").unwrap();
        pass(&checkpointer, &shared, &mut restart_from).unwrap();
        writer.execute_batch("INSERT INTO meta VALUES (1)").unwrap();
        let log_pages: i32 =
            writer.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(1)).unwrap();
        assert!(log_pages < 100, "the log did not begin anew: {log_pages} pages");
    }
}
