//! One open file as SQLite sees it: the methods that it calls on a `sqlite3_file`.
//!
//! Nothing is decided here: each method turns C values into a call of `Storage` and the outcome into a
//! result code. Memory-mapped reads are not offered.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Mutex};

use rusqlite::ffi;

use crate::locks::Level;
use crate::power_loss::SECTOR_BYTES;
use crate::shared_memory::{SlotLock, SlotMask};
use crate::storage::{FileId, HandleId, Storage, locked};
use crate::vfs::result_code;

/// What SQLite allocates for a file and passes to every method.
#[repr(C)]
pub(crate) struct OpenFile {
    base: ffi::sqlite3_file,
    handle: *mut Handle,
}

/// What an open file stands for. It keeps the storage alive.
pub(crate) struct Handle {
    pub(crate) storage: Arc<Mutex<Storage>>,
    pub(crate) file: FileId,
    pub(crate) id: HandleId,
}

impl OpenFile {
    pub(crate) fn unopened() -> Self {
        let base = ffi::sqlite3_file { pMethods: std::ptr::null() };
        Self { base, handle: std::ptr::null_mut() }
    }

    pub(crate) fn opened(handle: Handle) -> Self {
        let base = ffi::sqlite3_file { pMethods: &raw const METHODS };
        Self { base, handle: Box::into_raw(Box::new(handle)) }
    }
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

/// The handle of a file that SQLite opened and has not closed.
///
/// # Safety
/// The file must be one that `vfs::open` opened, and must stay open while the answer is used.
unsafe fn handle_of<'a>(file: *mut ffi::sqlite3_file) -> &'a Handle {
    // SAFETY: `vfs::open` wrote an `OpenFile` there whose handle lives until `close`.
    unsafe { &*(*file.cast::<OpenFile>()).handle }
}

fn unsigned(number: impl TryInto<usize>) -> usize {
    number.try_into().ok().expect("SQLite passes no negative size or offset")
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: SQLite closes a file once, so the box is whole and nobody uses it afterwards.
    let handle = unsafe { Box::from_raw((*file.cast::<OpenFile>()).handle) };
    locked(&handle.storage).close(handle.file, handle.id);
    ffi::SQLITE_OK
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    buffer: *mut c_void,
    amount: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite calls with an open file.
    let handle = unsafe { handle_of(file) };
    let (buffer, amount) = (buffer.cast::<u8>(), unsigned(amount));
    // SAFETY: SQLite gives a buffer of that size; zeroed first, as it may hold nothing yet.
    let buffer = unsafe {
        buffer.write_bytes(0, amount);
        std::slice::from_raw_parts_mut(buffer, amount)
    };
    result_code(locked(&handle.storage).read(handle.file, unsigned(offset), buffer))
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    bytes: *const c_void,
    amount: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite calls with an open file.
    let handle = unsafe { handle_of(file) };
    // SAFETY: SQLite gives that many bytes to write.
    let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), unsigned(amount)) };
    result_code(locked(&handle.storage).write(handle.file, unsigned(offset), bytes))
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: ffi::sqlite3_int64) -> c_int {
    // SAFETY: SQLite calls with an open file.
    let handle = unsafe { handle_of(file) };
    result_code(locked(&handle.storage).truncate(handle.file, unsigned(size)))
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, _flags: c_int) -> c_int {
    // SAFETY: SQLite calls with an open file.
    let handle = unsafe { handle_of(file) };
    result_code(locked(&handle.storage).sync(handle.file, handle.id))
}

unsafe extern "C" fn file_size(file: *mut ffi::sqlite3_file, size: *mut ffi::sqlite3_int64) -> c_int {
    // SAFETY: SQLite calls with an open file.
    let handle = unsafe { handle_of(file) };
    let bytes = locked(&handle.storage).size(handle.file);
    // SAFETY: SQLite gives a place for the answer.
    unsafe { size.write(i64::try_from(bytes).expect("files have a limit")) };
    ffi::SQLITE_OK
}

