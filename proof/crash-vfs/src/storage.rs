//! The disk itself: a flat directory of files in memory, where every change to a named file is recorded.
//!
//! An operation's index in the log is its time. Temporary files have no name, are not recorded and do not
//! fail: nothing of them outlives their handle.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::fault::{Failure, Faults};
use crate::image::{Image, write_at};
use crate::locks::FileLocks;
use crate::log::{Operation, OperationLog};
use crate::shared_memory::SharedMemory;

/// A file may not grow beyond this; a write past it finds the disk full.
const MAX_FILE_BYTES: usize = 1 << 30;

/// One file, whatever its name: a file made again under an old name is another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileId(pub(crate) usize);

/// One open handle on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HandleId(pub(crate) u64);

/// What a file may be opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenMode {
    Existing,
    ExistingOrNew,
    New,
}

/// All that one disk holds.
pub(crate) struct Storage {
    base: Arc<Image>,
    directory: BTreeMap<String, FileId>,
    files: BTreeMap<FileId, File>,
    operations: Vec<Operation>,
    files_made: usize,
    handles_made: u64,
    pub(crate) faults: Faults,
}

/// One file and what its handles share.
#[derive(Default)]
pub(crate) struct File {
    bytes: Vec<u8>,
    entry: Entry,
    handles: BTreeSet<HandleId>,
    /// Handles that have not heard yet that a sync of another has failed: as on Linux, each is told once.
    untold: BTreeSet<HandleId>,
    pub(crate) locks: FileLocks,
    pub(crate) shared_memory: SharedMemory,
}

/// How the directory knows a file.
#[derive(Default, PartialEq, Eq)]
enum Entry {
    /// Not at all, and it never will.
    #[default]
    Temporary,
    /// Made on this disk; its first sync takes the directory along, as SQLite's own VFS does.
    New,
    Settled,
}

/// The storage, for one operation.
pub(crate) fn locked(storage: &Mutex<Storage>) -> MutexGuard<'_, Storage> {
    storage.lock().expect("nothing panics while it holds the disk")
}

impl Storage {
    /// A disk that holds the image.
    pub(crate) fn new(image: &Image) -> Self {
        let base = Arc::new(image.clone());
        let directory: BTreeMap<_, _> = base.files.keys().cloned().zip((0..).map(FileId)).collect();
        let settled =
            |bytes: &Vec<u8>| File { bytes: bytes.clone(), entry: Entry::Settled, ..File::default() };
        let files: BTreeMap<_, _> = (0..).map(FileId).zip(base.files.values().map(settled)).collect();
        let files_made = files.len();
        let faults = Faults::default();
        Self { base, directory, files, operations: Vec::new(), files_made, handles_made: 0, faults }
    }

    pub(crate) fn operations(&self) -> usize {
        self.operations.len()
    }

    pub(crate) fn log(&self) -> OperationLog {
        OperationLog { base: Arc::clone(&self.base), operations: self.operations.clone() }
    }

    /// Opens the named file.
    pub(crate) fn open(&mut self, name: &str, mode: OpenMode) -> Result<(FileId, HandleId), Failure> {
        let file = match (self.directory.get(name), mode) {
            (Some(file), OpenMode::Existing | OpenMode::ExistingOrNew) => *file,
            (None, OpenMode::New | OpenMode::ExistingOrNew) => {
                let file = self.make_file(Entry::New);
                self.directory.insert(name.to_owned(), file);
                self.operations.push(Operation::Create { file, name: name.into() });
                file
            }
            (Some(_), OpenMode::New) | (None, OpenMode::Existing) => return Err(Failure::CannotOpen),
        };
        Ok((file, self.make_handle(file)))
    }

    /// Opens a file without a name.
    pub(crate) fn open_temporary(&mut self) -> (FileId, HandleId) {
        let file = self.make_file(Entry::Temporary);
        (file, self.make_handle(file))
    }

    /// Closes the handle; a file without a name goes with its last handle.
    pub(crate) fn close(&mut self, file: FileId, handle: HandleId) {
        let closing = self.file(file);
        closing.locks.release(handle);
        closing.shared_memory.unmap(handle);
        closing.handles.remove(&handle);
        closing.untold.remove(&handle);
        self.forget_if_unreachable(file);
    }

