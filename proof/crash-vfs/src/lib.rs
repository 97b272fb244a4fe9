//! An in-memory disk for SQLite that remembers every storage operation, so that a test can build what a
//! real disk could hold after a process kill or a power loss at any point.
//!
//! [`Disk`] is what SQLite writes to, [`OperationLog`] is what it did, [`Image`] is what a crash left.
//! Open a database on `disk.vfs_name()`, note `disk.operations()` at each acknowledgement, then ask
//! `disk.log()` for images and open each one with [`Disk::from_image`].
//!
//! Only for tests. It does not model a disk that lies about a sync, bit rot, or a write that damages its
//! neighbours in the same sector.
//!
//! The map: `storage` is the disk behind one mutex; `log` and `power_loss` build images from what it
//! recorded; `locks` and `shared_memory` let several connections share a file; `vfs` and `open_file` are
//! all that speaks SQLite's C interface.

mod disk;
mod fault;
mod image;
mod locks;
mod log;
mod open_file;
mod power_loss;
mod shared_memory;
mod storage;
mod vfs;

pub use disk::Disk;
pub use fault::Fault;
pub use image::Image;
pub use log::OperationLog;
