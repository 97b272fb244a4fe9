//! The store's contract on SQL: on SQLite (one file, one writer thread) and on PostgreSQL (one database, any number of nodes),
//! both with group commit.
//!
//! Reads, walks and row statements are written once against `database.rs`, with `$n` placeholders; what a database does
//! differently stands in `dialect.rs`. Nothing here decides what may happen to a record.

#![cfg_attr(
    not(feature = "postgres"),
    allow(dead_code, unused_imports, reason = "what both databases share is not all used by one")
)]

mod backup;
mod checks;
mod database;
mod dialect;
mod export;
mod migrate;
mod open;
#[cfg(feature = "postgres")]
mod postgres;
mod prepare;
mod queue;
mod reads;
mod rebuild;
mod recent;
mod request;
mod rows;
mod sqlite;
mod tables;
mod verify;
mod walk;
pub(crate) use request::{answer, side_writes};
pub(crate) use tables::{
    agenda, asks, clock, floor, keys, lists, nodes, operations, peers, plugin_state, records, tallies,
    tokens, views,
};

pub use backup::tables::STORE_ID_KEY;
pub use backup::{
    BackedUp, BackupError, Contents, Draft, Existing, Place, Restored, SealedBackup, Sizes, Stage, Unpacked,
    Watch, interrupted,
};
pub use export::ClaimLine;
pub use migrate::{SCHEMA_VERSION, migrate_to};
pub use open::{Durability, OpenError};
#[cfg(feature = "postgres")]
pub use postgres::{
    PostgresAddress, PostgresError, PostgresFigures, PostgresLedger, PostgresOptions, PostgresStore,
    ScratchError, ScratchSchema, StoreTime, migrate_postgres_to, server_version,
};
pub use rebuild::Rebuilt;
pub use rows::FactLine;
pub use sqlite::{
    AcceptedLoss, BootId, FileHeader, FileLock, Filled, LogContent, LogPlace, LogScan, Loss, Phase,
    SqliteOptions, SqliteStore, Watermark, WriterFigures, accepted_loss, claims_after, facts_after, filled,
    judge, open_for_reading, open_for_rebuilding, rebuild, refuse_damaged, scan_log, sqlite_version, verify,
    verify_since,
};
pub use verify::{Difference, Verified};