    /// Copies bytes into a zeroed buffer; past the end of the file it stays zero.
    pub(crate) fn read(&mut self, file: FileId, offset: usize, buffer: &mut [u8]) -> Result<(), Failure> {
        let bytes = &self.file(file).bytes;
        let available = bytes.get(offset..).unwrap_or_default();
        let copied = available.len().min(buffer.len());
        buffer[..copied].copy_from_slice(&available[..copied]);
        if copied < buffer.len() { Err(Failure::ShortRead) } else { Ok(()) }
    }

    pub(crate) fn write(&mut self, file: FileId, offset: usize, bytes: &[u8]) -> Result<(), Failure> {
        if offset.saturating_add(bytes.len()) > MAX_FILE_BYTES {
            return Err(Failure::Full);
        }
        if self.is_recorded(file) {
            self.faults.before_write(self.operations.len())?;
            self.operations.push(Operation::Write { file, offset, bytes: bytes.into() });
        }
        write_at(&mut self.file(file).bytes, offset, bytes);
        Ok(())
    }

    pub(crate) fn truncate(&mut self, file: FileId, size: usize) -> Result<(), Failure> {
        if size > MAX_FILE_BYTES {
            return Err(Failure::Full);
        }
        if self.is_recorded(file) {
            self.operations.push(Operation::Truncate { file, size });
        }
        self.file(file).bytes.resize(size, 0);
        Ok(())
    }

    pub(crate) fn sync(&mut self, file: FileId, handle: HandleId) -> Result<(), Failure> {
        if !self.is_recorded(file) {
            return Ok(());
        }
        if self.file(file).untold.remove(&handle) {
            self.operations.push(Operation::FailedSync { file });
            return Err(Failure::SyncFailed);
        }
        if let Err(failure) = self.faults.before_sync(self.operations.len()) {
            self.operations.push(Operation::FailedSync { file });
            let failed = self.file(file);
            failed.untold.clone_from(&failed.handles);
            failed.untold.remove(&handle);
            return Err(failure);
        }
        self.operations.push(Operation::Sync { file });
        if self.file(file).entry == Entry::New {
            self.file(file).entry = Entry::Settled;
            self.sync_directory();
        }
        Ok(())
    }

    pub(crate) fn size(&mut self, file: FileId) -> usize {
        self.file(file).bytes.len()
    }

    /// Takes the name away; open handles keep the file.
    pub(crate) fn delete(&mut self, name: &str) -> Result<(), Failure> {
        let file = self.directory.remove(name).ok_or(Failure::NoSuchFile)?;
        self.operations.push(Operation::Delete { name: name.into() });
        self.forget_if_unreachable(file);
        Ok(())
    }

    pub(crate) fn sync_directory(&mut self) {
        self.operations.push(Operation::SyncDirectory);
    }

    /// The size of the named file, if there is one.
    pub(crate) fn size_of_named(&self, name: &str) -> Option<usize> {
        let file = self.directory.get(name)?;
        self.files.get(file).map(|file| file.bytes.len())
    }

    /// The file behind an open handle.
    pub(crate) fn file(&mut self, file: FileId) -> &mut File {
        self.files.get_mut(&file).expect("a file stays while a handle is open on it")
    }

    fn is_recorded(&mut self, file: FileId) -> bool {
        self.file(file).entry != Entry::Temporary
    }

    fn make_file(&mut self, entry: Entry) -> FileId {
        let file = FileId(self.files_made);
        self.files_made += 1;
        self.files.insert(file, File { entry, ..File::default() });
        file
    }

    fn make_handle(&mut self, file: FileId) -> HandleId {
        self.handles_made += 1;
        let handle = HandleId(self.handles_made);
        self.file(file).handles.insert(handle);
        handle
    }

    fn forget_if_unreachable(&mut self, file: FileId) {
        let named = self.directory.values().any(|named| *named == file);
        if !named && self.file(file).handles.is_empty() {
            self.files.remove(&file);
        }
    }
}
