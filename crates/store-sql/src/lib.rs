//! The store's contract on SQL. Today on SQLite: one file, one writer thread, group commit.
//!
//! Row statements and reads are written once, with `$n` placeholders; what a database does differently stands in
//! `dialect.rs`. Nothing here decides what may happen to a record.

mod dialect;
mod export;
mod floor;
mod migrate;
mod open;
mod prepare;
mod rebuild;
mod rows;
mod sqlite;
mod verify;
mod walk;

pub use export::{ClaimLine, claims_after, facts_after};
pub use migrate::{SCHEMA_VERSION, migrate_to};
pub use open::OpenError;
pub use rebuild::{Rebuilt, rebuild};
pub use rows::FactLine;
pub use sqlite::{
    Durability, SqliteOptions, SqliteStore, WriterFigures, open_for_reading, open_for_rebuilding,
};
pub use verify::{Difference, Verified, verify};
