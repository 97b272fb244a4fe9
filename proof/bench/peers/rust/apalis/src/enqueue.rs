//! Pushes tasks: for a time or up to a number, one by one or in bulk, now or due later.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use apalis::prelude::*;
use apalis_core::backend::finalize::Durable;
use futures::stream;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Job, now};

/// The most jobs of one order: more is a mistake.
const MAX_JOBS: usize = 10_000_000;

#[derive(Clone, Deserialize)]
pub struct Enqueue {
    jobs: Option<usize>,
    seconds: Option<f64>,
    clients: usize,
    batch: usize,
    pause_ms: Option<[f64; 2]>,
    due: Option<[f64; 2]>,
}

/// Each client has a copy of the storage.
pub async fn run<S>(storage: S, order: Enqueue) -> Result<Value>
where
    S: TaskSink<Job, Durable> + Clone + Send + 'static,
    S::Error: std::fmt::Debug,
{
    let jobs = order.jobs.unwrap_or(MAX_JOBS);
    let taken = Arc::new(AtomicUsize::new(0));
    let (began, begin) = (now(), Instant::now());
    let until = order.seconds.map(|seconds| begin + Duration::from_secs_f64(seconds));
    let clients: Vec<_> = (0..order.clients)
        .map(|_| {
            let (mut storage, taken, order) = (storage.clone(), taken.clone(), order.clone());
            tokio::spawn(async move {
                while until.is_none_or(|until| Instant::now() < until) {
                    let take = |taken: usize| (taken < jobs).then(|| (taken + order.batch).min(jobs));
                    let Ok(first) = taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) else {
                        break;
                    };
                    let last = (first + order.batch).min(jobs);
                    let tasks: Vec<_> = (first..last).map(|number| task(order.due, number, jobs)).collect();
                    let pushed = match <[_; 1]>::try_from(tasks) {
                        Ok([task]) => storage.push_task(task).await,
                        Err(tasks) => storage.push_all(stream::iter(tasks)).await,
                    };
                    pushed.map_err(|failed| anyhow!("{failed:?}"))?;
                    if let Some([least, most]) = order.pause_ms {
                        let share = (first.wrapping_mul(2_654_435_761) % 1_000) as f64 / 1_000.0;
                        tokio::time::sleep(Duration::from_secs_f64(
                            (least + (most - least) * share) / 1_000.0,
                        ))
                        .await;
                    }
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for client in clients {
        client.await??;
    }
    Ok(json!({ "jobs": taken.load(Ordering::Relaxed), "began": began, "ended": now() }))
}

/// Due times are whole seconds there: rounded up, so that nothing begins too early.
fn task(due: Option<[f64; 2]>, number: usize, jobs: usize) -> Task<Job> {
    match due {
        None => TaskBuilder::new(Job::at(now())).build(),
        Some([from, within]) => {
            let at = from + within * number as f64 / jobs as f64;
            TaskBuilder::new(Job::at(at)).run_at_timestamp(at.ceil() as u64).build()
        }
    }
}
