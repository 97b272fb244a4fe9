//! Whose data directory it is. A daemon ends the processes and removes the output in its directory that its store knows nothing of, so
//! another store is refused before anything is swept, also one that was made of this one's backup.
//!
//! | in the directory | it is that of |
//! | --- | --- |
//! | `longhaul.sqlite`, or its log alone | this file |
//! | `database.id` | the database that has this id; no backup carries it |
//! | `callback.key` alone | a file that has gone, until it is restored or a database that was made of it takes over |
//! | output alone | whoever comes with a store that was ever used; never of an empty one |

use std::path::{Path, PathBuf};

use anyhow::Result;
use domain::{Digest, RecordId, Timestamp};
use store_sql::{Filled, OpenError, filled, interrupted};

use super::files::{callback_key_path, is_missing, kept_callback_key, read_if_there, write};
use crate::database::{OUTPUT_DIR, STORE_FILE};

const TWO_MARKS: &str = "longhaul.sqlite and database.id are both here, and one of them is in the wrong place: move that one away, the file with its log \
     (-wal)";

/// Refuses a file the directory of a database, and an empty file that of any store.
pub fn check_for_file(data_dir: &Path) -> Result<(), OpenError> {
    check_no_database(data_dir)?;
    let file = data_dir.join(STORE_FILE);
    // What a restore has left, and a log alone, is told when the file is opened.
    match filled(&file)? {
        Filled::Something | Filled::LogAlone => return Ok(()),
        Filled::Blank if interrupted(&file).is_some() => return Ok(()),
        Filled::Blank => {}
    }
    if file.exists() {
        // A young file is told by its watermark: without its log it is damaged, and not another store's.
        store_sql::refuse_damaged(&file)?;
    }
    let key = callback_key_path(data_dir);
    if is_there(&key)? {
        return Err(other_store(
            key,
            "its file, or the log (-wal) that belongs to it, has gone: put it back, restore a backup of it, or serve the database that \
             was made of it with `--database`; for an empty store use another data directory",
        ));
    }
    check_no_output(data_dir)
}

/// Refuses a file the directory of a database, however it came to it.
pub(super) fn check_no_database(data_dir: &Path) -> Result<(), OpenError> {
    let hint = if is_there(&data_dir.join(STORE_FILE))? {
        TWO_MARKS
    } else {
        "name its database with `--database`, or use another data directory; if that store was moved away for good, move this file \
         away too"
    };
    check_database_id(data_dir, hint)
}

/// Refuses what is restored the directory of a database, and that of a file that it was not made of.
pub fn check_for_restore(data_dir: &Path, key: Option<[u8; 32]>) -> Result<()> {
    check_database_id(
        data_dir,
        "use another data directory; if that store is gone for good, move this file away",
    )?;
    check_key(data_dir, key)
}

/// What a database in which there is no store would be told here; nothing where it may make one.
pub(super) fn refusal_of_an_empty_database(data_dir: &Path) -> Result<Option<OpenError>, OpenError> {
    let mark = if kept_database_id(data_dir)?.is_some() {
        database_id_path(data_dir)
    } else if is_there(&callback_key_path(data_dir))? {
        callback_key_path(data_dir)
    } else {
        return Ok(None);
    };
    Ok(Some(other_store(
        mark,
        "there is no store in the database that `--database` names; check the address, or use another data directory",
    )))
}

/// Refuses a database the directory of a file, also of one that it was made of: whoever moves a store says that the file is done with.
pub(super) fn check_for_database(data_dir: &Path) -> Result<(), OpenError> {
    let file = data_dir.join(STORE_FILE);
    if let Some(restoring) = interrupted(&file) {
        return Err(other_store(
            restoring,
            "a restore was interrupted here: run it again, or use another data directory",
        ));
    }
    if is_there(&file)? || filled(&file)? == Filled::LogAlone {
        let hint = if is_there(&database_id_path(data_dir))? {
            TWO_MARKS
        } else {
            "leave `--database` out to serve it, or use another data directory; if it was moved to this database for good, move it \
             away, with its log (-wal) if there is one"
        };
        return Err(other_store(file, hint));
    }
    Ok(())
}

