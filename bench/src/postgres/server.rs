//! The throw-away server, and what is looked up in it behind the store's back.

use std::path::Path;

use anyhow::{Result, ensure};
use store_sql::PostgresAddress;
use test_postgres::{Cluster, Schema, client};

/// A server of the bench's own.
pub struct Server {
    cluster: Cluster,
}

/// What the ledger of a run says.
pub struct Ledger {
    /// Facts that were written by one transaction, on average.
    pub facts_per_transaction: f64,
    /// How many jobs have more or fewer than one attempt and one end.
    pub not_run_once: i64,
}

impl Server {
    pub fn start(dir: &Path) -> Self {
        Self { cluster: Cluster::start_in(dir) }
    }

    pub fn address(&self) -> String {
        self.cluster.address()
    }

    /// An empty schema, and a server that has nothing to catch up with.
    pub async fn fresh(&self) -> Result<Schema> {
        let server = client(&self.address()).await;
        let old =
            server.query("SELECT nspname::text FROM pg_namespace WHERE nspname LIKE 'test\\_%'", &[]).await?;
        for row in old {
            server.batch_execute(&format!("DROP SCHEMA {} CASCADE", row.get::<_, String>(0))).await?;
        }
        server.batch_execute("CHECKPOINT").await?;
        Ok(Schema::on(&self.address()).await)
    }
}

/// The address of a schema, as a store takes it.
pub fn address(schema: &Schema) -> Result<PostgresAddress> {
    Ok(PostgresAddress::parse(&schema.address)?)
}

/// How many jobs have completed.
pub async fn completed(client: &tokio_postgres::Client) -> Result<i64> {
    Ok(client.query_one("SELECT count(*) FROM jobs WHERE state = 'completed'", &[]).await?.get(0))
}

/// Reads the ledger of a run of so many jobs.
pub async fn ledger(schema: &Schema, jobs: usize) -> Result<Ledger> {
    let client = schema.client().await;
    // Every row knows the transaction that wrote it.
    let written = "SELECT count(*)::float8 / count(DISTINCT xmin::text) FROM facts";
    let facts_per_transaction = client.query_one(written, &[]).await?.get(0);
    let once = "SELECT count(*), count(*) FILTER (WHERE attempts <> 1 OR ends <> 1) FROM (\
                SELECT count(*) FILTER (WHERE kind LIKE 'job.dispatched/%') AS attempts, \
                       count(*) FILTER (WHERE kind LIKE 'job.completed/%') AS ends FROM facts GROUP BY stream) AS streams";
    let row = client.query_one(once, &[]).await?;
    let (streams, not_run_once): (i64, i64) = (row.get(0), row.get(1));
    ensure!(usize::try_from(streams) == Ok(jobs), "{streams} of {jobs} jobs are on the ledger");
    Ok(Ledger { facts_per_transaction, not_run_once })
}
