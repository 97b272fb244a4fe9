//! What the handler has seen, and the wait until so many tasks are done in the database.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Result;
use apalis::prelude::*;
use serde::Deserialize;
use serde_json::json;

use crate::{Job, answer, now};

const LOOK_EVERY: Duration = Duration::from_millis(5);

#[derive(Deserialize)]
pub struct Work {
    pub until: usize,
    seconds: f64,
    lateness: bool,
}

/// Milliseconds from the time in each job to the start of its handler.
#[derive(Clone, Default)]
pub struct Seen(Arc<Mutex<Vec<f64>>>);

pub async fn noop(job: Job, seen: Data<Seen>) -> Result<(), BoxDynError> {
    if let Ok(mut seen) = seen.0.0.lock() {
        seen.push((now() - job.at) * 1_000.0);
    }
    Ok(())
}

impl Seen {
    fn count(&self) -> usize {
        self.0.lock().map_or(0, |seen| seen.len())
    }

    /// Asks the database only when the handler has seen everything, or when time is up.
    pub async fn until_done<F, D>(self, order: Work, done: D)
    where
        D: Fn() -> F,
        F: Future<Output = Result<i64>>,
    {
        let begin = Instant::now();
        loop {
            let time_is_up = begin.elapsed().as_secs_f64() >= order.seconds;
            if time_is_up || self.count() >= order.until {
                let count = done().await.unwrap_or(0);
                if time_is_up || count >= order.until as i64 {
                    let ended = now();
                    let lateness = if order.lateness {
                        self.0.lock().map_or(vec![], |seen| seen.clone())
                    } else {
                        vec![]
                    };
                    answer(&json!({ "done": count, "ended": ended, "lateness": lateness }));
                    return;
                }
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
