//! What was done to a disk, in order, and the images that a crash at any point could leave.
//!
//! The log is a value: it does not change when the disk goes on.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::image::{Image, write_at};
use crate::power_loss::{Fate, PowerLoss};
use crate::storage::FileId;

/// A snapshot of everything a disk recorded since it was made.
#[derive(Clone)]
pub struct OperationLog {
    pub(crate) base: Arc<Image>,
    pub(crate) operations: Vec<Operation>,
}

/// One change to the disk, or one promise that changes are durable.
#[derive(Debug, Clone)]
pub(crate) enum Operation {
    Create { file: FileId, name: Arc<str> },
    Write { file: FileId, offset: usize, bytes: Arc<[u8]> },
    Truncate { file: FileId, size: usize },
    Sync { file: FileId },
    FailedSync { file: FileId },
    Delete { name: Arc<str> },
    SyncDirectory,
}

impl OperationLog {
    /// How many operations were recorded.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// How many syncs of a file succeeded.
    pub fn syncs(&self) -> usize {
        self.operations.iter().filter(|operation| matches!(operation, Operation::Sync { .. })).count()
    }

    /// How many writes were done.
    pub fn writes(&self) -> usize {
        self.operations.iter().filter(|operation| matches!(operation, Operation::Write { .. })).count()
    }

    /// The disk after the process was killed before operation `at`: every earlier operation took effect.
    pub fn killed_at(&self, at: usize) -> Image {
        self.replay(at, |_| Fate::Kept)
    }

    /// The disk after the power failed before operation `at`. What was synced is there. Of the rest each
    /// write is, by the seed, kept, dropped or cut at a sector boundary, and each truncation, creation and
    /// deletion kept or dropped, independently of the others.
    pub fn power_lost_at(&self, at: usize, seed: u64) -> Image {
        let mut loss = PowerLoss::new(self.before(at), seed);
        self.replay(at, |index| loss.fate(index))
    }

    /// What every power loss before operation `at` leaves: what was synced, and nothing else.
    pub fn synced_at(&self, at: usize) -> Image {
        let settled = crate::power_loss::settled(self.before(at));
        self.replay(at, |index| if settled[index] { Fate::Kept } else { Fate::Dropped })
    }

    fn before(&self, at: usize) -> &[Operation] {
        &self.operations[..at.min(self.operations.len())]
    }

    fn replay(&self, at: usize, mut fate: impl FnMut(usize) -> Fate) -> Image {
        let mut directory: BTreeMap<&str, FileId> =
            self.base.files.keys().map(String::as_str).zip((0..).map(FileId)).collect();
        let mut files: BTreeMap<FileId, Vec<u8>> =
            (0..).map(FileId).zip(self.base.files.values().cloned()).collect();

        for (index, operation) in self.before(at).iter().enumerate() {
            let fate = fate(index);
            if fate == Fate::Dropped {
                continue;
            }
            match operation {
                Operation::Write { file, offset, bytes } => {
                    let kept = match fate {
                        Fate::Torn { kept_bytes } => &bytes[..kept_bytes],
                        Fate::Kept | Fate::Dropped => bytes,
                    };
                    write_at(files.entry(*file).or_default(), *offset, kept);
                }
                Operation::Create { file, name } => {
                    directory.insert(name, *file);
                }
                Operation::Truncate { file, size } => files.entry(*file).or_default().resize(*size, 0),
                Operation::Delete { name } => {
                    directory.remove(&**name);
                }
                Operation::Sync { .. } | Operation::FailedSync { .. } | Operation::SyncDirectory => {}
            }
        }

        let contents = |file: FileId| files.get(&file).cloned().unwrap_or_default();
        Image { files: directory.into_iter().map(|(name, file)| (name.to_owned(), contents(file))).collect() }
    }
}
