//! Checkpoints on their own thread and connection, so that they never lie between a commit and its answer.
//!
//! A passive pass moves most of the log while the writer goes on. If the log is still long, a second pass holds the writer
//! for the little that is left, so that the log begins anew and stays bounded.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::watch;

use super::failure::Failure;
use super::spawn;
use crate::OpenError;

/// Pages in the log that start a passive pass: 8 MiB.
const PASSIVE_PAGES: i32 = 2_048;
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
        *asked = Asked::Nothing;
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

fn pass(connection: &Connection, shared: &Shared, restart_from: &mut i32) -> rusqlite::Result<()> {
    checkpoint(connection, "PRAGMA wal_checkpoint(PASSIVE)")?;
    let pages = shared.pages.load(Ordering::Relaxed);
    if pages < RESTART_PAGES {
        *restart_from = RESTART_PAGES;
    } else if pages >= *restart_from {
        // If a reader is in the way, the log grows a little more before the writer is held again.
        *restart_from = pages.saturating_add(PASSIVE_PAGES);
        checkpoint(connection, "PRAGMA wal_checkpoint(RESTART)")?;
    }
    Ok(())
}

/// A connection that has read nothing yet answers -1 and does nothing; a read comes first. The statement is stepped to its
/// end, because its error may come after its row.
fn checkpoint(connection: &Connection, pragma: &str) -> rusqlite::Result<()> {
    connection.query_row("SELECT count(*) FROM meta", [], |row| row.get::<_, i64>(0))?;
    let mut statement = connection.prepare_cached(pragma)?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}
