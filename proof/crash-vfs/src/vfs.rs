//! The disk as SQLite sees it: a registered `sqlite3_vfs` that opens, finds and deletes files.
//!
//! Clock, sleep, randomness and extension loading are those of the platform's VFS. Paths are plain names in
//! one flat directory.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use rusqlite::ffi;

use crate::fault::Failure;
use crate::open_file::{Handle, OpenFile};
use crate::storage::{OpenMode, Storage, locked};

/// The longest file name, with the zero that ends it.
const MAX_NAME_BYTES: c_int = 512;

static REGISTERED: AtomicU64 = AtomicU64::new(0);

/// A name under which SQLite finds the storage; dropping it takes the name back.
pub(crate) struct Registration {
    name: String,
}

impl Registration {
    pub(crate) fn new(storage: &Arc<Mutex<Storage>>) -> Self {
        let name = format!("crash-vfs-{}", REGISTERED.fetch_add(1, Ordering::Relaxed));
        let c_name = CString::new(name.as_str()).expect("the name has no zero byte");
        // SAFETY: a null name asks for the default VFS.
        let platform = unsafe { ffi::sqlite3_vfs_find(std::ptr::null()) };
        assert!(!platform.is_null(), "SQLite has no default VFS to take the clock from");
        // SAFETY: the pointer is not null, and SQLite's built-in VFS is never freed. The functions taken
        // over from it ignore which VFS they are called with.
        let platform = unsafe { *platform };

        // Leaked, all three: a connection may outlive the registration and holds the struct by pointer. The
        // storage behind it is not: the weak reference lets it go with its last holder.
        let vfs = Box::leak(Box::new(ffi::sqlite3_vfs {
            iVersion: 2,
            szOsFile: c_int::try_from(size_of::<OpenFile>()).expect("an open file is a few words"),
            mxPathname: MAX_NAME_BYTES,
            pNext: std::ptr::null_mut(),
            zName: c_name.into_raw(),
            pAppData: Box::into_raw(Box::new(Arc::downgrade(storage))).cast::<c_void>(),
            xOpen: Some(open),
            xDelete: Some(delete),
            xAccess: Some(access),
            xFullPathname: Some(full_pathname),
            ..platform
        }));
        // SAFETY: the struct is complete and lives for ever.
        let outcome = unsafe { ffi::sqlite3_vfs_register(vfs, 0) };
        assert_eq!(outcome, ffi::SQLITE_OK, "SQLite refused to register {name}");
        Self { name }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let c_name = CString::new(self.name.as_str()).expect("the name has no zero byte");
        // SAFETY: the name is a C string for the length of the call.
        let vfs = unsafe { ffi::sqlite3_vfs_find(c_name.as_ptr()) };
        // SAFETY: names are unique, so this is the struct that `new` registered; null is allowed.
        unsafe { ffi::sqlite3_vfs_unregister(vfs) };
    }
}

/// The result code that tells SQLite about the failure.
pub(crate) fn result_code<T>(outcome: Result<T, Failure>) -> c_int {
    match outcome {
        Ok(_) => ffi::SQLITE_OK,
        Err(Failure::CannotOpen) => ffi::SQLITE_CANTOPEN,
        Err(Failure::NoSuchFile) => ffi::SQLITE_IOERR_DELETE_NOENT,
        Err(Failure::Busy) => ffi::SQLITE_BUSY,
        Err(Failure::NotMapped) => ffi::SQLITE_IOERR_SHMLOCK,
        Err(Failure::ShortRead) => ffi::SQLITE_IOERR_SHORT_READ,
        Err(Failure::SyncFailed) => ffi::SQLITE_IOERR_FSYNC,
        Err(Failure::Full) => ffi::SQLITE_FULL,
        Err(Failure::WriteFailed) => ffi::SQLITE_IOERR_WRITE,
    }
}

