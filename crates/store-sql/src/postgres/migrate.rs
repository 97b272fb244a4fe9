//! Numbered migrations, each with an up and a down, each in one transaction together with the schema's number, and all of them
//! under a lock, so that nodes may start together.

use store::VIEW_FORMAT;

use super::address::PostgresAddress;
use super::failure::PostgresError;
use super::session::Session;
use crate::database::{Database, integer, one, optional_text, text};
use crate::dialect::Sql;
use crate::migrate::{Migration, SCHEMA_VERSION, migrations};
use crate::{OpenError, floor, rebuild};

/// Says in the database that the tables are ours: "LHLD".
const APPLICATION_ID: i64 = 0x4c48_4c44;
/// The oldest server that knows everything that is asked of it.
const OLDEST_SERVER: i64 = 130_000;

const MIGRATIONS: &[Migration] = &migrations!("postgres");

/// Whether a store is made or brought up to date where it is missing or old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readiness {
    /// It is.
    BringUpToDate,
    /// It must be there already.
    MustBeThere,
}

/// Checks that the database is ours to use, and brings schema and views up to date if that is asked for.
pub(super) async fn prepare(
    session: &Session,
    address: &PostgresAddress,
    readiness: Readiness,
) -> Result<(), OpenError> {
    check_server(session, address, readiness).await?;
    match readiness {
        Readiness::BringUpToDate => {
            locked(session, address, async || {
                migrate(session, address, SCHEMA_VERSION).await?;
                check_rights(session, address).await?;
                bring_views_up_to_date(session, address).await
            })
            .await
        }
        Readiness::MustBeThere => {
            let found = schema_version(session, address).await?;
            check_views(session, address, found).await?;
            match found {
                0 => Err(OpenError::NoStore { address: address.to_string() }),
                SCHEMA_VERSION => Ok(()),
                found if found < SCHEMA_VERSION => {
                    Err(OpenError::OlderSchema { found, known: SCHEMA_VERSION })
                }
                found => Err(OpenError::NewerSchema { found, known: SCHEMA_VERSION }),
            }
        }
    }
}

/// Brings the schema of a database to this number, up or down, one migration after the other.
pub async fn migrate_postgres_to(address: &PostgresAddress, target: i64) -> Result<(), OpenError> {
    let session = Session::connect(address, None).await?;
    check_server(&session, address, Readiness::BringUpToDate).await?;
    locked(&session, address, async || migrate(&session, address, target).await).await
}

static SERVER: Sql = Sql::new(
    "SELECT current_setting('server_version_num')::bigint, \
            (current_setting('transaction_read_only') = 'on' OR pg_is_in_recovery()), \
            current_setting('server_encoding'), current_schema()::text",
);

pub(super) async fn check_server(
    session: &Session,
    address: &PostgresAddress,
    readiness: Readiness,
) -> Result<(), OpenError> {
    let read = |row: &dyn crate::database::Columns| {
        Ok((integer(row, 0)?, integer(row, 1)? != 0, text(row, 2)?, optional_text(row, 3)?))
    };
    let found =
        one(session, &SERVER, &[], read).await.map_err(|error| OpenError::refused(address, &error))?;
    let refused = |reason: String| Err(OpenError::Server { address: address.to_string(), reason });
    let Some((version, is_read_only, encoding, schema)) = found else {
        return refused("it does not say what it is".to_owned());
    };
    if version < OLDEST_SERVER {
        return refused(format!("it is PostgreSQL {}; 13 or newer is needed", version / 10_000));
    }
    if encoding != "UTF8" {
        return refused(format!("its encoding is {encoding}; make it with: createdb --encoding=UTF8"));
    }
    if schema.is_none() {
        return refused("no schema of its search_path is there; make it, or name another".to_owned());
    }
    if is_read_only && readiness == Readiness::BringUpToDate {
        return Err(OpenError::ReadOnly { address: address.to_string() });
    }
    Ok(())
}

// Locks are known to a whole database, stores live in schemas.
static LOCK: Sql =
    Sql::new("SELECT pg_advisory_lock(hashtextextended('longhaul schema ' || current_schema(), 0))::text");
static UNLOCK: Sql =
    Sql::new("SELECT pg_advisory_unlock(hashtextextended('longhaul schema ' || current_schema(), 0))");

/// Alone among all nodes. If this process ends, the lock goes with its connection.
pub(super) async fn locked<T>(
    session: &Session,
    address: &PostgresAddress,
    work: impl AsyncFnOnce() -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    let failed = |error: PostgresError| OpenError::refused(address, &error);
    // Another node may rebuild all views meanwhile.
    session.run("SET statement_timeout = 0; SET lock_timeout = 0").await.map_err(failed)?;
    let statement = session.prepare(LOCK.postgres()).await.map_err(failed)?;
    session.wait_for(&statement).await.map_err(failed)?;
    let done = work().await;
    let unlocked = session.query(&UNLOCK, &[], |_| Ok(())).await;
    let done = done?;
    unlocked.map(|_| done).map_err(failed)
}

/// Makes the newest schema where there is none, in a transaction that is open.
pub(super) async fn make_in_transaction(
    session: &Session,
    address: &PostgresAddress,
) -> Result<(), OpenError> {
    let mut statements: String = MIGRATIONS.iter().map(|migration| migration.up).collect();
    statements.push_str(&mark(SCHEMA_VERSION));
    session.run_without_limit(&statements).await.map_err(|error| OpenError::refused(address, &error))
}

