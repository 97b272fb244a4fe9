//! Many who pull drain a lane over HTTP: claim, heartbeat, completion; each job has exactly one owner.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use rusqlite::{Connection as Reader, OpenFlags};
use serde::Deserialize;

use super::{PULLERS, stored};
use crate::daemon::connection::Connection;
use crate::daemon::process::{Address, DaemonProcess, Dispatch};
use crate::daemon::report::{Bound, Line, middle};
use crate::daemon::{Place, ROUNDS, load};

/// Of the rate of the store.
const AT_LEAST: f64 = 0.2;
/// Questions to the store for each job that is handed out.
const QUESTIONS: f64 = 1.5;
const JOB: &str = r#"{"lane":"print"}"#;
/// Jobs in one request.
const BATCH: usize = 1_000;

/// Two lines: the rate, and what each job is asked for.
pub fn measure(place: &Place, jobs: usize) -> Result<[Line; 2]> {
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let path = place.fresh("pulled")?.join("longhaul.sqlite");
        let in_store = place.runtime.block_on(stored::rate(&path, jobs))?;
        let data_dir = place.fresh("pulled")?;
        let daemon = DaemonProcess::start(&place.binary, &data_dir, Dispatch::On)?;
        let (rate, questions) = load::runtime()?.block_on(drain(&daemon.address, jobs))?;
        drop(daemon);
        each_had_one_owner(&data_dir, jobs)?;
        rounds.push((rate, in_store, questions));
    }
    let most_questions = rounds.iter().map(|round| round.2).fold(0.0, f64::max);
    let (rate, in_store, _) = middle(rounds, |(rate, in_store, _)| rate / in_store);
    Ok([
        Line {
            what: format!(
                "claim, heartbeat and completion over HTTP by {PULLERS} who pull, and through the store"
            ),
            measured: format!("{rate:.0}/s"),
            against: format!("{in_store:.0}/s"),
            figure: rate / in_store,
            bound: Bound::AtLeast(AT_LEAST),
        },
        Line {
            what: format!(
                "questions to the store for each job that {PULLERS} are handed, most of {ROUNDS} rounds"
            ),
            measured: format!("{most_questions:.2}"),
            against: "1".to_owned(),
            figure: most_questions,
            bound: Bound::Below(QUESTIONS),
        },
    ])
}

/// The rate, and the questions to the store per job.
async fn drain(address: &Address, jobs: usize) -> Result<(f64, f64)> {
    let mut control = Connection::to(address).await?;
    let mut left = jobs;
    while left > 0 {
        let count = left.min(BATCH);
        let body = format!("{{\"jobs\":[{}]}}", vec![JOB; count].join(","));
        control.post("/jobs/batch", &body).await?;
        left -= count;
    }
    let before = counted(&mut control, "longhaul_hand_out_questions_total ").await?;
    let begin = Instant::now();
    let mut pullers = Vec::new();
    for nth in 0..PULLERS {
        let connection = Connection::to(address).await?;
        pullers.push(tokio::spawn(pull_all(connection, nth)));
    }
    let mut done = 0;
    for puller in pullers {
        done += puller.await??;
    }
    let seconds = begin.elapsed().as_secs_f64();
    ensure!(done == jobs, "{done} of {jobs} jobs were handed out");
    let questions = counted(&mut control, "longhaul_hand_out_questions_total ").await? - before;
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let jobs = jobs as f64;
    Ok((jobs / seconds, questions / jobs))
}

#[derive(Deserialize)]
struct Answer {
    job: Option<Handed>,
}

#[derive(Deserialize)]
struct Handed {
    job_id: String,
    attempt_id: String,
}

/// Pulls until nothing is left; how many it had.
async fn pull_all(mut connection: Connection, nth: usize) -> Result<usize> {
    let next = format!(r#"{{"worker_id":"bench-{nth}","lanes":["print"],"wait_seconds":1}}"#);
    let mut done = 0;
    loop {
        let answer: Answer = serde_json::from_slice(connection.post("/jobs/next", &next).await?)?;
        let Some(Handed { job_id, attempt_id }) = answer.job else { return Ok(done) };
        let beat = format!(r#"{{"attempt_id":"{attempt_id}"}}"#);
        connection.post(&format!("/jobs/{job_id}/heartbeat"), &beat).await?;
        let completed = format!(r#"{{"attempt_id":"{attempt_id}","result":{{"ok":true}}}}"#);
        connection.post(&format!("/jobs/{job_id}/complete"), &completed).await?;
        done += 1;
    }
}

/// A figure of the daemon's own.
pub async fn counted(connection: &mut Connection, name: &str) -> Result<f64> {
    let page = connection.text("/metrics").await?;
    Ok(page.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("0").parse()?)
}

fn each_had_one_owner(data_dir: &Path, jobs: usize) -> Result<()> {
    let store = Reader::open_with_flags(data_dir.join("longhaul.sqlite"), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let counted = |kind: &str| -> Result<(usize, usize)> {
        let sql = "SELECT count(*), count(DISTINCT stream) FROM facts WHERE kind = ?1";
        let (all, streams): (i64, i64) =
            store.query_row(sql, [kind], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok((usize::try_from(all)?, usize::try_from(streams)?))
    };
    for kind in ["job.dispatched/1", "job.completed/1"] {
        let (all, streams) = counted(kind)?;
        ensure!((all, streams) == (jobs, jobs), "{all} times {kind} of {streams} jobs, and there are {jobs}");
    }
    Ok(())
}