unsafe extern "C" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    let file = file.cast::<OpenFile>();
    // SAFETY: SQLite gives szOsFile bytes for the file. Without methods it is not closed if this fails.
    unsafe { file.write(OpenFile::unopened()) };
    // SAFETY: SQLite calls with the VFS it looked up.
    let Some(storage) = (unsafe { storage_of(vfs) }) else { return ffi::SQLITE_CANTOPEN };

    let opened = if name.is_null() {
        Ok(locked(&storage).open_temporary())
    } else {
        // SAFETY: a name that is not null is a C string.
        let name = unsafe { text(name) };
        name.and_then(|name| locked(&storage).open(name, open_mode(flags)))
    };
    match opened {
        Ok((opened, handle)) => {
            let handle = Handle { storage, file: opened, id: handle };
            // SAFETY: as above; from here on SQLite closes the file, which frees the handle.
            unsafe { file.write(OpenFile::opened(handle)) };
            if !flags_out.is_null() {
                // SAFETY: the pointer is not null and SQLite's to be written.
                unsafe { flags_out.write(flags) };
            }
            ffi::SQLITE_OK
        }
        Err(failure) => result_code::<()>(Err(failure)),
    }
}

fn open_mode(flags: c_int) -> OpenMode {
    if flags & ffi::SQLITE_OPEN_CREATE == 0 {
        OpenMode::Existing
    } else if flags & ffi::SQLITE_OPEN_EXCLUSIVE == 0 {
        OpenMode::ExistingOrNew
    } else {
        OpenMode::New
    }
}

unsafe extern "C" fn delete(vfs: *mut ffi::sqlite3_vfs, name: *const c_char, sync_directory: c_int) -> c_int {
    // SAFETY: SQLite calls with the VFS it looked up.
    let Some(storage) = (unsafe { storage_of(vfs) }) else { return ffi::SQLITE_IOERR_DELETE };
    // SAFETY: the name is a C string.
    let name = unsafe { text(name) };
    result_code(name.and_then(|name| {
        let mut storage = locked(&storage);
        storage.delete(name)?;
        if sync_directory != 0 {
            storage.sync_directory();
        }
        Ok(())
    }))
}

unsafe extern "C" fn access(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    question: c_int,
    answer: *mut c_int,
) -> c_int {
    // SAFETY: SQLite calls with the VFS it looked up.
    let Some(storage) = (unsafe { storage_of(vfs) }) else { return ffi::SQLITE_IOERR_ACCESS };
    // SAFETY: the name is a C string.
    let name = unsafe { text(name) };
    let size = name.ok().and_then(|name| locked(&storage).size_of_named(name));
    // As the platform's VFS: an empty file is no journal and no WAL, so it does not count as existing.
    let yes = size.is_some_and(|bytes| bytes > 0 || question != ffi::SQLITE_ACCESS_EXISTS);
    // SAFETY: SQLite gives a place for the answer.
    unsafe { answer.write(c_int::from(yes)) };
    ffi::SQLITE_OK
}

unsafe extern "C" fn full_pathname(
    _vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    out_bytes: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: the name is a C string.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes_with_nul();
    if usize::try_from(out_bytes).is_ok_and(|room| name.len() <= room) {
        // SAFETY: there is room for the name, and SQLite's buffers do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(name.as_ptr(), out.cast(), name.len()) };
        return ffi::SQLITE_OK;
    }
    ffi::SQLITE_CANTOPEN
}

/// The storage behind the VFS, unless its disk and all its files are gone.
///
/// # Safety
/// The VFS must be one that `Registration::new` made.
unsafe fn storage_of(vfs: *mut ffi::sqlite3_vfs) -> Option<Arc<Mutex<Storage>>> {
    // SAFETY: `new` put a weak reference there that is never freed.
    let storage = unsafe { &*(*vfs).pAppData.cast::<Weak<Mutex<Storage>>>() };
    storage.upgrade()
}

/// The name as text.
///
/// # Safety
/// The name must be a C string that lives as long as the answer is used.
unsafe fn text<'a>(name: *const c_char) -> Result<&'a str, Failure> {
    // SAFETY: promised by the caller.
    unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| Failure::CannotOpen)
}
