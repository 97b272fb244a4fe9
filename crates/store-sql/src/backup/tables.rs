//! What of a store goes into a backup, table by table, and why. A table or column that a migration adds has to find its place here: a
//! test compares this page with the schema of both databases.
//!
//! | table | in a backup | why |
//! | --- | --- | --- |
//! | `facts`, `bodies` | as they are | the truth |
//! | `jobs`, `operations`, `records` | as they are | verified against the facts, and quicker than folding them anew |
//! | `agenda` | leases of nodes ended | what is due, and claim versions, which go on rising. The processes that held the leases are not those of the restored store: their leases end as at a start after kill -9. Leases of those who pull work stay, and end by time: whoever has one may be alive, and report |
//! | `idempotency_keys` | as they are | a request that is sent again gets the same answer |
//! | `tokens` | as they are | whoever had access has access. Digests alone: no token can be read from a backup |
//! | `peers` | not present anywhere | who there is, but not on which node they were heard |
//! | `asks`, `plugin_state`, `plugin_facts` | as they are | data like any other |
//! | `shared_keys` | but for the database's own id | callbacks that are under way stay valid. Beside a file it is `callback.key` |
//! | `artifact_chunks` | as they are, if asked for | beside a file they are files |
//! | `meta` | the view format, the newest time, the steps of the clock, an accepted loss | the marks of a schema belong to the database, its correction of the clock to the server, and positions go on elsewhere |
//! | `nodes` | left out | processes of the machine that was backed up |
//! | `job_tallies` | left out | counted anew |

use domain::RecordId;
use rusqlite::{Connection, params_from_iter};
use store::StoreError;

use crate::agenda::UPDATE_AGENDA;
use crate::database::{Columns, Database, Given, Unfit, at_once};
use crate::dialect::Sql;
use crate::floor::newest_fact;
use crate::rows::{agenda_columns, agenda_values, agenda_with_id, signed};
use crate::walk::PAGE;

/// A table whose rows are carried from one database to another.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// What it is called in a backup. Tables that a file does not have keep clear of what migrations may add.
    pub(crate) in_backup: &'static str,
    /// The order of its rows: a tree that is filled in order is filled quickly.
    pub(crate) order: &'static str,
    /// Which of them.
    pub(crate) rows: &'static str,
    pub(crate) columns: &'static [Column],
}

pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Integer,
    Text,
    Bytes,
}

const fn integer(name: &'static str) -> Column {
    Column { name, kind: Kind::Integer }
}

const fn text(name: &'static str) -> Column {
    Column { name, kind: Kind::Text }
}

const fn bytes(name: &'static str) -> Column {
    Column { name, kind: Kind::Bytes }
}

const fn table(name: &'static str, order: &'static str, columns: &'static [Column]) -> Table {
    Table { name, in_backup: name, order, rows: "true", columns }
}

/// The highest position ever given is `meta`'s in a file, and a sequence's in PostgreSQL. How store time stands to a clock is that of one
/// machine or server, and not of the next; where it has jumped goes along.
pub(crate) const META: Table = Table {
    rows: "name NOT IN ('application', 'schema', 'last_position', 'clock_boot', 'clock_offset', 'clock_ahead_at_start', \
           'clock_correction', 'clock_corrected_since') AND NOT (name >= 'clock_seen_' AND name < 'clock_seen`') \
           AND NOT (name >= 'clock_anchor_' AND name < 'clock_anchor`')",
    ..table("meta", "name", &[text("name"), integer("value")])
};

/// The key that tells one database from another, also from one that was made of its backup.
pub const STORE_ID_KEY: &str = "store";

pub(crate) const SHARED_KEYS: Table = Table {
    in_backup: "backup_shared_keys",
    rows: "name <> 'store'",
    ..table("shared_keys", "name", &[text("name"), bytes("bytes")])
};

pub(crate) const ARTIFACT_CHUNKS: Table = Table {
    in_backup: "backup_artifact_chunks",
    ..table(
        "artifact_chunks",
        "record_id, attempt_id, name, number",
        &[text("record_id"), text("attempt_id"), text("name"), integer("number"), bytes("bytes")],
    )
};

