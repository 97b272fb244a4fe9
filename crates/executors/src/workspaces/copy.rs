//! Copies what steps have left into the workspace of another.
//!
//! Bytes are copied, or shared by the file system where it can copy on write (`copy_file_range`); never by a hard link: whoever appends to a
//! copy must not change what was left. Sources were looked through when they were sealed, and are held to the same limits again.

use std::fs::{self, DirBuilder, File, FileTimes, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::{DIRECTORY_MODE, OpenWorkspace, WorkspaceError, remove};
use crate::workspaces::seal::{Budget, may_not_be};

/// What its owner may always do with a file.
const OWNERS: u32 = 0o600;
/// The bits that are copied: no set-user-ID.
const COPIED: u32 = 0o777;

impl OpenWorkspace {
    /// Puts copies of what other steps left into it, each where it belongs, in this order. For a thread that may wait.
    pub(crate) fn fill(&self, sources: &[(PathBuf, String)]) -> Result<(), WorkspaceError> {
        let mut budget = Budget::of(self.limits);
        for (source, under) in sources {
            let place = self.path.join(under);
            if !under.is_empty() {
                // Whatever a step has put there: the name is ours.
                remove::tree(&place)?;
                DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(&place)?;
            }
            match fs::symlink_metadata(source) {
                Ok(found) if found.is_dir() => tree(source, &place, &mut budget)?,
                Ok(_) => return Err(lost(source)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(lost(source)),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

fn lost(source: &Path) -> WorkspaceError {
    let name = source.file_name().unwrap_or_default().to_string_lossy();
    WorkspaceError::Lost(format!("what an earlier step of the run left, {name}, is not there any more"))
}

fn tree(source: &Path, place: &Path, budget: &mut Budget) -> Result<(), WorkspaceError> {
    let mut waiting = vec![(source.to_path_buf(), place.to_path_buf(), 1)];
    while let Some((from, to, depth)) = waiting.pop() {
        for entry in fs::read_dir(&from)? {
            let entry = entry?;
            let (from, to) = (entry.path(), to.join(entry.file_name()));
            let kind = entry.file_type()?;
            if kind.is_dir() {
                budget.directory(depth)?;
                DirBuilder::new().mode(DIRECTORY_MODE).create(&to)?;
                waiting.push((from, to, depth + 1));
            } else if kind.is_file() {
                file(&from, &to, budget)?;
            } else {
                return Err(may_not_be(from.strip_prefix(source).unwrap_or(&from), kind));
            }
        }
    }
    Ok(())
}

fn file(from: &Path, to: &Path, budget: &mut Budget) -> Result<(), WorkspaceError> {
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    let mut source = OpenOptions::new().read(true).custom_flags(flags).open(from)?;
    let found = source.metadata()?;
    budget.file(found.len())?;
    let mode = found.permissions().mode() & COPIED | OWNERS;
    let mut copy: File = OpenOptions::new().write(true).create_new(true).mode(mode).open(to)?;
    io::copy(&mut source, &mut copy)?;
    // Tools go by it.
    copy.set_times(FileTimes::new().set_modified(found.modified()?))?;
    Ok(())
}
