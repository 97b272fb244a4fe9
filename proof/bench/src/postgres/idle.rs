//! Nodes that have done their work and have nothing to do: how many transactions their database counts meanwhile. They have a
//! database of their own, so that nobody else's are counted, and nothing is vacuumed by itself.

use std::time::Duration;

use anyhow::Result;
use test_postgres::client;

use super::server::Server;
use super::{Sizes, nodes};
use crate::daemon::report::{Bound, Line};
use crate::daemon::{Place, load};

const NODES: usize = 2;
const DATABASE: &str = "idle";
const JOBS_BEFORE: usize = 500;
const CONNECTIONS: usize = 16;
/// Each node may say that it lives this often.
const HEARTBEAT_SECONDS: u64 = 10;
/// What is under way comes to its end first, and the server's sessions tell what they have counted at the latest after ten seconds.
const SETTLE: Duration = Duration::from_secs(12);

pub fn measure(place: &Place, server: &Server, sizes: &Sizes) -> Result<Vec<Line>> {
    let runtime = load::runtime()?;
    let observer = runtime.block_on(async {
        let observer = client(&server.address()).await;
        observer.batch_execute("ALTER SYSTEM SET autovacuum = off").await?;
        observer.batch_execute("SELECT pg_reload_conf()").await?;
        observer.batch_execute(&format!("CREATE DATABASE {DATABASE}")).await?;
        anyhow::Ok(observer)
    })?;
    let database = server.address().replace("/postgres", &format!("/{DATABASE}"));
    let nodes = nodes::start(place, &database, NODES)?;
    for node in &nodes {
        runtime.block_on(load::create_and_finish(&node.address, CONNECTIONS, JOBS_BEFORE))?;
    }
    let counted = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = $1";
    let transactions =
        || -> Result<i64> { Ok(runtime.block_on(observer.query_one(counted, &[&DATABASE]))?.get(0)) };
    std::thread::sleep(SETTLE);
    let before = transactions()?;
    std::thread::sleep(Duration::from_secs(sizes.idle_seconds));
    let seen = transactions()? - before;
    let beats = NODES as u64 * (sizes.idle_seconds / HEARTBEAT_SECONDS + 1);
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let (figure, most) = (seen as f64, beats as f64);
    Ok(vec![Line {
        what: format!(
            "transactions of {NODES} idle nodes in {} s, and a heartbeat each every {HEARTBEAT_SECONDS} s",
            sizes.idle_seconds
        ),
        measured: seen.to_string(),
        against: beats.to_string(),
        figure,
        bound: Bound::AtMost(most),
    }])
}
