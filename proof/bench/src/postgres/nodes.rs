//! Nodes on one database, each a process: two and four beside one, and whether any job was run twice.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use test_postgres::Schema;

use super::Sizes;
use super::server::{Server, completed, not_run_once};
use crate::daemon::process::{Address, DaemonProcess};
use crate::daemon::report::{Bound, Line, middle};
use crate::daemon::{Place, load};

/// Of the rate of one node: what others may cost in sum.
const AT_LEAST_IN_SUM: f64 = 0.7;
/// Connections of the load generator, over all nodes.
const CONNECTIONS: usize = 64;
const MORE_NODES: [usize; 2] = [2, 4];
const LOOK_EVERY: Duration = Duration::from_millis(50);
const GIVEN_UP_AFTER: Duration = Duration::from_mins(5);

/// One round: everything takes its turn.
struct Round {
    one: f64,
    more: [f64; MORE_NODES.len()],
    not_run_once: i64,
}

pub fn measure(place: &Place, server: &Server, sizes: &Sizes) -> Result<Vec<Line>> {
    let mut rounds = Vec::new();
    let mut not_run_once = 0;
    for _ in 0..sizes.rounds {
        let round = round(place, server, sizes.jobs)?;
        not_run_once += round.not_run_once;
        rounds.push(round);
    }
    let mut lines = Vec::new();
    for (place, count) in MORE_NODES.into_iter().enumerate() {
        let pairs: Vec<(f64, f64)> = rounds.iter().map(|round| (round.more[place], round.one)).collect();
        let (more, one) = middle(pairs, |(more, one)| more / one);
        lines.push(Line {
            what: format!(
                "no-op jobs over HTTP to their end at {CONNECTIONS} connections through {count} nodes in sum, and through one"
            ),
            measured: format!("{more:.0}/s"),
            against: format!("{one:.0}/s"),
            figure: more / one,
            bound: Bound::AtLeast(AT_LEAST_IN_SUM),
        });
    }
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let figure = not_run_once as f64;
    lines.push(Line {
        what: "jobs of all these that did not have exactly one attempt and one end, by the ledger".to_owned(),
        measured: not_run_once.to_string(),
        against: "0".to_owned(),
        figure,
        bound: Bound::AtMost(0.0),
    });
    Ok(lines)
}

fn round(place: &Place, server: &Server, jobs: usize) -> Result<Round> {
    let schema = place.runtime.block_on(server.fresh())?;
    let one = finish(place, &schema, 1, jobs)?;
    let mut twice = place.runtime.block_on(not_run_once(&schema, jobs))?;
    let mut more = [0.0; MORE_NODES.len()];
    for (count, rate) in MORE_NODES.into_iter().zip(&mut more) {
        let schema = place.runtime.block_on(server.fresh())?;
        *rate = finish(place, &schema, count, jobs)?;
        twice += place.runtime.block_on(not_run_once(&schema, jobs))?;
    }
    Ok(Round { one, more, not_run_once: twice })
}

/// Starts so many nodes on a database.
pub fn start(place: &Place, database: &str, count: usize) -> Result<Vec<DaemonProcess>> {
    let dirs: Result<Vec<PathBuf>> =
        (0..count).map(|number| place.fresh(&format!("node-{number}"))).collect();
    let arguments = ["--database".as_ref(), database.as_ref()];
    dirs?.iter().map(|dir| DaemonProcess::start_with(&place.binary, dir, &arguments)).collect()
}

/// Creates these jobs through all of so many nodes and waits for the end of all; jobs per second.
fn finish(place: &Place, schema: &Schema, count: usize, jobs: usize) -> Result<f64> {
    let nodes = start(place, &schema.address, count)?;
    let addresses: Vec<Address> = nodes.iter().map(|node| node.address.clone()).collect();
    load::runtime()?.block_on(async {
        let client = schema.client().await;
        let begin = Instant::now();
        let loads = addresses.iter().enumerate().map(|(number, address)| {
            let share = jobs / count + usize::from(number < jobs % count);
            load::create(address, CONNECTIONS / count, share)
        });
        futures::future::try_join_all(loads).await?;
        while usize::try_from(completed(&client).await?)? < jobs {
            ensure!(begin.elapsed() < GIVEN_UP_AFTER, "not all of {jobs} jobs have completed");
            tokio::time::sleep(LOOK_EVERY).await;
        }
        #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
        let rate = jobs as f64 / begin.elapsed().as_secs_f64();
        Ok(rate)
    })
}
