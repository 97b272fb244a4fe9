//! A SQLite file. Its own `setup` turns syncing off on the connection that it runs on: here only its migrations run, and every
//! connection syncs fully.

use std::str::FromStr;

use anyhow::Result;
use apalis::prelude::*;
use apalis_sqlite::{Config, SqliteStorage};
use futures::channel::mpsc;
use serde_json::{Value, json};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqliteOperation, SqlitePool, SqlitePoolOptions,
    SqliteSynchronous,
};
use std::sync::{Arc, Mutex};

use crate::wakes::Wakes;
use crate::work::{Seen, Work, noop};
use crate::{BATCH, Job, QUEUE, Settings, answer, now, versions};

/// More connections only wait for each other's lock.
const CONNECTIONS: u32 = 1;

pub struct Place {
    settings: Settings,
    pool: SqlitePool,
    inserted: Arc<Mutex<Option<mpsc::UnboundedReceiver<()>>>>,
}

impl Place {
    pub async fn open(settings: &Settings) -> Result<Self> {
        let path = format!("sqlite://{}/apalis.sqlite", settings.directory);
        let options = SqliteConnectOptions::from_str(&path)?
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full);
        let (tell, inserted) = mpsc::unbounded();
        let pool = SqlitePoolOptions::new()
            .max_connections(CONNECTIONS)
            .after_connect(move |connection, _| {
                let tell = tell.clone();
                Box::pin(async move {
                    connection.lock_handle().await?.set_update_hook(move |event| {
                        if event.operation == SqliteOperation::Insert && event.table == "Jobs" {
                            let _ = tell.unbounded_send(());
                        }
                    });
                    Ok(())
                })
            })
            .connect_with(options)
            .await?;
        Ok(Self { settings: settings.clone(), pool, inserted: Arc::new(Mutex::new(Some(inserted))) })
    }

    pub async fn setup(&self) -> Result<Value> {
        SqliteStorage::migrations().run(&self.pool).await?;
        Ok(json!({ "ready": true }))
    }

    pub fn storage(&self) -> SqliteStorage<Job> {
        SqliteStorage::new(&self.pool).with_config(Config::default().queue(QUEUE).batch_size(BATCH))
    }

    /// The worker runs until the process ends.
    pub async fn work(&self, order: Work) -> Result<()> {
        let inserted = self.inserted.lock().ok().and_then(|mut inserted| inserted.take());
        let mut wakes = Wakes::every(self.settings.look_every());
        if let Some(inserted) = inserted {
            wakes = wakes.and(inserted);
        }
        let seen = Seen::default();
        let began = now();
        let worker = WorkerBuilder::new("peer")
            .backend(self.storage().poll_with_strategy(wakes))
            .data(seen.clone())
            .build(noop);
        tokio::spawn(async move { worker.run().await });
        answer(&json!({ "ready": true, "began": began, "pids": [std::process::id()] }));
        if order.until > 0 {
            let pool = self.pool.clone();
            let done = move || {
                let pool = pool.clone();
                async move {
                    Ok(sqlx::query_scalar("SELECT count(*) FROM Jobs WHERE status = 'Done'")
                        .fetch_one(&pool)
                        .await?)
                }
            };
            tokio::spawn(seen.until_done(order, done));
        }
        Ok(())
    }
}

pub fn described() -> Value {
    json!({
        "versions": versions(),
        "settings": format!("clients and worker in one process on {CONNECTIONS} connection (several only wait for its lock), batch_size {BATCH}, told of inserts by an update hook, polls every 100 ms (idle: every 500 ms, as its examples do); due times are whole seconds"),
        "durability": "WAL, synchronous=FULL on every connection (its own setup() sets OFF; only its migrations are run)",
        "rows": "one row in Jobs: 1 insert and 3 updates (fetched, locked, done); kept",
        "batches": true,
        "together": true,
    })
}
