//! A store's schema: opened, looked into, and written to behind the store's back.

use std::time::Duration;

use store_sql::{OpenError, PostgresAddress, PostgresLedger, PostgresOptions, PostgresStore, Verified};
use test_postgres::Schema;
use tokio_postgres::Client;

use crate::given::live_in;
use crate::subject::open_postgres;

/// How long anything may take that must happen.
const PATIENCE: Duration = Duration::from_mins(1);

/// A schema with a store in it, or with what is taken for one.
pub struct Database {
    pub schema: Schema,
}

impl Database {
    /// An empty schema.
    pub async fn missing() -> Self {
        Self { schema: Schema::new().await }
    }

    /// A store that was used for a while and closed: jobs in every stage of life, an operation, bodies, keys, claims.
    pub async fn lived_in() -> Self {
        let database = Self::missing().await;
        let store = database.open().await;
        live_in(&store).await;
        store.close().await;
        database
    }

    pub fn address(&self) -> PostgresAddress {
        PostgresAddress::parse(&self.schema.address).unwrap()
    }

    pub async fn open(&self) -> PostgresStore {
        open_postgres(&self.schema).await
    }

    pub async fn try_open(&self) -> Result<PostgresStore, OpenError> {
        PostgresStore::open(&PostgresOptions::at(self.address())).await
    }

    pub async fn ledger(&self) -> PostgresLedger {
        PostgresLedger::open(&self.address()).await.unwrap()
    }

    pub async fn raw(&self) -> Client {
        self.schema.client().await
    }

    /// A statement that the store would never make, past its triggers, on exactly so many rows.
    pub async fn tamper(&self, statement: &str, rows: u64) {
        let raw = self.raw().await;
        raw.batch_execute("ALTER TABLE facts DISABLE TRIGGER USER").await.unwrap();
        assert_eq!(raw.execute(statement, &[]).await.unwrap(), rows, "{statement}");
        raw.batch_execute("ALTER TABLE facts ENABLE TRIGGER USER").await.unwrap();
    }

    pub async fn verified(&self) -> Verified {
        self.ledger().await.verify().await.unwrap()
    }

    /// Every row of a table, as text.
    pub async fn rows(&self, table: &str) -> Vec<String> {
        let rows =
            self.raw().await.query(&format!("SELECT {table}::text FROM {table} ORDER BY 1"), &[]).await;
        rows.unwrap().iter().map(|row| row.get(0)).collect()
    }
}

/// Waits for what must happen, but not for ever.
pub async fn soon<T>(answer: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, answer).await.expect("it happens within a minute")
}
