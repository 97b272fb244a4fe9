//! A backup that was made: read only after its seal was found to be whole, and never written.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use domain::JobId;
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use store::{ArtifactName, VIEW_FORMAT};

use super::artifacts::{self, Sizes};
use super::unpack::{Copy, Unpacked};
use super::{BACKUP_APPLICATION_ID, BackupError, FORMAT, POSITIONS_LEFT_OUT, Place, Watch, seal};
#[cfg(feature = "postgres")]
use crate::PostgresAddress;
use crate::database::at_once;
use crate::migrate::{SCHEMA_VERSION, schema_version};
use crate::sqlite::last_position;
use crate::{OpenError, rebuild};

const TELLS_OF: &str = "SELECT EXISTS (SELECT 1 FROM facts WHERE stream = ?1)";

/// A backup whose seal is whole.
pub struct SealedBackup {
    path: PathBuf,
    connection: Connection,
    /// Bytes before its seal.
    length: u64,
    position: u64,
}

/// A backup that was restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The last position of the ledger that is there.
    pub position: u64,
    /// The store goes on above this one.
    pub goes_on_after: u64,
    /// Records that are there.
    pub records: u64,
    /// Facts that are there.
    pub facts: u64,
}

impl SealedBackup {
    /// Reads every byte before it believes one.
    pub fn open(path: &Path, watch: Watch<'_>) -> Result<Self, BackupError> {
        let length = seal::check(path, watch)?;
        let connection = open_immutable(path).map_err(|error| damaged(path, &error))?;
        let position = identify(&connection, path)?;
        Ok(Self { path: path.to_owned(), connection, length, position })
    }

    /// A key that lay beside the store, if it had one of this name.
    pub fn key(&self, name: &str) -> Result<Option<Vec<u8>>, BackupError> {
        let sql = "SELECT bytes FROM backup_shared_keys WHERE name = ?1";
        let found = self.connection.query_row(sql, [name], |row| row.get(0)).optional();
        found.map_err(|error| damaged(&self.path, &error))
    }

    /// Every chunk of what attempts have left, in order: those of one artifact one after the other, counted from 0.
    pub fn each_artifact(
        &self,
        sizes: Sizes,
        take: impl FnMut(ArtifactName<'_>, u64, &[u8]) -> Result<(), BackupError>,
    ) -> Result<(), BackupError> {
        artifacts::each(&self.connection, &self.path, sizes, take)
    }

    /// Whether anything is told of a job in it.
    pub fn tells_of(&self, job_id: &JobId) -> Result<bool, BackupError> {
        let told = self.connection.query_row(TELLS_OF, [job_id.as_str()], |row| row.get(0));
        told.map_err(|error| damaged(&self.path, &error))
    }

    /// Restores it as a file that has the name of a store only when that is asked for. Refused where a store is, or was.
    pub fn restore_to_file(&self, store: &Path, watch: Watch<'_>) -> Result<Unpacked, BackupError> {
        Unpacked::restore(self.copy(), store, self.goes_on_after()?, watch)
    }

    /// Restores it into a schema without tables of ours, all or nothing; what does not fit there for a while is put in the data
    /// directory. Artifacts that are too large for a server are the caller's: to be placed when the schema is known to be free, before
    /// anybody sees that the store is there.
    #[cfg(feature = "postgres")]
    pub async fn restore_to_server(
        &self,
        address: &PostgresAddress,
        data_dir: &Path,
        place: Place<'_>,
        watch: Watch<'_>,
    ) -> Result<Restored, BackupError> {
        let goes_on_after = self.goes_on_after()?;
        // One of an older longhaul is brought up to date as a file, where migrations have always begun.
        let up_to_date = if self.is_up_to_date()? { None } else { Some(self.copy().up_to_date(data_dir)?) };
        let rows = up_to_date.as_ref().map_or(&self.connection, |copy| &copy.connection);
        let source = crate::postgres::Source { rows, backup: &self.connection, goes_on_after };
        let verified = crate::postgres::restore(address, source, place, watch).await?;
        let (records, facts) = (verified.records, verified.facts);
        Ok(Restored { position: self.position, goes_on_after, records, facts })
    }

    /// How many artifacts are in it.
    pub fn artifact_count(&self, sizes: Sizes) -> Result<u64, BackupError> {
        artifacts::count(&self.connection, sizes).map_err(|error| damaged(&self.path, &error))
    }

    /// The last position of the ledger that is in it.
    pub fn position(&self) -> u64 {
        self.position
    }

    fn copy(&self) -> Copy<'_> {
        Copy { path: &self.path, length: self.length, position: self.position }
    }

    fn is_up_to_date(&self) -> Result<bool, BackupError> {
        let failed = |error| damaged(&self.path, &error);
        let views = at_once(rebuild::view_format(&self.connection)).map_err(failed)?;
        Ok(schema_version(&self.connection).map_err(failed)? == SCHEMA_VERSION && views == Some(VIEW_FORMAT))
    }

    fn goes_on_after(&self) -> Result<u64, BackupError> {
        let given = last_position(&self.connection).map_err(|error| damaged(&self.path, &error))?;
        Ok(given.max(self.position) + POSITIONS_LEFT_OUT)
    }
}

/// Says which position it holds, or why it is not for us.
fn identify(connection: &Connection, path: &Path) -> Result<u64, BackupError> {
    let failed = |error: rusqlite::Error| damaged(path, &error);
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map_err(failed);
    if number("application_id")? != BACKUP_APPLICATION_ID {
        let reason = "it is another program's database".to_owned();
        return Err(BackupError::NotABackup { path: path.to_owned(), reason });
    }
    let about = |name: &str| {
        let sql = "SELECT value FROM backup WHERE name = ?1";
        connection.query_row(sql, [name], |row| row.get::<_, i64>(0)).map_err(failed)
    };
    let format = about("format")?;
    if format > FORMAT {
        return Err(BackupError::NewerFormat { path: path.to_owned(), found: format, known: FORMAT });
    }
    let found = number("user_version")?;
    if found > SCHEMA_VERSION {
        return Err(OpenError::NewerSchema { found, known: SCHEMA_VERSION }.into());
    }
    match at_once(rebuild::view_format(connection)).map_err(failed)? {
        Some(found) if found > VIEW_FORMAT => {
            return Err(OpenError::NewerViews { found, known: VIEW_FORMAT }.into());
        }
        Some(_) | None => {}
    }
    u64::try_from(about("position")?).map_err(|error| damaged(path, &error))
}

/// Nothing is written beside the file, and nothing that lies beside it is looked at.
fn open_immutable(path: &Path) -> rusqlite::Result<Connection> {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => {
                uri.push(char::from(*byte));
            }
            other => {
                let _ = write!(uri, "%{other:02X}");
            }
        }
    }
    uri.push_str("?immutable=1");
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(uri, flags)
}

fn damaged(path: &Path, error: &dyn std::fmt::Display) -> BackupError {
    BackupError::Damaged { path: path.to_owned(), reason: error.to_string() }
}
