//! A database read into a backup: every table in one transaction that sees one moment, row by row as they come, so that memory stays
//! constant whatever a table holds. Nodes that run are not held up; what they delete meanwhile is vacuumed afterwards.

use std::path::Path;

use rusqlite::Connection;

use super::PostgresLedger;
use super::failure::PostgresError;
use super::session::Session;
use crate::backup::tables::{ARTIFACT_CHUNKS, COMMON, SHARED_KEYS, Table};
use crate::backup::{BackupError, Contents, Stage, Watch};
use crate::database::{Database, Ending, Purpose, integer, one};
use crate::dialect::Sql;

/// Whoever watches is told after so many rows.
const ROWS_BETWEEN_LOOKS: u64 = 10_000;

impl From<PostgresError> for BackupError {
    fn from(error: PostgresError) -> Self {
        Self::Store(error.told())
    }
}

impl PostgresLedger {
    /// Copies all of it into a file that has the tables.
    pub(crate) async fn copy_to(
        &self,
        backup: &Connection,
        draft: &Path,
        contents: Contents,
        watch: Watch<'_>,
    ) -> Result<(), BackupError> {
        let session = &self.session;
        session.begin(Purpose::Read).await?;
        // A table takes as long as it takes, and so does the disk that it is written to.
        session
            .run("SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0")
            .await?;
        let copied = copy_all(session, backup, draft, contents, watch).await;
        let ended = session.end(Ending::RollBack).await;
        // Why it was not copied says more than why that could not be ended.
        copied?;
        Ok(ended?)
    }
}

// The sequence is of no transaction: it may be ahead of the snapshot, and that does no harm.
static GIVEN: Sql = Sql::new("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM fact_positions");

async fn copy_all(
    session: &Session,
    backup: &Connection,
    draft: &Path,
    contents: Contents,
    watch: Watch<'_>,
) -> Result<(), BackupError> {
    let failed = |error| BackupError::of_database(draft, error);
    let mut rows = 0;
    for table in COMMON.iter().chain([&SHARED_KEYS]) {
        copy_table(session, table, backup, draft, &mut rows, watch).await?;
    }
    match contents {
        Contents::Everything => {
            copy_table(session, &ARTIFACT_CHUNKS, backup, draft, &mut rows, watch).await?;
        }
        Contents::WithoutArtifacts => {}
    }
    let given = one(session, &GIVEN, &[], |row| integer(row, 0)).await?.unwrap_or_default();
    let keep = "INSERT INTO meta (name, value) VALUES ('last_position', ?1)";
    backup.execute(keep, [given]).map_err(failed)?;
    Ok(())
}

async fn copy_table(
    session: &Session,
    table: &Table,
    backup: &Connection,
    draft: &Path,
    rows: &mut u64,
    watch: Watch<'_>,
) -> Result<(), BackupError> {
    let failed = |error| BackupError::of_database(draft, error);
    let transaction = backup.unchecked_transaction().map_err(failed)?;
    session
        .stream(&table.select(), |row| {
            table.keep(&transaction, row).map_err(failed)?;
            *rows += 1;
            if rows.is_multiple_of(ROWS_BETWEEN_LOOKS) {
                watch(Stage::Copying, *rows, None);
            }
            Ok::<_, BackupError>(())
        })
        .await?;
    transaction.commit().map_err(failed)
}