/// From now on this is the directory of the database with this id, unless it is another's. Its callbacks are signed with the key; what is
/// made of a backup has that of the backup.
pub(super) fn claim_for_database(
    data_dir: &Path,
    id: Digest,
    key: [u8; 32],
    newest_fact: Timestamp,
) -> Result<()> {
    let id = id.to_string();
    match kept_database_id(data_dir)? {
        Some(kept) if kept == id => Ok(()),
        Some(_) => Err(other_store(
            database_id_path(data_dir),
            "it names another database; use another data directory, or if that store was moved to this one for good, move this file \
             away",
        )
        .into()),
        None => {
            check_key(data_dir, Some(key))?;
            if is_unused(newest_fact) {
                check_no_output(data_dir)?;
            }
            write(&database_id_path(data_dir), &id)
        }
    }
}

/// Refuses the directory of a file that this store was not made of.
fn check_key(data_dir: &Path, key: Option<[u8; 32]>) -> Result<()> {
    let path = callback_key_path(data_dir);
    // One that leads nowhere is nobody's, and yet a mark.
    if is_there(&path)? && kept_callback_key(data_dir)?.is_none_or(|kept| key != Some(kept)) {
        return Err(other_store(
            path,
            "what is here was not made of that one; use another data directory, or if that store is gone for good, move this file and \
             `artifacts` away",
        )
        .into());
    }
    Ok(())
}

/// Whether nothing ever happened in a store.
pub(super) fn is_unused(newest_fact: Timestamp) -> bool {
    newest_fact == Timestamp::default()
}

/// Refuses an empty store where there is output, which it would remove.
pub(super) fn check_no_output(data_dir: &Path) -> Result<(), OpenError> {
    let output = data_dir.join(OUTPUT_DIR);
    let failed = |source| OpenError::Io { path: output.clone(), source };
    let names = match output.read_dir() {
        Ok(names) => names,
        Err(error) if is_missing(&error) => return Ok(()),
        Err(source) => return Err(failed(source)),
    };
    for name in names {
        // Nothing else is ever removed.
        let is_of_a_job = name
            .map_err(failed)?
            .file_name()
            .to_str()
            .is_some_and(|name| matches!(RecordId::parse(name), Ok(RecordId::Job(_))));
        if is_of_a_job {
            return Err(other_store(
                output,
                "an empty store would remove what is in it; use another data directory, or move it away",
            ));
        }
    }
    Ok(())
}

fn check_database_id(data_dir: &Path, hint: &'static str) -> Result<(), OpenError> {
    match kept_database_id(data_dir)? {
        Some(_) => Err(other_store(database_id_path(data_dir), hint)),
        None => Ok(()),
    }
}

fn kept_database_id(data_dir: &Path) -> Result<Option<String>, OpenError> {
    let path = database_id_path(data_dir);
    let is_mark = is_there(&path)?;
    let text = read_if_there(&path).map_err(|source| OpenError::Io { path, source })?;
    // One that leads nowhere is no database's, and yet a mark.
    Ok(text.or(is_mark.then(String::new)).map(|text| text.trim().to_owned()))
}

fn database_id_path(data_dir: &Path) -> PathBuf {
    data_dir.join("database.id")
}

/// Whether something has this name, also a link that leads nowhere.
fn is_there(path: &Path) -> Result<bool, OpenError> {
    match path.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(error) if is_missing(&error) => Ok(false),
        Err(source) => Err(OpenError::Io { path: path.to_owned(), source }),
    }
}

fn other_store(mark: PathBuf, hint: &'static str) -> OpenError {
    OpenError::OtherStore { path: mark.parent().map(Path::to_owned).unwrap_or_default(), mark, hint }
}