/// The tables that both databases have.
pub(crate) const COMMON: [Table; 13] = [
    META,
    table(
        "facts",
        "position",
        &[
            integer("position"),
            text("stream"),
            integer("version"),
            bytes("fact_id"),
            text("kind"),
            integer("at"),
            text("actor"),
            text("causation_id"),
            text("correlation_id"),
            text("payload"),
            bytes("checksum"),
        ],
    ),
    table(
        "bodies",
        "record_id, name, sha256",
        &[text("record_id"), text("name"), bytes("sha256"), bytes("bytes")],
    ),
    table(
        "agenda",
        "record_id",
        &[
            text("record_id"),
            text("kind"),
            integer("version"),
            bytes("checksum"),
            text("owner"),
            integer("lease_expires_at"),
            integer("heartbeat_at"),
            integer("claim_version"),
            integer("held"),
            text("lane"),
            integer("priority"),
            integer("sequence"),
            integer("ready_at"),
            integer("ready"),
            integer("due_at"),
            integer("limit_at"),
        ],
    ),
    table(
        "jobs",
        "id",
        &[
            text("id"),
            text("state"),
            integer("updated_at"),
            text("owner_peer_id"),
            text("created_by_peer_id"),
            text("session_id"),
            text("circle"),
            text("view"),
        ],
    ),
    table(
        "operations",
        "id",
        &[
            text("id"),
            text("job_id"),
            text("status"),
            integer("updated_at"),
            integer("orphaned_at"),
            text("view"),
        ],
    ),
    table(
        "records",
        "id",
        &[
            text("id"),
            text("kind"),
            text("status"),
            text("name"),
            text("circle"),
            text("key"),
            integer("began_at"),
            integer("updated_at"),
            text("view"),
        ],
    ),
    table(
        "idempotency_keys",
        "principal, route, key",
        &[
            text("principal"),
            text("route"),
            text("key"),
            bytes("request_sha256"),
            text("record_id"),
            bytes("answer"),
            integer("keep_until"),
            integer("outlives"),
        ],
    ),
    table(
        "tokens",
        "id",
        &[
            text("id"),
            bytes("sha256"),
            text("name"),
            text("role"),
            text("scopes"),
            text("circle"),
            text("peer_id"),
            integer("created_at"),
            integer("revoked_at"),
        ],
    ),
    table(
        "peers",
        "id, circle",
        &[
            text("id"),
            text("display_name"),
            text("circle"),
            text("labels"),
            text("capabilities"),
            text("path"),
            text("backend"),
            text("metadata"),
            text("registered_by"),
            integer("registered_at"),
            integer("version"),
            text("present_on"),
            integer("seen_at"),
        ],
    ),
    table(
        "asks",
        "id",
        &[
            text("id"),
            text("circle"),
            text("from_peer"),
            text("to_peer"),
            text("text"),
            text("job_id"),
            text("reply_to"),
            text("asked_by"),
            bytes("request_sha256"),
            integer("created_at"),
            integer("expires_at"),
            integer("closed_at"),
            text("close_reason"),
            text("close_message"),
            text("closed_by"),
            integer("forget_at"),
        ],
    ),
    table(
        "plugin_state",
        "plugin",
        &[text("plugin"), integer("version"), text("state"), integer("fact_count")],
    ),
    table(
        "plugin_facts",
        "plugin, number",
        &[text("plugin"), integer("number"), text("fact_type"), text("json")],
    ),
];

/// The tables that stay where they are.
#[cfg(test)]
pub(crate) const LEFT_OUT: [&str; 2] = ["nodes", "job_tallies"];

/// What only a backup has: about itself, and what a file keeps beside the database.
pub(super) const MAKE_EXTRAS: &str = "
    CREATE TABLE backup (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE backup_shared_keys (name TEXT PRIMARY KEY, bytes BLOB NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE backup_artifact_chunks (
        record_id  TEXT NOT NULL,
        attempt_id TEXT NOT NULL,
        name       TEXT NOT NULL,
        number     INTEGER NOT NULL,
        bytes      BLOB NOT NULL,
        PRIMARY KEY (record_id, attempt_id, name, number)
    ) STRICT;";
pub(super) const DROP_EXTRAS: &str =
    "DROP TABLE backup_artifact_chunks; DROP TABLE backup_shared_keys; DROP TABLE backup;";

impl Table {
    /// All of its rows, in its own database.
    pub(crate) fn select(&self) -> String {
        self.select_from(self.name)
    }

    /// All of its rows, in a backup.
    pub(crate) fn select_from_backup(&self) -> String {
        self.select_from(self.in_backup)
    }

    fn select_from(&self, name: &str) -> String {
        format!("SELECT {} FROM {name} WHERE {} ORDER BY {}", self.names(), self.rows, self.order)
    }

    /// Puts a row into a backup.
    pub(crate) fn insert_into_backup(&self) -> String {
        let places: Vec<String> = (1..=self.columns.len()).map(|number| format!("?{number}")).collect();
        format!("INSERT INTO {} ({}) VALUES ({})", self.in_backup, self.names(), places.join(", "))
    }

    /// Takes rows in, in PostgreSQL.
    pub(crate) fn copy_in(&self) -> String {
        format!("COPY {} ({}) FROM STDIN (FORMAT binary)", self.name, self.names())
    }

    fn names(&self) -> String {
        self.columns.iter().map(|column| column.name).collect::<Vec<_>>().join(", ")
    }

    /// A row, as a statement is given it.
    pub(crate) fn values<'a>(&self, row: &'a dyn Columns) -> Result<Vec<Given<'a>>, Unfit> {
        let value = |(place, column): (usize, &Column)| {
            Ok(match column.kind {
                Kind::Integer => row.integer(place)?.into(),
                Kind::Text => row.text(place)?.into(),
                Kind::Bytes => row.bytes(place)?.into(),
            })
        };
        self.columns.iter().enumerate().map(value).collect()
    }

    /// Puts a row of another database into a backup.
    pub(crate) fn keep(&self, backup: &Connection, row: &dyn Columns) -> rusqlite::Result<()> {
        let values = self.values(row)?;
        backup.prepare_cached(&self.insert_into_backup())?.execute(params_from_iter(&values))?;
        Ok(())
    }
}