/// Says in the database that the tables are ours, and of which schema.
fn mark(schema: i64) -> String {
    format!(
        "INSERT INTO meta (name, value) VALUES ('application', {APPLICATION_ID}), ('schema', {schema}) \
         ON CONFLICT (name) DO UPDATE SET value = excluded.value;"
    )
}

async fn migrate(session: &Session, address: &PostgresAddress, target: i64) -> Result<(), OpenError> {
    loop {
        let found = schema_version(session, address).await?;
        let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
        if found > known || target > known {
            return Err(OpenError::NewerSchema { found: found.max(target), known });
        }
        check_views(session, address, found).await?;
        if found == target {
            return Ok(());
        }
        let up = found < target;
        let step = usize::try_from(if up { found } else { found - 1 }).unwrap_or_default();
        let migration = &MIGRATIONS[step];
        let reached = if up { found + 1 } else { found - 1 };
        let statements = if up { migration.up } else { migration.down };
        let mark = if reached == 0 { String::new() } else { mark(reached) };
        let migrated = session.run_without_limit(&format!("BEGIN; {statements} {mark} COMMIT")).await;
        if let Err(error) = migrated {
            // If even this fails the connection has gone, and the transaction with it.
            let _ = session.run("ROLLBACK").await;
            return Err(OpenError::refused(address, &error));
        }
    }
}

// By the names that migrations make or made; in the schema where it would make them.
static OUR_NAMES: Sql = Sql::new(
    "SELECT table_name::text FROM information_schema.tables WHERE table_schema = current_schema() AND table_name IN \
     ('meta', 'facts', 'bodies', 'agenda', 'jobs', 'operations', 'idempotency_keys', 'tokens', \
      'job_tallies', 'artifact_chunks', 'peers', 'asks', 'routing', 'records', 'plugin_state', 'plugin_facts') ORDER BY table_name",
);
static MARKS: Sql = Sql::new("SELECT name, value FROM meta WHERE name IN ('application', 'schema')");

/// The schema's number; 0 where there is no store yet.
pub(super) async fn schema_version(session: &Session, address: &PostgresAddress) -> Result<i64, OpenError> {
    let failed = |error: PostgresError| OpenError::refused(address, &error);
    let foreign =
        |table: &str| OpenError::ForeignTable { address: address.to_string(), table: table.to_owned() };
    let tables = session.query(&OUR_NAMES, &[], |row| text(row, 0)).await.map_err(failed)?;
    let Some(first) = tables.first() else { return Ok(0) };
    if !tables.iter().any(|table| table == "meta") {
        return Err(foreign(first));
    }
    let marks = match session.query(&MARKS, &[], |row| Ok((text(row, 0)?, integer(row, 1)?))).await {
        Ok(marks) => marks,
        // Not our columns, or not our types.
        Err(PostgresError::Refused { code, .. })
            if code.code().starts_with("42") && code.code() != "42501" =>
        {
            return Err(foreign("meta"));
        }
        Err(error) => return Err(failed(error)),
    };
    let mark = |name: &str| marks.iter().find(|(found, _)| found == name).map(|(_, value)| *value);
    match (mark("application"), mark("schema")) {
        (Some(APPLICATION_ID), Some(version)) => Ok(version),
        _ => Err(foreign("meta")),
    }
}

// What the writers do. Nobody changes a fact.
static MISSING_RIGHT: Sql = Sql::new(
    "SELECT name || ': ' || privilege FROM UNNEST(ARRAY['meta', 'facts', 'bodies', 'agenda', 'jobs', 'operations', \
     'idempotency_keys', 'tokens', 'job_tallies', 'artifact_chunks', 'peers', 'asks', 'records', 'plugin_state', 'plugin_facts']) AS name, \
     UNNEST(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS privilege \
     WHERE NOT has_table_privilege(name, privilege) AND (name, privilege) <> ('facts', 'UPDATE') \
     UNION ALL SELECT 'fact_positions: USAGE' WHERE NOT has_sequence_privilege('fact_positions', 'USAGE') LIMIT 1",
);

/// A store that cannot be written to is refused now, and not by its first commit.
async fn check_rights(session: &Session, address: &PostgresAddress) -> Result<(), OpenError> {
    let missing = one(session, &MISSING_RIGHT, &[], |row| text(row, 0)).await;
    match missing.map_err(|error| OpenError::refused(address, &error))? {
        None => Ok(()),
        Some(missing) => Err(OpenError::Rights {
            address: address.to_string(),
            reason: format!("the user has no right to {missing}"),
        }),
    }
}

async fn check_views(session: &Session, address: &PostgresAddress, schema: i64) -> Result<(), OpenError> {
    if schema == 0 {
        return Ok(());
    }
    let found = rebuild::view_format(session).await.map_err(|error| OpenError::refused(address, &error))?;
    match found {
        Some(found) if found > VIEW_FORMAT => Err(OpenError::NewerViews { found, known: VIEW_FORMAT }),
        Some(_) | None => Ok(()),
    }
}

async fn bring_views_up_to_date(session: &Session, address: &PostgresAddress) -> Result<(), OpenError> {
    let failed = |error: PostgresError| OpenError::refused(address, &error);
    if rebuild::view_format(session).await.map_err(failed)? == Some(VIEW_FORMAT) {
        return Ok(());
    }
    let now = floor::newest_fact(session).await.map_err(failed)?;
    rebuild::rebuild(session, domain::attention::Retention::DEFAULT, now)
        .await
        .map(|_| ())
        .map_err(|error| OpenError::Rebuild(error.to_string()))
}
