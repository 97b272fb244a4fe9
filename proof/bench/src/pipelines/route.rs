//! One event for ten pipelines: events are published over HTTP, each starts ten runs with a job each, and the jobs are counted. Beside it the
//! same number of jobs is created through `execute`, by as many callers. Nothing is dispatched in either.

use std::fmt::Write as _;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use store_sql::{SqliteOptions, SqliteStore};

use crate::cycle;
use crate::daemon::connection::Connection;
use crate::daemon::process::{Address, DaemonProcess};
use crate::daemon::report::{Bound, Line, middle};
use crate::daemon::{Place, ROUNDS, load};

/// Of the rate of creates.
const AT_LEAST: f64 = 0.3;
/// Pipelines that listen to one event.
const PIPELINES: usize = 10;
/// Connections here, callers there.
const CALLERS: usize = 64;
const LOOK_EVERY: Duration = Duration::from_millis(10);
const GIVEN_UP_AFTER: Duration = Duration::from_mins(2);

/// The two take turns.
pub fn measure(place: &Place, events: usize) -> Result<Line> {
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let created = place.runtime.block_on(created(place, events * PIPELINES))?;
        let routed = routed(place, events)?;
        rounds.push((routed, created));
    }
    let (routed, created) = middle(rounds, |(routed, created)| routed / created);
    Ok(Line {
        what: format!(
            "jobs started by events for {PIPELINES} pipelines each, published over HTTP at {CALLERS} connections, and jobs created \
             through `execute` at {CALLERS} callers"
        ),
        measured: format!("{routed:.0}/s"),
        against: format!("{created:.0}/s"),
        figure: routed / created,
        bound: Bound::AtLeast(AT_LEAST),
    })
}

/// Jobs per second.
async fn created(place: &Place, jobs: usize) -> Result<f64> {
    let path = place.fresh("route")?.join("longhaul.sqlite");
    let engine = cycle::engine(Arc::new(SqliteStore::open(&SqliteOptions::at(&path))?));
    let begin = Instant::now();
    cycle::create_many(&engine, CALLERS, jobs, cycle::EXECUTOR, cycle::INPUT).await?;
    Ok(per_second(jobs, begin))
}

/// Jobs per second, from the first request until all are there.
fn routed(place: &Place, events: usize) -> Result<f64> {
    let data_dir = place.fresh("route")?;
    let config = place.fresh("route-config")?.join("longhaul.yaml");
    fs::write(config.with_file_name("ten.yaml"), pipelines())?;
    fs::write(&config, "pipelines: [ten.yaml]\n")?;
    let arguments = ["--no-dispatch".as_ref(), "--config".as_ref(), config.as_os_str()];
    let daemon = DaemonProcess::start_with(&place.binary, &data_dir, &arguments)?;
    load::runtime()?.block_on(publish_all(&daemon.address, events))
}

fn pipelines() -> String {
    let mut file = "pipelines:\n".to_owned();
    for nth in 0..PIPELINES {
        let _ = writeln!(file, "- {{ name: listener-{nth}, on: tide.changed, steps: [{{ uses: noop }}] }}");
    }
    file
}

async fn publish_all(address: &Address, events: usize) -> Result<f64> {
    let mut open = Vec::with_capacity(CALLERS);
    for _ in 0..CALLERS {
        open.push(Connection::to(address).await?);
    }
    let mut watching = Connection::to(address).await?;
    let body: Arc<str> = Arc::from(format!(
        "{{\"type\":\"tide.changed\",\"payload\":{}}}",
        std::str::from_utf8(cycle::INPUT)?
    ));
    let left = Arc::new(AtomicUsize::new(events));
    let begin = Instant::now();
    let callers: Vec<_> = open
        .into_iter()
        .map(|mut connection| {
            let (left, body) = (left.clone(), body.clone());
            tokio::spawn(async move {
                let take = |left: usize| left.checked_sub(1);
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
                    connection.publish(&body).await?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for caller in callers {
        caller.await??;
    }
    let jobs = events * PIPELINES;
    while queued(&mut watching).await? < jobs {
        ensure!(begin.elapsed() < GIVEN_UP_AFTER, "not all of {events} events have started their pipelines");
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(per_second(jobs, begin))
}

async fn queued(connection: &mut Connection) -> Result<usize> {
    let page = connection.text("/metrics").await?;
    let count = page.lines().find_map(|line| line.strip_prefix("longhaul_jobs{state=\"queued\"} "));
    Ok(count.unwrap_or("0").parse()?)
}

#[allow(clippy::cast_precision_loss, reason = "a figure for people")]
fn per_second(jobs: usize, begin: Instant) -> f64 {
    jobs as f64 / begin.elapsed().as_secs_f64()
}
