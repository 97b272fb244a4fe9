//! Load over HTTP: many kept connections that create jobs, and the wait until all are over.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tokio::runtime::Runtime;

use crate::connection::Connection;
use crate::process::Address;

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
    let begin = Instant::now();
    send(address, connections, jobs, "/jobs", NOOP).await?;
    Ok(per_second(jobs, begin))
}

/// Sends the same request so often over this many connections; how long each took, in seconds.
pub async fn send(
    address: &Address,
    connections: usize,
    requests: usize,
    path: &'static str,
    body: &str,
) -> Result<Vec<f64>> {
    let body: Arc<str> = Arc::from(body);
    let mut open = Vec::with_capacity(connections);
    for _ in 0..connections {
        open.push(Connection::to(address).await?);
    }
    let left = Arc::new(AtomicUsize::new(requests));
    let callers: Vec<_> = open
        .into_iter()
        .map(|mut connection| {
            let (left, body) = (left.clone(), body.clone());
            tokio::spawn(async move {
                let mut each = Vec::new();
                while left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                    .is_ok()
                {
                    let began = Instant::now();
                    connection.post(path, &body).await?;
                    each.push(began.elapsed().as_secs_f64());
                }
                anyhow::Ok(each)
            })
        })
        .collect();
    let mut each = Vec::with_capacity(requests);
    for caller in callers {
        each.extend(caller.await??);
    }
    Ok(each)
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
    in_state(connection, "completed").await
}

/// How many jobs the daemon says are in a state.
pub async fn in_state(connection: &mut Connection, state: &str) -> Result<usize> {
    let page = connection.text("/metrics").await?;
    let wanted = format!("longhaul_jobs{{state=\"{state}\"}} ");
    let count = page.lines().find_map(|line| line.strip_prefix(&wanted));
    Ok(count.unwrap_or("0").parse()?)
}

#[allow(clippy::cast_precision_loss, reason = "a figure for people")]
fn per_second(jobs: usize, begin: Instant) -> f64 {
    jobs as f64 / begin.elapsed().as_secs_f64()
}
