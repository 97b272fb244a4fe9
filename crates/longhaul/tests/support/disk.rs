//! A small disk of its own for a test: real, in memory, and gone with its guard.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

pub struct Disk {
    mount: TempDir,
}

impl Disk {
    /// One of this size, as `mount` writes it: `40m`.
    pub fn mount(size: &str) -> Self {
        let disk = Self { mount: TempDir::new().expect("there is room") };
        let options = format!("size={size}");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(disk.path()).status();
        assert!(
            mounted.is_ok_and(|mounted| mounted.success()),
            "mounting a small disk needs root: run this as root"
        );
        disk
    }

    pub fn path(&self) -> &Path {
        self.mount.path()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).status();
    }
}
