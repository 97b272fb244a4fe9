//! PostgreSQL, with its listener for new tasks.

use anyhow::Result;
use apalis::prelude::*;
use apalis_postgres::{Config, PgPool, PostgresStorage, Pubsub};
use serde_json::{Value, json};
use sqlx::postgres::PgPoolOptions;

use crate::wakes::Wakes;
use crate::work::{Seen, Work, noop};
use crate::{BATCH, Job, QUEUE, Settings, answer, now, versions};

/// One for each client, and some for the worker.
const CONNECTIONS: u32 = 70;

pub struct Place {
    settings: Settings,
    pool: PgPool,
}

impl Place {
    pub async fn open(settings: &Settings) -> Result<Self> {
        let address = settings.database.clone().unwrap_or_default();
        let pool = PgPoolOptions::new().max_connections(CONNECTIONS).connect_lazy(&address)?;
        Ok(Self { settings: settings.clone(), pool })
    }

    pub async fn setup(&self) -> Result<Value> {
        PostgresStorage::setup(&self.pool).await?;
        Ok(json!({ "ready": true }))
    }

    pub fn storage(&self) -> PostgresStorage<Job> {
        PostgresStorage::new(&self.pool).with_config(Config::default().queue(QUEUE).batch_size(BATCH))
    }

    /// The worker runs until the process ends.
    pub async fn work(&self, order: Work) -> Result<()> {
        let seen = Seen::default();
        let began = now();
        let told = Pubsub::new(self.pool.clone(), QUEUE.to_owned());
        let backend = self.storage().poll_with_strategy(Wakes::every(self.settings.look_every()).and(told));
        let worker = WorkerBuilder::new("peer").backend(backend).data(seen.clone()).build(noop);
        tokio::spawn(async move { worker.run().await });
        answer(&json!({ "ready": true, "began": began, "pids": [std::process::id()] }));
        if order.until > 0 {
            let pool = self.pool.clone();
            let done = move || {
                let pool = pool.clone();
                async move {
                    let count = "SELECT count(*) FROM apalis.jobs WHERE status = 'Done'";
                    Ok(sqlx::query_scalar(count).fetch_one(&pool).await?)
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
        "settings": format!("batch_size {BATCH}, LISTEN/NOTIFY, polls every 100 ms (idle: every 500 ms, as its examples do), {CONNECTIONS} connections at most; due times are whole seconds"),
        "durability": "fsync and synchronous_commit on",
        "rows": "one row in apalis.jobs, kept",
        "batches": true,
    })
}
