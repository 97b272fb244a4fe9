//! The stores that the suite runs on.

use std::ops::Deref;
use std::sync::Arc;

use store::{MemoryStore, Store};
use store_sql::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

/// How an empty store is made.
type Factory = fn() -> Subject;

/// Every store, by name.
const STORES: [(&str, Factory); 2] = [("memory", memory), ("SQLite", sqlite)];

/// An empty store, and what it lies on.
pub struct Subject {
    store: Arc<dyn Store>,
    _folder: Option<TempDir>,
}

/// Runs a test on each store; the name of the last one printed is the store that it failed on.
pub async fn on_every_store(test: impl AsyncFn(Subject)) {
    for (name, open) in STORES {
        println!("on the {name} store:");
        test(open()).await;
    }
}

fn memory() -> Subject {
    Subject { store: Arc::new(MemoryStore::new()), _folder: None }
}

fn sqlite() -> Subject {
    let folder = TempDir::new().unwrap();
    let store = SqliteStore::open(&SqliteOptions::at(folder.path().join("longhaul.sqlite"))).unwrap();
    Subject { store: Arc::new(store), _folder: Some(folder) }
}

impl Subject {
    /// The store for another task.
    pub fn share(&self) -> Arc<dyn Store> {
        self.store.clone()
    }
}

impl Deref for Subject {
    type Target = dyn Store;

    fn deref(&self) -> &Self::Target {
        &*self.store
    }
}
