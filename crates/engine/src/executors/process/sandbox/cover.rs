//! The data directory covered by an empty, read-only file system that only this supervisor and its commands see.
//!
//! What a command owns in there, such as its workspace, is bound to its place on the cover while the command runs. The rest of the file
//! tree is the system's own, with everything that is created in it later.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, unshare};
use rustix::fs::{Mode, OFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, mount_remount, unmount,
};
use rustix::process::{getegid, geteuid};

use super::unavailable;

/// Room for the places of what is bound.
const OPTIONS: &std::ffi::CStr = c"mode=0555,size=64k,nr_inodes=1024";
/// Anyone may go through, so that a command of another user reaches what it owns.
const DIRECTORY_MODE: u32 = 0o755;

/// Which namespaces are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Namespace {
    /// Who may mount needs no other user namespace.
    Mount,
    /// Who may not mount may in a user namespace of its own.
    UserAndMount,
}

/// Directories that are covered.
pub(super) struct Cover {
    covered: Vec<CoveredDirectory>,
}

struct CoveredDirectory {
    path: PathBuf,
    /// What is under the cover. Closes on exec.
    beneath: OwnedFd,
}

/// What a command owns, within its reach until this is dropped.
pub(in super::super) struct ExposedPaths<'a> {
    cover: &'a Cover,
    /// What is bound.
    bound: Vec<PathBuf>,
    /// What was made on the cover for it, in this order.
    made: Vec<PathBuf>,
}

impl Cover {
    /// Covers these directories for this process and what it starts, and for nobody else.
    pub(super) fn over(paths: &[PathBuf], namespace: Namespace) -> io::Result<Self> {
        match namespace {
            Namespace::Mount => {
                unshare(CloneFlags::CLONE_NEWNS).map_err(|error| unavailable("no mount namespace", error))?;
            }
            Namespace::UserAndMount => enter_user_namespace()?,
        }
        // Nothing that is mounted here is seen outside; what is mounted outside is still seen here.
        mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)
            .map_err(|error| unavailable("mounts cannot be kept from others", error))?;
        let mut covered = Vec::new();
        for path in paths {
            let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let beneath = rustix::fs::open(path, directory, Mode::empty())?;
            mount("longhaul", path, "tmpfs", flags(), OPTIONS)
                .map_err(|error| unavailable("the data directory cannot be covered", error))?;
            covered.push(CoveredDirectory { path: path.clone(), beneath });
        }
        let cover = Self { covered };
        cover.make_read_only()?;
        Ok(cover)
    }

    /// Puts what a command owns back to its place.
    pub(super) fn expose(&self, own: &[PathBuf]) -> io::Result<ExposedPaths<'_>> {
        let mut exposed = ExposedPaths { cover: self, bound: Vec::new(), made: Vec::new() };
        if !own.is_empty() {
            self.make_writable()?;
            for path in own {
                exposed.bind(path)?;
            }
            self.make_read_only()?;
        }
        Ok(exposed)
    }

    fn make_writable(&self) -> io::Result<()> {
        self.covered.iter().try_for_each(|covered| Ok(mount_remount(&covered.path, flags(), c"")?))
    }

    fn make_read_only(&self) -> io::Result<()> {
        let flags = flags() | MountFlags::RDONLY;
        self.covered.iter().try_for_each(|covered| Ok(mount_remount(&covered.path, flags, c"")?))
    }
}

impl ExposedPaths<'_> {
    fn bind(&mut self, path: &Path) -> io::Result<()> {
        let covered = self.cover.covered.iter().find(|covered| path.starts_with(&covered.path));
        let Some(CoveredDirectory { path: top, beneath }) = covered else { return Ok(()) };
        let below = path.strip_prefix(top).unwrap_or(path);
        let source = PathBuf::from(format!("/proc/self/fd/{}", beneath.as_raw_fd())).join(below);
        let is_directory = fs::metadata(&source)?.is_dir();
        let mut at = top.clone();
        for part in below.parent().into_iter().flat_map(Path::components) {
            at.push(part);
            self.make_directory(&at)?;
        }
        if is_directory {
            self.make_directory(path)?;
        } else {
            OpenOptions::new().write(true).create_new(true).mode(0o444).open(path)?;
            self.made.push(path.to_owned());
        }
        mount_bind(&source, path)?;
        self.bound.push(path.to_owned());
        Ok(())
    }

    fn make_directory(&mut self, path: &Path) -> io::Result<()> {
        match DirBuilder::new().mode(DIRECTORY_MODE).create(path) {
            Ok(()) => self.made.push(path.to_owned()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            Err(error) => return Err(error),
        }
        // Whatever the umask is.
        File::open(path)?.set_permissions(fs::Permissions::from_mode(DIRECTORY_MODE))
    }
}

impl Drop for ExposedPaths<'_> {
    /// Everyone who could see it is gone by now. What cannot be undone is seen by no other command than those of this supervisor, and stays
    /// on a cover that ends with it.
    fn drop(&mut self) {
        if self.made.is_empty() {
            return;
        }
        let _ = self.cover.make_writable();
        for path in self.bound.iter().rev() {
            let _ = unmount(path, UnmountFlags::DETACH);
        }
        for path in self.made.iter().rev() {
            let _ = fs::remove_dir(path).or_else(|_| fs::remove_file(path));
        }
        let _ = self.cover.make_read_only();
    }
}

fn flags() -> MountFlags {
    MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC
}

/// As the user that we are: nobody else is there. Its commands have none of the privileges, which end with their exec.
fn enter_user_namespace() -> io::Result<()> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)
        .map_err(|error| unavailable("no user namespace", error))?;
    for (file, text) in [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("{user} {user} 1")),
        ("/proc/self/gid_map", format!("{group} {group} 1")),
    ] {
        fs::write(file, text).map_err(|error| unavailable(file, error))?;
    }
    Ok(())
}
