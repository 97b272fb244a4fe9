//! Load over HTTP: many kept connections that create jobs, and the wait until all are over.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tokio::runtime::Runtime;

use super::connection::Connection;
use super::process::Address;

/// The same job as on the level of the store.
pub const NOOP: &str = r#"{"title":"render the cover","executor":"noop","input":{"url":"https://example.org/a/b/c","width":1280,"height":720,"format":"png"},"retry":{"max_attempts":3,"backoff_seconds":1,"max_backoff_seconds":60}}"#;
const LOOK_EVERY: Duration = Duration::from_millis(20);
const GIVEN_UP_AFTER: Duration = Duration::from_mins(2);

/// One thread for all connections: what it does not use is left to the daemon.
pub fn runtime() -> Result<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// Creates this many no-op jobs over this many connections; jobs per second.
pub async fn create(address: &Address, connections: usize, jobs: usize) -> Result<f64> {
    let mut open = Vec::with_capacity(connections);
    for _ in 0..connections {
        open.push(Connection::to(address).await?);
    }
    let left = Arc::new(AtomicUsize::new(jobs));
    let begin = Instant::now();
    let callers: Vec<_> = open
        .into_iter()
        .map(|mut connection| {
            let left = left.clone();
            tokio::spawn(async move {
                while left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                    .is_ok()
                {
                    connection.post("/jobs", NOOP).await?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for caller in callers {
        caller.await??;
    }
    Ok(per_second(jobs, begin))
}

/// Creates them and waits until all have completed; jobs per second from the first request to the last end.
pub async fn create_and_finish(address: &Address, connections: usize, jobs: usize) -> Result<f64> {
    let mut connection = Connection::to(address).await?;
    let before = completed(&mut connection).await?;
    let begin = Instant::now();
    create(address, connections, jobs).await?;
    while completed(&mut connection).await? < before + jobs {
        ensure!(begin.elapsed() < GIVEN_UP_AFTER, "not all of {jobs} jobs have completed");
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(per_second(jobs, begin))
}

/// How many jobs the daemon says have completed.
pub async fn completed(connection: &mut Connection) -> Result<usize> {
    let page = connection.text("/metrics").await?;
    let count = page.lines().find_map(|line| line.strip_prefix("longhaul_jobs{state=\"completed\"} "));
    Ok(count.unwrap_or("0").parse()?)
}

#[allow(clippy::cast_precision_loss, reason = "a figure for people")]
fn per_second(jobs: usize, begin: Instant) -> f64 {
    jobs as f64 / begin.elapsed().as_secs_f64()
}
