//! The disk as a test holds it: a name to open databases on, the operations so far, faults to switch on.
//!
//! The name is registered for as long as a `Disk` lives; a connection may outlive it and keeps working.
//! Nothing here is the default for connections that name no VFS.

use std::sync::{Arc, Mutex};

use crate::fault::Fault;
use crate::image::Image;
use crate::log::OperationLog;
use crate::storage::{Storage, locked};
use crate::vfs::Registration;

/// One in-memory disk, registered with SQLite as a VFS under a unique name. Clones share the disk.
#[derive(Clone)]
pub struct Disk {
    storage: Arc<Mutex<Storage>>,
    registration: Arc<Registration>,
}

impl Disk {
    /// An empty disk.
    pub fn new() -> Self {
        Self::from_image(&Image::default())
    }

    /// A new disk whose files hold the image, all of it durable; its log starts empty.
    pub fn from_image(image: &Image) -> Self {
        let storage = Arc::new(Mutex::new(Storage::new(image)));
        let registration = Arc::new(Registration::new(&storage));
        Self { storage, registration }
    }

    /// The name to give to `Connection::open_with_flags_and_vfs`.
    pub fn vfs_name(&self) -> &str {
        self.registration.name()
    }

    /// How many operations the disk has recorded: the moment to note when a write is acknowledged.
    pub fn operations(&self) -> usize {
        locked(&self.storage).operations()
    }

    /// Everything recorded so far.
    pub fn log(&self) -> OperationLog {
        locked(&self.storage).log()
    }

    /// Arms the fault for the first fitting operation whose index is `operations` or more.
    /// One fault is armed at a time: a second call replaces the first.
    pub fn fail_after(&self, operations: usize, fault: Fault) {
        locked(&self.storage).faults.arm(operations, fault);
    }

    /// Disarms the fault: space returns, and a fault that has not fired never will.
    pub fn heal(&self) {
        locked(&self.storage).faults.disarm();
    }

    /// How many operations have failed by a fault since the disk was made.
    pub fn faults_fired(&self) -> usize {
        locked(&self.storage).faults.fired()
    }
}

impl Default for Disk {
    fn default() -> Self {
        Self::new()
    }
}
