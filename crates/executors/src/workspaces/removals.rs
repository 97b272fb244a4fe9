//! What is not needed any more goes on a thread of its own, under a name that nobody else has: whoever opens the same attempt again, or
//! whose run has the id of one that is retired, loses nothing of what is new.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use super::remove;

/// Removals that may wait; more are done by whoever asks.
const REMOVALS_WAITING: usize = 4_096;
/// How often a directory that fills up again is tried, and after how long.
const REMOVED_AGAIN: usize = 20;
const REMOVED_AGAIN_AFTER: Duration = Duration::from_millis(50);
/// How many names that are taken are passed over: an earlier daemon leaves no more that wait.
const MAX_TAKEN: usize = 2 * REMOVALS_WAITING;

/// The thread that removes, and the directory whose names are given once.
#[derive(Clone)]
pub(super) struct Removals {
    dir: PathBuf,
    given: Arc<AtomicU64>,
    asked: SyncSender<PathBuf>,
}

impl Removals {
    /// Those that go through this directory, with the thread at its work.
    pub(super) fn through(dir: PathBuf) -> io::Result<Self> {
        let (removals, asked) = Self::not_yet(dir);
        std::thread::Builder::new()
            .name("remove_workspaces".to_owned())
            .spawn(move || asked.iter().for_each(|path| now(&path)))?;
        Ok(removals)
    }

    /// The same, with what is to be removed for whoever wants to do it.
    pub(super) fn not_yet(dir: PathBuf) -> (Self, Receiver<PathBuf>) {
        let (asked, receiver) = sync_channel(REMOVALS_WAITING);
        (Self { dir, given: Arc::default(), asked }, receiver)
    }

    /// Puts something under a name in the directory that nobody has had; what an earlier daemon left there is passed over.
    pub(super) fn under_new_name(
        &self,
        name: &str,
        put: impl Fn(&Path) -> io::Result<()>,
    ) -> io::Result<PathBuf> {
        for _ in 0..MAX_TAKEN {
            let path = self.dir.join(format!("{name}.{}", self.given.fetch_add(1, Ordering::Relaxed)));
            match put(&path) {
                Ok(()) => return Ok(path),
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty
                    ) => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Removes what has a name of its own already.
    pub(super) fn soon(&self, path: PathBuf) {
        match self.asked.try_send(path) {
            Ok(()) => {}
            Err(TrySendError::Full(path) | TrySendError::Disconnected(path)) => now(&path),
        }
    }

    /// Takes away what others may want the name of, and removes it.
    pub(super) fn away(&self, path: &Path) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match self.under_new_name(&name, |new| fs::rename(path, new)) {
            Ok(moved) => self.soon(moved),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!("{} is left: {error}", path.display()),
        }
    }
}

pub(super) fn now(path: &Path) {
    let mut removed = remove::tree(path);
    for _ in 0..REMOVED_AGAIN {
        match &removed {
            // Whoever wrote to it is just being ended.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                std::thread::sleep(REMOVED_AGAIN_AFTER);
                removed = remove::tree(path);
            }
            Ok(()) | Err(_) => break,
        }
    }
    if let Err(error) = removed {
        tracing::warn!("{} is left: {error}", path.display());
    }
}
