//! A daemon that takes jobs, watched until so many are completed.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Deserialize;
use serde_json::json;

use super::{Settings, answer, lateness, now};
use crate::daemon::connection::Connection;
use crate::daemon::load;
use crate::daemon::process::{DaemonProcess, Dispatch};

/// How often the daemon is asked for its counts, where the end is part of the figure.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Where it is not: whoever looks takes the processor's time, which is.
const LOOK_RARELY: Duration = Duration::from_millis(500);

#[derive(Deserialize)]
pub struct Work {
    /// Told when so many are completed; 0: the daemon only runs.
    until: usize,
    /// Told what there is after so long.
    seconds: f64,
    /// Told with how late each one was.
    lateness: bool,
}

/// Starts it, says so, and says when the work is done. It runs until it is dropped.
pub fn run(settings: &Settings, work: &Work) -> Result<DaemonProcess> {
    let began = now();
    let daemon = settings.start(Dispatch::On)?;
    answer(&json!({ "ready": true, "began": began, "pids": [daemon.id()], "server": daemon.address }));
    if work.until == 0 {
        return Ok(daemon);
    }
    let begin = Instant::now();
    let look_every = if work.lateness { LOOK_RARELY } else { LOOK_EVERY };
    let done = load::runtime()?.block_on(async {
        let mut connection = Connection::to(&daemon.address).await?;
        loop {
            let done = load::completed(&mut connection).await?;
            if done >= work.until || begin.elapsed().as_secs_f64() >= work.seconds {
                return anyhow::Ok(done);
            }
            tokio::time::sleep(look_every).await;
        }
    })?;
    let ended = now();
    let lateness = if work.lateness { lateness::read(settings)? } else { Vec::new() };
    answer(&json!({ "done": done, "ended": ended, "lateness": lateness }));
    Ok(daemon)
}
