//! A place for a store: a data directory, and perhaps a schema of a database.

use std::path::{Path, PathBuf};
use std::process::Output;

use rusqlite::Connection;
use serde_json::Value;
use tempfile::TempDir;
use test_postgres::Schema;

use crate::given::{Daemon, binary, create, expect};

const JOBS: usize = 30;
const INPUT_BYTES: usize = 60_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Server,
}

pub struct Home {
    pub dir: TempDir,
    schema: Option<Schema>,
}

impl Home {
    pub fn new(kind: Kind) -> Self {
        let schema = match kind {
            Kind::File => None,
            Kind::Server => {
                let runtime = tokio::runtime::Runtime::new().expect("there is room");
                Some(runtime.block_on(Schema::new()))
            }
        };
        Self { dir: tempfile::tempdir().expect("there is room"), schema }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn daemon(&self, arguments: &[&str]) -> Daemon {
        let database: &[&str] = match &self.schema {
            None => &[],
            Some(schema) => &["--database", &schema.address],
        };
        Daemon::start_with(self.path(), &[database, arguments].concat())
    }

    /// A verb that needs the store itself.
    pub fn run(&self, arguments: &[&str]) -> Output {
        let arguments = self.with_store(arguments);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        binary(&arguments).output().expect("the binary runs")
    }

    /// The arguments of such a verb, and where the store is.
    pub fn with_store(&self, arguments: &[&str]) -> Vec<String> {
        let database = self.schema.iter().flat_map(|schema| ["--database", &schema.address]);
        let place = ["--data-dir", text(self.path())].into_iter().chain(database);
        arguments.iter().copied().chain(place).map(str::to_owned).collect()
    }

    #[track_caller]
    pub fn backup(&self, file: &Path) -> Value {
        let printed = expect(0, &self.run(&["backup", text(file), "--json"]));
        serde_json::from_str(&printed).expect("it is JSON")
    }

    #[track_caller]
    pub fn restore(&self, file: &Path) -> Value {
        let printed = expect(0, &self.run(&["restore", text(file), "--json"]));
        serde_json::from_str(&printed).expect("it is JSON")
    }

    #[track_caller]
    pub fn verify(&self) {
        let verified = expect(0, &self.run(&["verify"]));
        assert!(verified.contains(" 0 differences"), "{verified}");
    }

    /// The ledger as it is exported, up to a position.
    #[track_caller]
    pub fn facts_up_to(&self, position: u64) -> Vec<String> {
        let exported = expect(0, &self.run(&["export", "facts"]));
        let is_within = |line: &&str| {
            let fact: Value = serde_json::from_str(line).expect("it is JSON");
            fact["position"].as_u64().expect("it has one") <= position
        };
        exported.lines().take_while(is_within).map(str::to_owned).collect()
    }

    /// The jobs that have begun and not ended.
    #[track_caller]
    pub fn open_jobs(&self) -> Vec<String> {
        const ENDS: [&str; 5] = [
            "job.completed/1",
            "job.failed/1",
            "job.cancelled/1",
            "job.expired/1",
            "job.became_unavailable/1",
        ];
        let mut open = std::collections::BTreeSet::new();
        for line in self.facts_up_to(u64::MAX) {
            let fact: Value = serde_json::from_str(&line).expect("it is JSON");
            let (stream, kind) =
                (fact["stream"].as_str().expect("it is text"), fact["kind"].as_str().expect("it is text"));
            if kind == "job.created/1" {
                open.insert(stream.to_owned());
            } else if ENDS.contains(&kind) {
                open.remove(stream);
            }
        }
        open.into_iter().collect()
    }
}

/// A store that a backup takes a while for: about two megabytes.
pub fn filled(kind: Kind) -> Home {
    let home = Home::new(kind);
    let daemon = home.daemon(&["--no-dispatch"]);
    let input = format!("\"{}\"", "x".repeat(INPUT_BYTES));
    for _ in 0..JOBS {
        create(home.path(), &["large", "--executor", "noop", "--input", &input]);
    }
    drop(daemon);
    home
}

/// What two backups do not have in common: rows of any table that are in one of them alone.
pub fn differences(one: &Path, other: &Path) -> Vec<String> {
    let connection = Connection::open(one).expect("it is a database");
    connection.execute("ATTACH ?1 AS other", [text(other)]).expect("it is a database");
    let mut tables = connection
        .prepare("SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        .expect("it is a database");
    let tables: Vec<String> = tables
        .query_map([], |row| row.get(0))
        .expect("it is a database")
        .collect::<Result<_, _>>()
        .expect("it is a database");
    assert!(tables.len() > 14, "{tables:?}");
    let mut differences = Vec::new();
    for table in tables {
        // Where positions go on is meant to differ.
        let rows = if table == "meta" { "WHERE name <> 'last_position'" } else { "" };
        for (here, there) in [("main", "other"), ("other", "main")] {
            let sql = format!(
                "SELECT count(*) FROM (SELECT * FROM {here}.{table} {rows} EXCEPT SELECT * FROM {there}.{table} {rows})"
            );
            let alone: i64 = connection.query_row(&sql, [], |row| row.get(0)).expect("it is a database");
            if alone > 0 {
                differences.push(format!("{alone} rows of {table} are only in {here}"));
            }
        }
    }
    differences
}

/// A number out of a backup.
#[track_caller]
pub fn number(backup: &Path, sql: &str) -> i64 {
    Connection::open(backup).and_then(|backup| backup.query_row(sql, [], |row| row.get(0))).expect(sql)
}

/// The texts of a column of a backup.
#[track_caller]
pub fn texts(backup: &Path, sql: &str) -> Vec<String> {
    let backup = Connection::open(backup).expect(sql);
    let mut statement = backup.prepare(sql).expect(sql);
    let texts = statement.query_map([], |row| row.get(0)).expect(sql);
    texts.collect::<Result<_, _>>().expect(sql)
}

pub fn text(path: &Path) -> &str {
    path.to_str().expect("it is text")
}

/// A name for a backup, in a directory of its own.
pub fn backup_file() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("there is room");
    let file = dir.path().join("made.backup");
    (dir, file)
}
