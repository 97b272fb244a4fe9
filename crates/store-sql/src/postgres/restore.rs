//! A backup made a store again in a schema without tables of ours: tables, rows, positions and counts in one transaction that is
//! verified before it is committed. Whoever is killed leaves nothing; nodes that start meanwhile wait for the lock of the schema.

use rusqlite::Connection;
use store::{MAX_SHARED_ARTIFACT_BYTES, StoreError};
use tokio_postgres::types::Type;

use super::address::PostgresAddress;
use super::failure::PostgresError;
use super::migrate::{Readiness, check_server, locked, make_in_transaction, schema_version};
use super::session::Session;
use crate::OpenError;
use crate::Verified;
use crate::backup::tables::{ARTIFACT_CHUNKS, COMMON, Kind, SHARED_KEYS, Table};
use crate::backup::{BackupError, CHUNKS_TO_SHARE, Place, Stage, Watch};
use crate::database::{Columns, Database, Ending, Given, Purpose, Unfit};
use crate::dialect::Sql;
use crate::rows::signed;

/// Whoever watches is told after so many rows.
const ROWS_BETWEEN_LOOKS: u64 = 10_000;

/// Where the rows come from.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    /// The tables that every store has, with the newest schema.
    pub(crate) rows: &'a Connection,
    /// The tables that only a backup has.
    pub(crate) backup: &'a Connection,
    pub(crate) goes_on_after: u64,
}

/// Restores all of it, or nothing.
pub(crate) async fn restore(
    address: &PostgresAddress,
    source: Source<'_>,
    place: Place<'_>,
    watch: Watch<'_>,
) -> Result<Verified, BackupError> {
    let session = Session::connect(address, None).await?;
    check_server(&session, address, Readiness::BringUpToDate).await?;
    let restored = locked(&session, address, async || {
        match schema_version(&session, address).await {
            Ok(0) => {}
            Ok(_) | Err(OpenError::ForeignTable { .. }) => return Ok(Err(not_empty(address))),
            Err(error) => return Err(error),
        }
        let begun = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0";
        session.run(begun).await.map_err(|error| OpenError::refused(address, &error))?;
        let filled = fill(&session, address, source, watch).await;
        // Files without a store harm nobody; a store without its files would.
        let placed = filled.and_then(|verified| place(watch).map(|()| verified));
        Ok(end(&session, placed).await)
    });
    restored.await?
}

async fn end(session: &Session, filled: Result<Verified, BackupError>) -> Result<Verified, BackupError> {
    match filled {
        Ok(verified) => {
            // A connection that is lost now may have committed: the next restore finds that out.
            session.end(Ending::Commit).await?;
            Ok(verified)
        }
        Err(error) => {
            // If even this fails the connection has gone, and the transaction with it.
            let _ = session.end(Ending::RollBack).await;
            Err(error)
        }
    }
}

async fn fill(
    session: &Session,
    address: &PostgresAddress,
    source: Source<'_>,
    watch: Watch<'_>,
) -> Result<Verified, BackupError> {
    make_in_transaction(session, address).await?;
    let mut rows = 0;
    for table in &COMMON {
        copy_table(session, table, source.rows, &table.select_from_backup(), None, &mut rows, watch).await?;
    }
    let keys = SHARED_KEYS.select_from_backup();
    copy_table(session, &SHARED_KEYS, source.backup, &keys, None, &mut rows, watch).await?;
    let largest = Some(MAX_SHARED_ARTIFACT_BYTES);
    copy_table(session, &ARTIFACT_CHUNKS, source.backup, CHUNKS_TO_SHARE, largest, &mut rows, watch).await?;
    Database::query(session, &SET_POSITION, &[signed(source.goes_on_after).into()], |_| Ok(())).await?;
    session.count_anew().await?;
    // Plans are made for what is there now, not for empty tables.
    let tables: Vec<&str> = COMMON.iter().map(|table| table.name).collect();
    session.run_without_limit(&format!("ANALYZE {}", tables.join(", "))).await?;
    watch(Stage::Verifying, 0, None);
    let verified = crate::verify::verify(&Within(session)).await?;
    if verified.difference_count > 0 {
        return Err(BackupError::differs(&verified));
    }
    Ok(verified)
}

static SET_POSITION: Sql = Sql::new("SELECT setval('fact_positions', $1)");

async fn copy_table(
    session: &Session,
    table: &Table,
    from: &Connection,
    select: &str,
    given: Option<u64>,
    rows: &mut u64,
    watch: Watch<'_>,
) -> Result<(), BackupError> {
    let broken = |error: rusqlite::Error| BackupError::Store(StoreError::Broken(error.to_string()));
    let kinds: Vec<Type> = table.columns.iter().map(|column| kind(column.kind)).collect();
    let mut sink = session.copy_in(&table.copy_in(), &kinds).await?;
    let mut statement = from.prepare(select).map_err(broken)?;
    let mut found = statement.query(rusqlite::params_from_iter(given.map(signed))).map_err(broken)?;
    while let Some(row) = found.next().map_err(broken)? {
        let values = table.values(row).map_err(PostgresError::from)?;
        sink.write(&values).await?;
        *rows += 1;
        if rows.is_multiple_of(ROWS_BETWEEN_LOOKS) {
            watch(Stage::Restoring, *rows, None);
        }
    }
    sink.finish().await?;
    Ok(())
}

fn kind(kind: Kind) -> Type {
    match kind {
        Kind::Integer => Type::INT8,
        Kind::Text => Type::TEXT,
        Kind::Bytes => Type::BYTEA,
    }
}

fn not_empty(address: &PostgresAddress) -> BackupError {
    BackupError::NotEmpty {
        place: address.to_string(),
        hint: "name an empty schema (options=-c%20search_path%3DNAME), or a database of its own".to_owned(),
    }
}

/// A session in the middle of a transaction: what is read is what will be committed.
struct Within<'a>(&'a Session);

impl Database for Within<'_> {
    type Error = PostgresError;

    async fn query<T>(
        &self,
        sql: &'static Sql,
        given: &[Given<'_>],
        read: impl FnMut(&dyn Columns) -> Result<T, Unfit>,
    ) -> Result<Vec<T>, PostgresError> {
        Database::query(self.0, sql, given, read).await
    }

    async fn execute(&self, sql: &'static Sql, given: &[Given<'_>]) -> Result<u64, PostgresError> {
        Database::execute(self.0, sql, given).await
    }

    async fn begin(&self, _: Purpose) -> Result<(), PostgresError> {
        Ok(())
    }

    async fn end(&self, _: Ending) -> Result<(), PostgresError> {
        Ok(())
    }

    async fn miscounts(&self) -> Result<Vec<String>, PostgresError> {
        self.0.miscounts().await
    }

    fn read_failed(error: PostgresError) -> StoreError {
        Session::read_failed(error)
    }
}
