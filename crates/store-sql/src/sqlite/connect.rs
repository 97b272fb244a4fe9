//! Connections: how each of them is set up, and the checks before a file is touched.

use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use store::{StoreError, VIEW_FORMAT};

use super::SqliteOptions;
use crate::Durability;
use crate::backup::BACKUP_APPLICATION_ID;
use crate::database::at_once;
use crate::migrate::{SCHEMA_VERSION, migrate_to, schema_version};
use crate::{OpenError, floor, rebuild};

/// Says in the file that it is ours: "LHLD".
pub(crate) const APPLICATION_ID: i64 = 0x4c48_4c44;
const STATEMENTS_KEPT: usize = 64;
const BUSY_TIMEOUT_MS: u32 = 30_000;
const CHECKPOINT_TIMEOUT_MS: u64 = 50;
/// 8 MiB.
const READER_CACHE_KIB: i64 = 8_192;
/// 64 MiB.
const WRITER_CACHE_KIB: i64 = 65_536;

/// Opens the connection that writes: brings schema and views up to date.
pub(crate) fn writer(options: &SqliteOptions) -> Result<Connection, OpenError> {
    checked_writer(options, |_| Ok(()))
}

/// The same; a store that does not pass the check is left as it is.
pub(super) fn checked_writer(
    options: &SqliteOptions,
    check: impl FnOnce(&Connection) -> Result<(), OpenError>,
) -> Result<Connection, OpenError> {
    let mut connection = open(
        &options.path,
        options.vfs.as_deref(),
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
    )?;
    let content = identify(&connection, &options.path)?;
    let path = || options.path.clone();
    set_up(&mut connection, options, content, check).map_err(|error| match content {
        _ if !is_full(&error) => error,
        Content::Nothing => OpenError::NoRoom { path: path() },
        Content::Store => OpenError::FileFull { path: path() },
    })?;
    Ok(connection)
}

fn set_up(
    connection: &mut Connection,
    options: &SqliteOptions,
    content: Content,
    check: impl FnOnce(&Connection) -> Result<(), OpenError>,
) -> Result<(), OpenError> {
    if content == Content::Nothing {
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
        // Before the first table, or never.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    } else {
        pass(connection, check)?;
    }
    let mode = ask_for_wal(connection)?;
    if mode != "wal" {
        return Err(OpenError::NotADatabase {
            path: options.path.clone(),
            reason: format!("it cannot be put into WAL mode, it stays in {mode}"),
        });
    }
    connection.pragma_update(
        None,
        "synchronous",
        match options.durability {
            Durability::Full => "FULL",
            Durability::Relaxed => "NORMAL",
        },
    )?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    if content == Content::Nothing {
        // Before the first table too: a file with tables and without our mark is taken for another program's.
        connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    }
    migrate_to(connection, SCHEMA_VERSION)?;
    bring_views_up_to_date(connection, || OpenError::FileFull { path: options.path.clone() })
}

fn is_full(error: &OpenError) -> bool {
    matches!(error, OpenError::Database(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull))
}

/// The journal mode after asking for WAL. It is committed after its answer: the statement is stepped to its end, or a sync that
/// failed would stay unknown, and with it that the file may lose its first page.
fn ask_for_wal(connection: &Connection) -> rusqlite::Result<String> {
    let mut statement = connection.prepare("PRAGMA journal_mode = WAL")?;
    let mut rows = statement.query([])?;
    let mut mode = String::new();
    while let Some(row) = rows.next()? {
        mode = row.get(0)?;
    }
    Ok(mode)
}

/// What does not pass keeps its log, which closing a connection would move into the file.
fn pass(
    connection: &Connection,
    check: impl FnOnce(&Connection) -> Result<(), OpenError>,
) -> Result<(), OpenError> {
    let passed = check(connection);
    if passed.is_err() {
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    }
    passed
}

/// Opens a connection that only reads; the store must be there and up to date.
pub(crate) fn reader(path: &Path, vfs: Option<&str>) -> Result<Connection, OpenError> {
    checked_reader(path, vfs, |_| Ok(()))
}

