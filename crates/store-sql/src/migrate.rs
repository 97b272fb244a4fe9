//! Numbered migrations, each with an up and a down, run in one transaction together with the schema's number.

use rusqlite::{Connection, TransactionBehavior};

use crate::OpenError;

/// The schema that this longhaul works with.
pub const SCHEMA_VERSION: i64 = 16;

/// One migration of one of the databases.
pub(crate) struct Migration {
    pub(crate) up: &'static str,
    pub(crate) down: &'static str,
}

/// All migrations of a database, from the folder that is named after it: the `n`th leads from schema `n - 1` to schema `n`.
macro_rules! migrations {
    ($database:literal) => {
        migrations!(
            $database,
            "0001_core",
            "0002_tokens",
            "0003_keys_outlive_records",
            "0004_nodes",
            "0005_job_tallies",
            "0006_artifact_chunks",
            "0007_held_by_lane",
            "0008_peers_and_asks",
            "0009_peers_by_folder",
            "0010_routing",
            "0011_plugin_state",
            "0012_held_by_usual_lane",
            "0013_external_productions",
            "0014_records",
            "0015_peers_of_circles",
            "0016_checkpoints",
        )
    };
    ($database:literal, $($name:literal,)+) => {
        [$(Migration { up: migrations!($database, $name, ".up.sql"), down: migrations!($database, $name, ".down.sql") }),+]
    };
    ($database:literal, $name:literal, $direction:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/", $database, "/", $name, $direction))
    };
}
pub(crate) use migrations;

const MIGRATIONS: &[Migration] = &migrations!("sqlite");

/// Brings the schema to this number, up or down, one migration after the other.
pub fn migrate_to(connection: &mut Connection, target: i64) -> Result<(), OpenError> {
    loop {
        let found = schema_version(connection)?;
        let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
        if found > known || target > known {
            return Err(OpenError::NewerSchema { found: found.max(target), known });
        }
        if found == target {
            return Ok(());
        }
        let up = found < target;
        let step = usize::try_from(if up { found } else { found - 1 }).unwrap_or_default();
        let migration = &MIGRATIONS[step];
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(if up { migration.up } else { migration.down })?;
        transaction.pragma_update(None, "user_version", if up { found + 1 } else { found - 1 })?;
        transaction.commit()?;
    }
}

/// The schema's number; 0 for an empty database.
pub(crate) fn schema_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}
