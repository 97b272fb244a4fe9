//! The throw-away server, and what is looked up in it behind the store's back.

use std::path::Path;

use anyhow::{Result, ensure};
use test_postgres::{Cluster, Schema, client};

/// A server of the bench's own.
pub struct Server {
    cluster: Cluster,
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

/// How many jobs have completed.
pub async fn completed(client: &tokio_postgres::Client) -> Result<i64> {
    Ok(client.query_one("SELECT count(*) FROM jobs WHERE state = 'completed'", &[]).await?.get(0))
}

/// How many of so many jobs have more or fewer than one attempt and one end, by the ledger.
pub async fn not_run_once(schema: &Schema, jobs: usize) -> Result<i64> {
    let client = schema.client().await;
    let once = "SELECT count(*), count(*) FILTER (WHERE attempts <> 1 OR ends <> 1) FROM (\
                SELECT count(*) FILTER (WHERE kind LIKE 'job.dispatched/%') AS attempts, \
                       count(*) FILTER (WHERE kind LIKE 'job.completed/%') AS ends FROM facts GROUP BY stream) AS streams";
    let row = client.query_one(once, &[]).await?;
    let (streams, not_run_once): (i64, i64) = (row.get(0), row.get(1));
    ensure!(usize::try_from(streams) == Ok(jobs), "{streams} of {jobs} jobs are on the ledger");
    Ok(not_run_once)
}
