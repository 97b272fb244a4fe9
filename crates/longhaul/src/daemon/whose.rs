//! Whose data directory it is. A daemon ends the processes and removes the output in its directory that its store knows nothing of, so
//! another store is refused before it touches anything, also one that was made of this one's backup.
//!
//! | in the directory | it is that of |
//! | --- | --- |
//! | `longhaul.sqlite` | this file |
//! | `store.id` | the database that has this id; no backup carries it |
//! | `callback.key` alone | a file that has gone, until it is restored or a database that was made of it takes over |
//! | output alone | whoever comes with a store; never of an empty file |

use std::path::{Path, PathBuf};

use anyhow::Result;
use domain::Digest;
use store_sql::{OpenError, interrupted};

use super::files::{callback_key_path, is_missing, kept_callback_key, read_if_there, write};
use crate::database::{OUTPUT_DIR, STORE_FILE};

/// Refuses a file the directory of a database, and an empty file that of any store.
pub(super) fn check_for_file(data_dir: &Path) -> Result<(), OpenError> {
    check_no_database(data_dir)?;
    let (file, key, output) =
        (data_dir.join(STORE_FILE), callback_key_path(data_dir), data_dir.join(OUTPUT_DIR));
    // What a restore has left is told when the file is opened.
    if file.exists() || interrupted(&file).is_some() {
        Ok(())
    } else if is_there(&key)? {
        Err(other_store(key))
    } else if std::fs::read_dir(&output).is_ok_and(|mut found| found.next().is_some()) {
        Err(other_store(output))
    } else {
        Ok(())
    }
}

/// Refuses what is restored the directory of a database, and that of a file that it was not made of.
pub fn check_for_restore(data_dir: &Path, key: Option<[u8; 32]>) -> Result<()> {
    check_no_database(data_dir)?;
    check_key(data_dir, key)
}

/// Refuses a database the directory of a file, also of one that it was made of: whoever moves a store says that the file is done with.
pub(super) fn check_for_database(data_dir: &Path) -> Result<(), OpenError> {
    let file = data_dir.join(STORE_FILE);
    if let Some(restoring) = interrupted(&file) {
        return Err(other_store(restoring));
    }
    if is_there(&file)? { Err(other_store(file)) } else { Ok(()) }
}

/// From now on this is the directory of the database that has this id, unless it is another's.
pub(super) fn claim_for_database(data_dir: &Path, id: Digest, key: [u8; 32]) -> Result<()> {
    match kept_store_id(data_dir)? {
        Some(kept) if kept == id.to_string() => Ok(()),
        Some(_) => Err(other_store(store_id_path(data_dir)).into()),
        None => {
            check_key(data_dir, Some(key))?;
            write(&store_id_path(data_dir), &id.to_string())
        }
    }
}

/// Refuses the directory of a file that this store was not made of.
fn check_key(data_dir: &Path, key: Option<[u8; 32]>) -> Result<()> {
    if kept_callback_key(data_dir)?.is_some_and(|kept| key != Some(kept)) {
        return Err(other_store(callback_key_path(data_dir)).into());
    }
    Ok(())
}

fn check_no_database(data_dir: &Path) -> Result<(), OpenError> {
    if kept_store_id(data_dir)?.is_some() {
        return Err(other_store(store_id_path(data_dir)));
    }
    Ok(())
}

fn kept_store_id(data_dir: &Path) -> Result<Option<String>, OpenError> {
    let path = store_id_path(data_dir);
    let is_there = is_there(&path)?;
    let text = read_if_there(&path).map_err(|source| OpenError::Io { path, source })?;
    // One that leads nowhere is no database's, and yet a mark.
    Ok(text.or(is_there.then(String::new)).map(|text| text.trim().to_owned()))
}

fn store_id_path(data_dir: &Path) -> PathBuf {
    data_dir.join("store.id")
}

/// Also what leads nowhere.
fn is_there(path: &Path) -> Result<bool, OpenError> {
    match path.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(error) if is_missing(&error) => Ok(false),
        Err(source) => Err(OpenError::Io { path: path.to_owned(), source }),
    }
}

fn other_store(mark: PathBuf) -> OpenError {
    OpenError::OtherStore { path: mark.parent().map(Path::to_owned).unwrap_or_default(), mark }
}
