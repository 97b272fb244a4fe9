//! A backup is no file of the store that it is made of: written over that, there would be neither.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use store_sql::BackupError;

/// The store, its log, its lock, and what a restore of it leaves.
const STORE: &str = "longhaul.sqlite";
/// What else a daemon and the demo keep in the data directory.
const BESIDE: [&str; 10] = [
    "admin.token",
    "artifacts",
    "callback.key",
    "daemon.json",
    "demo.address",
    "node.id",
    "node.lock",
    "slow-service.address",
    "slow-service.state",
    "workspaces",
];

/// Refuses a name that is the store's, and a file that is the store's under another name.
pub fn check(file: &Path, data_dir: &Path) -> Result<(), BackupError> {
    // What is not there has no files.
    let Ok(data_dir) = data_dir.canonicalize() else { return Ok(()) };
    let by_name = place_in(&data_dir, file).is_some_and(|name| is_the_stores(&name));
    if by_name || is_a_link_into(&data_dir, file) {
        return Err(BackupError::OfTheStore { path: file.to_owned() });
    }
    Ok(())
}

fn is_the_stores(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(STORE.as_bytes()) || BESIDE.iter().any(|own| name == *own)
}

/// The first name below the data directory on the way to this file.
fn place_in(data_dir: &Path, file: &Path) -> Option<OsString> {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let file = parent.unwrap_or(Path::new(".")).canonicalize().ok()?.join(file.file_name()?);
    file.strip_prefix(data_dir).ok()?.iter().next().map(OsStr::to_owned)
}

/// Whether this is one of the store's files, by a link of whatever kind.
fn is_a_link_into(data_dir: &Path, file: &Path) -> bool {
    let Ok(there) = file.metadata() else { return false };
    let Ok(entries) = data_dir.read_dir() else { return false };
    entries
        .flatten()
        .filter(|entry| is_the_stores(&entry.file_name()))
        .any(|entry| entry.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (there.dev(), there.ino())))
}
