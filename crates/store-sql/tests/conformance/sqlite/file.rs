//! A store's file: opened, looked into, and written to behind the store's back.

use std::fs;
use std::path::{Path, PathBuf};

use domain::BodyName;
use rusqlite::Connection;
use store::Store;
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

    /// A statement that the store would never make, past its triggers, on exactly so many rows.
    pub fn tamper(&self, statement: &str, rows: usize) {
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

async fn live_in(store: &dyn Store) {
    for name in ["queued", "running", "outside", "done", "lost"] {
        let body = new_body(BodyName::Input, name.as_bytes());
        let named = created_with(|new| {
            new.spec.circle = Some("press".to_owned());
            new.spec.owner_peer_id = Some("peer-ada".to_owned());
            new.bodies = vec![body.body];
        });
        let mut creating = creation(&job(name), named, at(0));
        creating.bodies = vec![body];
        let mut step = commit(vec![creating], at(0));
        step.keys = vec![kept(key(name), &job(name), b"created")];
        store.commit(step).await.unwrap();
    }
    write(store, &job("later"), vec![created_with(|new| new.due_at = Some(at(500)))], at(1)).await;
    for name in ["running", "outside", "done", "lost"] {
        taken(store, &job(name), "node-a", at(2)).await;
        write(store, &job(name), vec![dispatched(1), noted("begun")], at(2)).await;
    }
    let deferring = next_change(store, &job("outside"), vec![deferred(&operation("press"))], at(3)).await;
    let mut accepting = creation(&operation("press"), accepted(&job("outside"), at(8)), at(3));
    accepting.bodies = vec![new_body(BodyName::Handle, b"render-7")];
    store.commit(commit(vec![deferring, accepting], at(3))).await.unwrap();
    taken(store, &operation("press"), "node-a", at(8)).await;
    write(store, &operation("press"), vec![polled(at(38))], at(9)).await;
    write(store, &job("lost"), vec![lease_lost()], at(62)).await;
    let result = new_body(BodyName::Result, b"{\"pages\":12}");
    let mut ending = next_change(store, &job("done"), vec![completed_with(result.body)], at(63)).await;
    ending.bodies = vec![result];
    store.commit(commit(vec![ending], at(63))).await.unwrap();
}
