//! Numbered migrations, each with an up and a down, run in one transaction together with the schema's number.

use rusqlite::{Connection, TransactionBehavior};

use crate::OpenError;

/// The schema that this longhaul works with.
pub const SCHEMA_VERSION: i64 = 16;

struct Migration {
    up: &'static str,
    down: &'static str,
}

/// Migration `n` leads from schema `n - 1` to schema `n`.
const MIGRATIONS: [Migration; 16] = [
    Migration {
        up: include_str!("../migrations/sqlite/0001_core.up.sql"),
        down: include_str!("../migrations/sqlite/0001_core.down.sql"),
    },
    Migration {
        up: include_str!("../migrations/sqlite/0002_tokens.up.sql"),
        down: include_str!("../migrations/sqlite/0002_tokens.down.sql"),
    },
    Migration {
        up: include_str!("../migrations/sqlite/0003_keys_outlive_records.up.sql"),
        down: include_str!("../migrations/sqlite/0003_keys_outlive_records.down.sql"),
    },
    Migration {
        up: include_str!("../migrations/sqlite/0004_nodes.up.sql"),
        down: include_str!("../migrations/sqlite/0004_nodes.down.sql"),
    },
    Migration {
        up: include_str!("../migrations/sqlite/0005_job_tallies.up.sql"),
        down: include_str!("../migrations/sqlite/0005_job_tallies.down.sql"),
    },
    Migration {
        up: include_str!("../migrations/sqlite/0006_artifact_chunks.up.sql"),
        down: include_str!("../migrations/sqlite/0006_artifact_chunks.down.sql"),
    },
    Migration {
        up: include_str!("../migrations/sqlite/0007_held_by_lane.up.sql"),
        down: include_str!("../migrations/sqlite/0007_held_by_lane.down.sql"),
    },
    Migration {
        up: include_str!("../migrations/sqlite/0008_peers_and_asks.up.sql"),
        down: include_str!("../migrations/sqlite/0008_peers_and_asks.down.sql"),
    },
    Migration {
        up: include_str!("../migrations/sqlite/0009_peers_by_folder.up.sql"),
        down: include_str!("../migrations/sqlite/0009_peers_by_folder.down.sql"),
    },
    Migration {
        up: include_str!("../migrations/sqlite/0010_routing.up.sql"),
        down: include_str!("../migrations/sqlite/0010_routing.down.sql"),
    },
    Migration {
        up: include_str!("../migrations/sqlite/0011_plugin_state.up.sql"),
        down: include_str!("../migrations/sqlite/0011_plugin_state.down.sql"),
    },
    Migration {
        up: include_str!("../migrations/sqlite/0012_held_by_usual_lane.up.sql"),
        down: include_str!("../migrations/sqlite/0012_held_by_usual_lane.down.sql"),
    },
    Migration {
        up: include_str!("../migrations/sqlite/0013_external_productions.up.sql"),
        down: include_str!("../migrations/sqlite/0013_external_productions.down.sql"),
    },
    Migration {
        up: include_str!("../migrations/sqlite/0014_records.up.sql"),
        down: include_str!("../migrations/sqlite/0014_records.down.sql"),
    },
    Migration {
        up: include_str!("../migrations/sqlite/0015_peers_of_circles.up.sql"),
        down: include_str!("../migrations/sqlite/0015_peers_of_circles.down.sql"),
    },
    Migration {
        up: include_str!("../migrations/sqlite/0016_checkpoints.up.sql"),
        down: include_str!("../migrations/sqlite/0016_checkpoints.down.sql"),
    },
];

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
