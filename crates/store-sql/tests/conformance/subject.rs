//! The stores that the suite runs on.

use std::ops::Deref;
use std::sync::Arc;

use store::{MemoryStore, Store};
use store_sql::{PostgresAddress, PostgresOptions, PostgresStore, SqliteOptions, SqliteStore};
use tempfile::TempDir;
use test_postgres::Schema;

/// Every store.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Memory,
    Sqlite,
    Postgres,
}

const STORES: [Kind; 3] = [Kind::Memory, Kind::Sqlite, Kind::Postgres];

/// An empty store, and what it lies on.
pub struct Subject {
    store: Arc<dyn Store>,
    _folder: Option<TempDir>,
}

/// Runs a test on each store; the name of the last one printed is the store that it failed on.
pub async fn on_every_store(test: impl AsyncFn(Subject)) {
    for kind in STORES {
        println!("on the {kind:?} store:");
        test(open(kind).await).await;
    }
}

async fn open(kind: Kind) -> Subject {
    match kind {
        Kind::Memory => Subject { store: Arc::new(MemoryStore::new()), _folder: None },
        Kind::Sqlite => {
            let folder = TempDir::new().unwrap();
            let store = SqliteStore::open(&SqliteOptions::at(folder.path().join("longhaul.sqlite"))).unwrap();
            Subject { store: Arc::new(store), _folder: Some(folder) }
        }
        Kind::Postgres => {
            let schema = Schema::new().await;
            Subject { store: Arc::new(open_postgres(&schema).await), _folder: None }
        }
    }
}

/// The store of a schema.
pub async fn open_postgres(schema: &Schema) -> PostgresStore {
    let address = PostgresAddress::parse(&schema.address).unwrap();
    PostgresStore::open(&PostgresOptions::at(address)).await.unwrap()
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
