//! What a run of three steps costs beyond what it cannot do without: three starts of its plugin, and its durable commits.
//!
//! All three take turns, run by run: the pipeline from the publishing of its event to its durable end; the same plugin with the same request
//! under the same supervisor, three times one after the other, without a job; and raw SQLite that makes as many commits of as many pages as
//! the log of our store shows for this very run, and syncs as many of them.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::host::{Host, STEPS};
use super::log::Log;
use super::pages::Pages;
use crate::daemon::report::{Bound, Line, middle, percentile};
use crate::daemon::{Place, ROUNDS};

/// Of both parts together.
const AT_MOST: f64 = 1.5;
/// Both logs have their size, and all files are in memory.
pub const RUNS_BEFORE: usize = 60;
/// What a run leaves behind comes to its end first, a part of the log that is moved into the file too.
pub const PAUSE: Duration = Duration::from_millis(50);

/// The middle times of one round, in seconds.
struct Round {
    run: f64,
    spawns: f64,
    commits: f64,
    /// Commits of one run.
    count: usize,
    /// Those of them that were synced.
    synced: usize,
    /// Pages of all of them.
    pages: u32,
}

impl Round {
    fn ratio(&self) -> f64 {
        self.run / (self.spawns + self.commits)
    }
}

/// One line; the first run of the pipeline was before.
pub fn measure(place: &Place, host: &Host, runs: usize) -> Result<Line> {
    let mut pages = Pages::new(&place.fresh("raw-commits")?.join("raw.sqlite"))?;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push(place.runtime.block_on(round(host, &mut pages, runs))?);
    }
    let round = middle(rounds, Round::ratio);
    let Round { run, spawns, commits, count, synced, pages } = round;
    Ok(Line {
        what: format!(
            "a pipeline of three plugins that do nothing, from publish to end, and three starts of such a plugin ({:.2} ms) \
             with the {count} commits of a run, {synced} of them synced, {pages} pages ({:.2} ms)",
            spawns * 1_000.0,
            commits * 1_000.0
        ),
        measured: format!("{:.2} ms", run * 1_000.0),
        against: format!("{:.2} ms", (spawns + commits) * 1_000.0),
        figure: round.ratio(),
        bound: Bound::AtMost(AT_MOST),
    })
}

async fn round(host: &Host, pages: &mut Pages, runs: usize) -> Result<Round> {
    let log = Log::of(&host.path);
    let assignment = host.assignment(&host.run().await?).await?;
    let (mut of_runs, mut of_spawns, mut of_commits) = (Vec::new(), Vec::new(), Vec::new());
    let mut seen = Vec::new();
    // The log begins anew once in a while: then nobody can say what that run wrote, and it does not count.
    for _ in 0..runs * 2 {
        tokio::time::sleep(PAUSE).await;
        let before = log.read()?;
        let synced_before = host.synced();
        let begin = Instant::now();
        host.run().await?;
        let run = begin.elapsed();
        tokio::time::sleep(PAUSE).await;
        let after = log.read()?;
        let Some(commits) = after.since(&before) else { continue };
        let synced = usize::try_from(host.synced() - synced_before)?;
        let begin = Instant::now();
        for _ in STEPS {
            host.spawn(&assignment).await?;
        }
        of_spawns.push(begin.elapsed().as_secs_f64());
        tokio::time::sleep(PAUSE).await;
        let begin = Instant::now();
        pages.commit_all(commits, synced)?;
        of_commits.push(begin.elapsed().as_secs_f64());
        of_runs.push(run.as_secs_f64());
        seen.push((commits.len(), synced, commits.iter().sum::<u32>()));
        if of_runs.len() == runs {
            break;
        }
    }
    ensure!(of_runs.len() == runs, "the log of the store begins anew too often");
    seen.sort_unstable();
    let (count, synced, pages) = seen[seen.len() / 2];
    Ok(Round {
        run: percentile(&mut of_runs, 50),
        spawns: percentile(&mut of_spawns, 50),
        commits: percentile(&mut of_commits, 50),
        count,
        synced,
        pages,
    })
}
