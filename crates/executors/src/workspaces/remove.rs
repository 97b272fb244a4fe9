//! Removes a tree, also one whose directories deny it to their owner.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::DIRECTORY_MODE;
use crate::mount_points;

/// Removes whatever is there; nothing is fine too. No link is followed, and a tree with a mount in it is left as it is.
pub(super) fn tree(path: &Path) -> io::Result<()> {
    let removed = at_once(path);
    match removed {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(path)?;
            at_once(path)
        }
        other => other,
    }
}

fn at_once(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => {
            mount_points::check_none_in(path).and_then(|()| fs::remove_dir_all(path))
        }
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn open_up(top: &Path) -> io::Result<()> {
    let mut waiting = vec![top.to_path_buf()];
    while let Some(path) = waiting.pop() {
        if !fs::symlink_metadata(&path)?.is_dir() {
            continue;
        }
        fs::set_permissions(&path, Permissions::from_mode(DIRECTORY_MODE))?;
        for entry in fs::read_dir(&path)? {
            waiting.push(entry?.path());
        }
    }
    Ok(())
}
