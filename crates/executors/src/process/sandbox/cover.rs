//! The data directory covered by an empty, read-only file system that only this supervisor and its commands see. A file elsewhere that belongs
//! to it is covered by an empty file of that file system.
//!
//! What a command owns in there, such as its workspace, is bound to its place on the cover while the command runs. The rest of the file
//! tree is the system's own, with everything that is created in it later.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, unshare};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive, mount_change,
    mount_remount, unmount,
};
use rustix::process::{getegid, geteuid};

use super::protected_paths::may_be_missing;
use super::unavailable;

/// Room for the places of what is bound.
const OPTIONS: &std::ffi::CStr = c"mode=0555,size=64k,nr_inodes=1024";
/// Anyone may go through, so that a command of another user reaches what it owns.
const DIRECTORY_MODE: u32 = 0o755;

/// The empty file, on the first cover. It stays there: a file system with a removed file in use cannot be made read-only.
const EMPTY_FILE: &str = ".covered";

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
    /// Covers these directories and files for this process and what it starts, and for nobody else. There must be a directory.
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
        pin_directories_above(paths)?;
        let (mut covered, mut files) = (Vec::new(), Vec::new());
        for path in paths {
            let in_the_way = |error| unavailable(&format!("{} cannot be covered", path.display()), error);
            let opened = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let beneath = match rustix::fs::open(path, opened, Mode::empty()) {
                Ok(beneath) => beneath,
                Err(Errno::NOENT) if may_be_missing(path, paths) => continue,
                Err(error) => return Err(in_the_way(error)),
            };
            match FileType::from_raw_mode(rustix::fs::fstat(&beneath)?.st_mode) {
                FileType::Directory => {
                    mount("longhaul", path, "tmpfs", flags(), OPTIONS).map_err(in_the_way)?;
                    covered.push(CoveredDirectory { path: path.clone(), beneath });
                }
                FileType::RegularFile => files.push(path),
                FileType::Symlink
                | FileType::Fifo
                | FileType::Socket
                | FileType::CharacterDevice
                | FileType::BlockDevice
                | FileType::Unknown => return Err(in_the_way(Errno::NOTDIR)),
            }
        }
        let cover = Self { covered };
        cover.cover_files(&files)?;
        cover.make_read_only()?;
        // The working directory was opened before these mounts, and from there a path would lead around them: it is opened again.
        let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        std::env::set_current_dir(&here).or_else(|_| std::env::set_current_dir("/"))?;
        Ok(cover)
    }

    /// A file that the daemon replaces or removes loses its cover: only those that stay as they are belong here.
    fn cover_files(&self, files: &[&PathBuf]) -> io::Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        let Some(top) = self.covered.first() else {
            return Err(unavailable("files cannot be covered", "no directory is"));
        };
        let empty = top.path.join(EMPTY_FILE);
        OpenOptions::new().write(true).create_new(true).mode(0o0).open(&empty)?;
        files.iter().try_for_each(|file| {
            let bound = mount_bind(&empty, *file);
            bound.map_err(|error| unavailable(&format!("{} cannot be covered", file.display()), error))
        })
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

/// Makes every directory on the way to these paths a mount point, which cannot be renamed or removed: else a command could put a data
/// directory of its own in the place of the daemon's, for its next start.
fn pin_directories_above(paths: &[PathBuf]) -> io::Result<()> {
    let above = paths.iter().flat_map(|path| path.ancestors().skip(1));
    // The root cannot be renamed. From the top down: what is bound last is what is seen.
    let above: BTreeSet<&Path> = above.filter(|path| path.parent().is_some()).collect();
    above.into_iter().try_for_each(|directory| {
        let pinned = mount_bind_recursive(directory, directory);
        pinned.map_err(|error| unavailable(&format!("{} cannot be pinned", directory.display()), error))
    })
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
