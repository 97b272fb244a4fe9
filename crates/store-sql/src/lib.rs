//! The store's contract on SQL: on SQLite (one file, one writer thread) and on PostgreSQL (one database, any number of nodes),
//! both with group commit.
//!
//! Reads, walks and row statements are written once against `database.rs`, with `$n` placeholders; what a database does
//! differently stands in `dialect.rs`. Nothing here decides what may happen to a record.

mod agenda;
mod asks;
mod backup;
mod checks;
mod clock;
mod database;
mod dialect;
mod export;
mod floor;
mod keys;
mod lists;
mod migrate;
mod nodes;
mod open;
mod operations;
mod peers;
mod plugin_state;
mod postgres;
mod prepare;
mod queue;
mod reads;
mod rebuild;
mod recent;
mod request;
mod routing;
mod rows;
mod sqlite;
mod tallies;
mod tokens;
mod verify;
mod views;
mod walk;

pub use backup::tables::STORE_ID_KEY;
pub use backup::{
    BackedUp, BackupError, Contents, Draft, Existing, Place, Restored, SealedBackup, Sizes, Stage, Unpacked,
    Watch, interrupted,
};
pub use export::ClaimLine;
pub use migrate::{SCHEMA_VERSION, migrate_to};
pub use open::{Durability, OpenError};
pub use postgres::{
    PostgresAddress, PostgresError, PostgresFigures, PostgresLedger, PostgresOptions, PostgresStore,
    ScratchError, ScratchSchema, StoreTime, migrate_postgres_to, server_version,
};
pub use rebuild::Rebuilt;
pub use rows::FactLine;
pub use sqlite::{
    AcceptedLoss, BootId, FileHeader, FileLock, Filled, LogContent, LogPlace, LogScan, Loss, Phase,
    SqliteOptions, SqliteStore, Watermark, WriterFigures, accepted_loss, claims_after, facts_after, filled,
    judge, open_for_reading, open_for_rebuilding, rebuild, scan_log, sqlite_version, verify, verify_since,
};
pub use verify::{Difference, Verified};
