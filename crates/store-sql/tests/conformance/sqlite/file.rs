//! A store's file: opened, looked into, and written to behind the store's back.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use store_sql::{SqliteOptions, SqliteStore, Verified, open_for_reading, verify};
use tempfile::TempDir;

use crate::given::*;

/// A folder with a store in it, or with what is taken for one.
pub struct File {
    folder: TempDir,
}

impl File {
    /// An empty folder.
    pub fn missing() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    /// These bytes where a store should be.
    pub fn holding(bytes: &[u8]) -> Self {
        let file = Self::missing();
        fs::write(file.path(), bytes).unwrap();
        file
    }

    /// A store that was used for a while and closed: jobs in every stage of life, an operation, bodies, keys, claims.
    pub async fn lived_in() -> Self {
        let file = Self::missing();
        live_in(&file.open()).await;
        file
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("longhaul.sqlite")
    }

    pub fn open(&self) -> SqliteStore {
        SqliteStore::open(&SqliteOptions::at(self.path())).unwrap()
    }

    /// A connection that knows nothing of the store's rules, but is held by its triggers.
    pub fn raw(&self) -> Connection {
        let raw = Connection::open(self.path()).unwrap();
        // So that a bad row can be made at all.
        raw.pragma_update(None, "ignore_check_constraints", true).unwrap();
        raw
    }

    /// Without its watermark: what is lost shows only in what is there.
    pub fn remove_mark(&self) {
        let _ = fs::remove_file(self.path().with_extension("sqlite.mark"));
    }

    /// A statement that the store would never make, past its triggers, on exactly so many rows.
    pub fn tamper(&self, statement: &str, rows: usize) {
        self.remove_mark();
        let raw = self.raw();
        raw.execute_batch("DROP TRIGGER facts_are_never_changed; DROP TRIGGER facts_go_only_when_retired")
            .unwrap();
        assert_eq!(raw.execute(statement, []).unwrap(), rows, "{statement}");
    }

    pub fn bytes(&self) -> Vec<u8> {
        fs::read(self.path()).unwrap()
    }

    pub fn verified(&self) -> Verified {
        verified(&self.path())
    }
}

pub fn verified(path: &Path) -> Verified {
    verify(&open_for_reading(path).unwrap()).unwrap()
}