/// The same; a store that does not pass the check is left as it is.
pub(super) fn checked_reader(
    path: &Path,
    vfs: Option<&str>,
    check: impl FnOnce(&Connection) -> Result<(), OpenError>,
) -> Result<Connection, OpenError> {
    let connection = open(path, vfs, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    if identify(&connection, path)? == Content::Nothing {
        return Err(OpenError::Missing { path: path.to_owned() });
    }
    pass(&connection, check)?;
    connection.pragma_update(None, "query_only", true)?;
    connection.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
    let found = schema_version(&connection)?;
    if found < SCHEMA_VERSION {
        return Err(OpenError::OlderSchema { found, known: SCHEMA_VERSION });
    }
    Ok(connection)
}

/// Refuses a file without a table, which is no store.
pub(crate) fn check_has_tables(path: &Path) -> Result<(), OpenError> {
    match identify(&open(path, None, OpenFlags::SQLITE_OPEN_READ_WRITE)?, path)? {
        Content::Store => Ok(()),
        Content::Nothing => Err(OpenError::Missing { path: path.to_owned() }),
    }
}

/// Opens the connection that moves the log into the file.
pub(crate) fn checkpointer(options: &SqliteOptions) -> Result<Connection, OpenError> {
    let connection = open(&options.path, options.vfs.as_deref(), OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // A pass that has to wait for a reader holds the writer: it gives up soon and comes back later.
    connection.busy_timeout(std::time::Duration::from_millis(CHECKPOINT_TIMEOUT_MS))?;
    Ok(connection)
}

fn open(path: &Path, vfs: Option<&str>, flags: OpenFlags) -> Result<Connection, OpenError> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = match vfs {
        None => Connection::open_with_flags(path, flags),
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs),
    };
    let connection = opened.map_err(|error| unreadable(path, error))?;
    connection.busy_timeout(std::time::Duration::from_millis(u64::from(BUSY_TIMEOUT_MS)))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    // A plan is made for a statement, not for the values given to it: otherwise many are planned anew each time.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

/// What a file holds that is ours to open.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    /// No table yet.
    Nothing,
    /// A store.
    Store,
}

/// Refuses files that are damaged, another program's, or of a newer longhaul, before anything is written.
fn identify(connection: &Connection, path: &Path) -> Result<Content, OpenError> {
    // Closing a connection moves the log into the file; a file that is refused, or looks empty, keeps its log.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    let number = |name| {
        connection
            .pragma_query_value(None, name, |row| row.get::<_, i64>(0))
            .map_err(|error| unreadable(path, error))
    };
    let application = number("application_id")?;
    let found = number("user_version")?;
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(|error| unreadable(path, error))?;
    if application == BACKUP_APPLICATION_ID {
        return Err(OpenError::Backup { path: path.to_owned() });
    }
    if application != APPLICATION_ID && (application != 0 || tables > 0) {
        return Err(OpenError::Foreign { path: path.to_owned() });
    }
    if found > SCHEMA_VERSION {
        return Err(OpenError::NewerSchema { found, known: SCHEMA_VERSION });
    }
    if tables > 0
        && let Some(found) =
            at_once(rebuild::view_format(connection)).map_err(|error| unreadable(path, error))?
        && found > VIEW_FORMAT
    {
        return Err(OpenError::NewerViews { found, known: VIEW_FORMAT });
    }
    if tables == 0 {
        return Ok(Content::Nothing);
    }
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    Ok(Content::Store)
}

/// Views of another format cannot be read: on a full disk the store is refused, and reads are not served.
fn bring_views_up_to_date(
    connection: &mut Connection,
    full: impl Fn() -> OpenError,
) -> Result<(), OpenError> {
    match at_once(rebuild::view_format(connection))? {
        Some(VIEW_FORMAT) => Ok(()),
        Some(_) | None => {
            let now = at_once(floor::newest_fact(connection))?;
            at_once(rebuild::rebuild(&*connection, domain::attention::Retention::DEFAULT, now))
                .map(|_| ())
                .map_err(|error| {
                    if error == StoreError::Full { full() } else { OpenError::Rebuild(error.to_string()) }
                })
        }
    }
}

pub(super) fn unreadable(path: &Path, error: rusqlite::Error) -> OpenError {
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            OpenError::NotADatabase { path: path.to_owned(), reason: error.to_string() }
        }
        Some(ErrorCode::CannotOpen) if !path.exists() => OpenError::Missing { path: PathBuf::from(path) },
        _ => OpenError::Database(error),
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;
    use crate::reads::{FACTS_OF, LOAD_OPERATION};

    #[test]
    fn a_statement_is_planned_once_whatever_is_given_to_it() {
        let directory = tempfile::tempdir().unwrap();
        let connection = writer(&SqliteOptions::at(directory.path().join("store.sqlite"))).unwrap();
        for sql in [&LOAD_OPERATION, &FACTS_OF] {
            let mut statement = connection.prepare(sql.sqlite()).unwrap();
            for given in 1..=3 {
                for number in 1..=statement.parameter_count() {
                    statement.raw_bind_parameter(number, given).unwrap();
                }
                assert!(statement.raw_query().next().unwrap().is_none(), "there is nothing yet");
            }
            assert_eq!(statement.get_status(StatementStatus::RePrepare), 0, "{}", sql.sqlite());
        }
    }
}