static FORGET_NODES: Sql = Sql::new("DELETE FROM nodes");
/// What `META` leaves out of a backup that is written row by row.
static FORGET_CLOCK: Sql = Sql::new(
    "DELETE FROM meta WHERE name IN ('clock_boot', 'clock_offset', 'clock_ahead_at_start', 'clock_correction', \
     'clock_corrected_since') OR (name >= 'clock_seen_' AND name < 'clock_seen`') \
     OR (name >= 'clock_anchor_' AND name < 'clock_anchor`')",
);
static NOBODY_IS_PRESENT: Sql = Sql::new("UPDATE peers SET present_on = NULL WHERE present_on IS NOT NULL");
static HELD: Sql = Sql::new(concat!(
    "SELECT record_id, ",
    agenda_columns!(),
    " FROM agenda WHERE record_id > $1 AND held = 1 ORDER BY record_id LIMIT $2"
));

/// Takes out of a backup what belongs to the processes of the store that it was taken from.
pub(super) fn forget_processes(backup: &Connection) -> Result<(), StoreError> {
    let failed = <Connection as Database>::read_failed;
    for statement in [&FORGET_NODES, &FORGET_CLOCK, &NOBODY_IS_PRESENT] {
        at_once(Database::execute(backup, statement, &[])).map_err(failed)?;
    }
    // No clock has shown an earlier time, and any that goes on from here shows a later one.
    let now = at_once(newest_fact(backup)).map_err(failed)?;
    let mut after = String::new();
    loop {
        let given = [after.as_str().into(), signed(PAGE as u64).into()];
        let held = at_once(backup.query(&HELD, &given, agenda_with_id)).map_err(failed)?;
        let Some((last, _)) = held.last() else { return Ok(()) };
        after.clone_from(last);
        for (id, mut row) in held {
            let is_a_nodes = row.claim.as_ref().is_some_and(|claim| claim.owner.outside_name().is_none());
            if let (true, Ok(id)) = (is_a_nodes, RecordId::parse(&id)) {
                row.end_lease(now);
                let values = agenda_values(&id, &row);
                at_once(Database::execute(backup, &UPDATE_AGENDA, &values)).map_err(failed)?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_and_column_of_a_file_has_its_place() {
        let mut connection = Connection::open_in_memory().unwrap();
        crate::migrate_to(&mut connection, crate::SCHEMA_VERSION).unwrap();
        let mut columns = connection
            .prepare(
                "SELECT t.name, c.name FROM pragma_table_list AS t, pragma_table_xinfo(t.name) AS c \
                      WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' ORDER BY t.name, c.name",
            )
            .unwrap();
        let found = columns.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let mut found: Vec<(String, String)> = found.collect::<Result<_, _>>().unwrap();
        found.retain(|(table, _)| !LEFT_OUT.contains(&table.as_str()));
        assert_eq!(found, placed(&COMMON));
    }

    #[cfg(feature = "postgres")]
    #[tokio::test]
    async fn every_table_and_column_of_a_database_has_its_place() {
        let schema = test_postgres::Schema::new().await;
        let address = crate::PostgresAddress::parse(&schema.address).unwrap();
        crate::migrate_postgres_to(&address, crate::SCHEMA_VERSION).await.unwrap();
        let rows = schema
            .client()
            .await
            .query(
                "SELECT c.table_name::text, c.column_name::text FROM information_schema.columns AS c \
                 JOIN information_schema.tables AS t USING (table_schema, table_name) \
                 WHERE c.table_schema = current_schema() AND t.table_type = 'BASE TABLE'",
                &[],
            )
            .await
            .unwrap();
        let mut found: Vec<(String, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        found.retain(|(table, _)| !LEFT_OUT.contains(&table.as_str()));
        found.sort();
        let mut all = placed(&COMMON);
        all.extend(placed(&[SHARED_KEYS, ARTIFACT_CHUNKS]));
        all.sort();
        assert_eq!(found, all);
    }

    fn placed(tables: &[Table]) -> Vec<(String, String)> {
        let of = |table: &Table| {
            let name = table.name;
            table
                .columns
                .iter()
                .map(move |column| (name.to_owned(), column.name.to_owned()))
                .collect::<Vec<_>>()
        };
        let mut placed: Vec<_> = tables.iter().flat_map(of).collect();
        placed.sort();
        placed
    }
}