fn level(level: c_int) -> Level {
    match level {
        ffi::SQLITE_LOCK_NONE => Level::Unlocked,
        ffi::SQLITE_LOCK_SHARED => Level::Shared,
        ffi::SQLITE_LOCK_RESERVED => Level::Reserved,
        ffi::SQLITE_LOCK_PENDING => Level::Pending,
        _ => Level::Exclusive,
    }
}

unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, wanted: c_int) -> c_int {
    // SAFETY: SQLite calls with an open file.
    let handle = unsafe { handle_of(file) };
    result_code(locked(&handle.storage).file(handle.file).locks.raise(handle.id, level(wanted)))
}

unsafe extern "C" fn unlock(file: *mut ffi::sqlite3_file, wanted: c_int) -> c_int {
    // SAFETY: SQLite calls with an open file.
    let handle = unsafe { handle_of(file) };
    locked(&handle.storage).file(handle.file).locks.lower(handle.id, level(wanted));
    ffi::SQLITE_OK
}

unsafe extern "C" fn check_reserved_lock(file: *mut ffi::sqlite3_file, answer: *mut c_int) -> c_int {
    // SAFETY: SQLite calls with an open file.
    let handle = unsafe { handle_of(file) };
    let reserved = locked(&handle.storage).file(handle.file).locks.is_reserved();
    // SAFETY: SQLite gives a place for the answer.
    unsafe { answer.write(c_int::from(reserved)) };
    ffi::SQLITE_OK
}

unsafe extern "C" fn file_control(
    _file: *mut ffi::sqlite3_file,
    _op: c_int,
    _argument: *mut c_void,
) -> c_int {
    ffi::SQLITE_NOTFOUND
}

unsafe extern "C" fn sector_size(_file: *mut ffi::sqlite3_file) -> c_int {
    c_int::try_from(SECTOR_BYTES).expect("a sector is small")
}

/// Nothing is promised: no atomic write, no append order, no safe overwrite of a sector's neighbours.
unsafe extern "C" fn device_characteristics(_file: *mut ffi::sqlite3_file) -> c_int {
    0
}

unsafe extern "C" fn shm_map(
    file: *mut ffi::sqlite3_file,
    region: c_int,
    region_bytes: c_int,
    extend: c_int,
    address: *mut *mut c_void,
) -> c_int {
    // SAFETY: SQLite calls with an open file.
    let handle = unsafe { handle_of(file) };
    let mut storage = locked(&handle.storage);
    let memory = &mut storage.file(handle.file).shared_memory;
    let mapped = if extend == 0 {
        memory.map_existing(handle.id, unsigned(region)).unwrap_or(std::ptr::null_mut())
    } else {
        memory.map_extended(handle.id, unsigned(region), unsigned(region_bytes))
    };
    // SAFETY: SQLite gives a place for the address.
    unsafe { address.write(mapped) };
    ffi::SQLITE_OK
}

unsafe extern "C" fn shm_lock(
    file: *mut ffi::sqlite3_file,
    first: c_int,
    count: c_int,
    flags: c_int,
) -> c_int {
    // SAFETY: SQLite calls with an open file.
    let handle = unsafe { handle_of(file) };
    let mut storage = locked(&handle.storage);
    let memory = &mut storage.file(handle.file).shared_memory;
    let mask = SlotMask((first..first + count).fold(0, |mask, slot| mask | 1 << slot));
    result_code(if flags & ffi::SQLITE_SHM_UNLOCK != 0 {
        memory.unlock(handle.id, mask)
    } else if flags & ffi::SQLITE_SHM_EXCLUSIVE != 0 {
        memory.lock(handle.id, mask, SlotLock::Exclusive)
    } else {
        memory.lock(handle.id, mask, SlotLock::Shared)
    })
}

unsafe extern "C" fn shm_barrier(_file: *mut ffi::sqlite3_file) {
    fence(Ordering::SeqCst);
}

unsafe extern "C" fn shm_unmap(file: *mut ffi::sqlite3_file, _delete: c_int) -> c_int {
    // SAFETY: SQLite calls with an open file.
    let handle = unsafe { handle_of(file) };
    locked(&handle.storage).file(handle.file).shared_memory.unmap(handle.id);
    ffi::SQLITE_OK
}
