//! What an attempt left becomes what later steps begin with: looked through, on stable storage, and renamed.
//!
//! Only directories and plain files with one name may be in it: nothing that leads out of it, and nothing that somebody else writes to.
//! The rename is the last thing, so that a tree under its final name is whole.

use std::fs::{self, DirBuilder, File, FileType, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use domain::limit::{LimitValue, NamedLimit};

use super::{DIRECTORY_MODE, OpenWorkspace, TreeLimits, WorkspaceError, remove};

/// What its owner may do with a file, so that it can be copied.
const OWNERS: u32 = 0o600;
/// The run's directory, the two shards, and the one of all.
const DIRECTORIES_ABOVE: usize = 4;

/// A tree that was looked through.
pub(crate) struct Tree {
    directories: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

/// What is left of the limits.
pub(super) struct Budget {
    limits: TreeLimits,
    bytes: u64,
    entries: usize,
}

impl Tree {
    /// Whether there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.directories.len() == 1
    }

    /// Its files.
    pub(crate) fn files(&self) -> &[PathBuf] {
        &self.files
    }
}

impl OpenWorkspace {
    /// Looks through all that is in it: what may not be there is told, with its path. For a thread that may wait.
    pub(crate) fn look_through(&self) -> Result<Tree, WorkspaceError> {
        look_through(&self.path, self.limits)
    }

    /// Makes what was looked through what the attempt left, under this path, for good. For a thread that may wait.
    pub(crate) fn seal(self, tree: &Tree, place: &Path) -> Result<(), WorkspaceError> {
        for path in tree.files.iter().chain(&tree.directories) {
            File::open(path)?.sync_all()?;
        }
        if let Some(run) = place.parent() {
            DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(run)?;
        }
        // The same attempt may have come so far before.
        remove::tree(place)?;
        fs::rename(&self.path, place)?;
        for directory in place.ancestors().skip(1).take(DIRECTORIES_ABOVE) {
            File::open(directory)?.sync_all()?;
        }
        Ok(())
    }
}

/// Looks through a tree. What an attempt took the permission to read from is given it back.
fn look_through(top: &Path, limits: TreeLimits) -> Result<Tree, WorkspaceError> {
    let mut budget = Budget::of(limits);
    let mut tree = Tree { directories: Vec::new(), files: Vec::new() };
    match fs::symlink_metadata(top) {
        Ok(found) if found.is_dir() => {}
        Ok(found) => return Err(may_not_be(Path::new(""), found.file_type())),
        // Whoever has removed it all has left nothing.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            DirBuilder::new().mode(DIRECTORY_MODE).create(top)?;
        }
        Err(error) => return Err(error.into()),
    }
    let mut waiting = vec![(top.to_path_buf(), 0)];
    while let Some((directory, depth)) = waiting.pop() {
        fs::set_permissions(&directory, Permissions::from_mode(DIRECTORY_MODE))?;
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let path = entry.path();
            // Where the workspace is says nothing to whoever reads of it.
            let below = || path.strip_prefix(top).unwrap_or(&path);
            let found = entry.metadata()?;
            let kind = found.file_type();
            if kind.is_dir() {
                budget.directory(depth + 1)?;
                waiting.push((path, depth + 1));
            } else if kind.is_file() {
                if found.nlink() > 1 {
                    return Err(refused(
                        below(),
                        "has another name elsewhere; put a copy there, not a hard link",
                    ));
                }
                budget.file(found.len())?;
                let mode = found.permissions().mode();
                if mode & OWNERS != OWNERS {
                    fs::set_permissions(&path, Permissions::from_mode(mode & 0o777 | OWNERS))?;
                }
                tree.files.push(path);
            } else {
                return Err(may_not_be(below(), kind));
            }
        }
        tree.directories.push(directory);
    }
    Ok(tree)
}

/// What is there, below the top, is none of what may be.
pub(super) fn may_not_be(below: &Path, kind: FileType) -> WorkspaceError {
    let what = if kind.is_symlink() {
        "is a symbolic link"
    } else if kind.is_fifo() {
        "is a FIFO"
    } else if kind.is_socket() {
        "is a socket"
    } else if kind.is_block_device() || kind.is_char_device() {
        "is a device"
    } else {
        "is no directory"
    };
    refused(below, &format!("{what}; only plain files and directories are kept, remove it at the end"))
}

fn refused(below: &Path, why: &str) -> WorkspaceError {
    let top = Path::new("the directory itself");
    let shown = if below.as_os_str().is_empty() { top } else { below };
    WorkspaceError::Refused(format!("{} {why}", shown.display()))
}

impl Budget {
    pub(super) fn of(limits: TreeLimits) -> Self {
        Self { limits, bytes: 0, entries: 0 }
    }

    pub(super) fn directory(&mut self, depth: usize) -> Result<(), WorkspaceError> {
        let most = self.limits.depth;
        if depth > most {
            let told = format!("it has more than {most} directories within each other");
            let limit = NamedLimit::fixed("directories within each other", count(most));
            return Err(too_large(told, limit));
        }
        self.entry()
    }

    pub(super) fn file(&mut self, bytes: u64) -> Result<(), WorkspaceError> {
        self.bytes = self.bytes.saturating_add(bytes);
        let most = self.limits.bytes;
        if self.bytes > most {
            let told =
                format!("it has more than {most} bytes; workspaces.max_bytes of the config says how many");
            let limit = NamedLimit::of_host("workspaces.max_bytes", LimitValue::Bytes(most));
            return Err(too_large(told, limit));
        }
        self.entry()
    }

    fn entry(&mut self) -> Result<(), WorkspaceError> {
        self.entries += 1;
        let most = self.limits.entries;
        if self.entries > most {
            let told = format!(
                "it has more than {most} files and directories; workspaces.max_files of the config says how many"
            );
            return Err(too_large(told, NamedLimit::of_host("workspaces.max_files", count(most))));
        }
        Ok(())
    }
}

fn count(most: usize) -> LimitValue {
    LimitValue::Count(u64::try_from(most).unwrap_or(u64::MAX))
}

fn too_large(told: String, limit: NamedLimit) -> WorkspaceError {
    WorkspaceError::TooLarge { told, limit: Box::new(limit) }
}
