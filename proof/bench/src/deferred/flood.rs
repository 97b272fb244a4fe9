//! A daemon that starts and finds everything overdue: how many questions are under way at once, how evenly they go out, and how
//! long a request of a client takes meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use engine::{Clock, SystemClock};

use super::Sizes;
use super::due::PATIENCE;
use super::host::{Host, PACED, Poll};
use super::open::{AtOnce, Open};
use super::service::ServiceProcess;
use crate::daemon::Place;
use crate::daemon::connection::Connection;
use crate::daemon::load;
use crate::daemon::process::Address;
use crate::daemon::report::{Bound, Line, percentile};

/// What the host grants by itself.
const UNDER_WAY_AT_MOST: f64 = 32.0;
const TIMES_THE_MEAN: f64 = 2.0;
const REQUEST_AT_MOST_MS: f64 = 250.0;
const SERVICES: usize = 20;
const OVERDUE_SINCE_SECONDS: u64 = 7_300;
const DUE_AFTER_SECONDS: u32 = 3_600;
/// Between two requests of the client.
const PAUSE: Duration = Duration::from_millis(5);

/// Three lines.
pub fn measure(place: &Place, service: &ServiceProcess, sizes: &Sizes) -> Result<Vec<Line>> {
    let now = SystemClock::starting_at(domain::Timestamp::default()).now();
    let at =
        domain::Timestamp::from_seconds(now.micros() / 1_000_000 - i64::try_from(OVERDUE_SINCE_SECONDS)?);
    let each = sizes.overdue / SERVICES;
    let kinds = (0..SERVICES).map(|number| (format!("{PACED}-{number}"), each)).collect();
    let open = Open {
        kinds,
        service: service.address,
        at,
        due_after_seconds: DUE_AFTER_SECONDS,
        at_once: AtOnce::USUAL,
    };
    let host = Host::filled(place, "flood", open)?;
    let daemon = host.start(place)?;
    let (over, address) = (Arc::new(AtomicBool::new(false)), daemon.address.clone());
    let client = std::thread::spawn({
        let over = over.clone();
        move || load::runtime()?.block_on(requests(&address, &over))
    });
    let answered = host.until_answered(each * SERVICES, PATIENCE);
    over.store(true, Ordering::Relaxed);
    let times = client.join().map_err(|_| anyhow::anyhow!("the client panicked"))?;
    answered?;
    let mut times = times?;
    daemon.kill()?;
    let (most, mean) = per_second(&host.first_polls()?);
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let under_way = service.most_under_way()? as f64;
    let count = each * SERVICES;
    let (p50, p99) = (percentile(&mut times, 50), percentile(&mut times, 99));
    Ok(vec![
        Line {
            what: format!(
                "a start with {count} overdue operations of {SERVICES} services, questions under way at most"
            ),
            measured: format!("{under_way:.0}"),
            against: String::new(),
            figure: under_way,
            bound: Bound::AtMost(UNDER_WAY_AT_MOST),
        },
        Line {
            what: "the same, polls in the fullest second, and in the mean of all seconds".to_owned(),
            measured: format!("{most:.0}"),
            against: format!("{mean:.0}"),
            figure: most / mean,
            bound: Bound::AtMost(TIMES_THE_MEAN),
        },
        Line {
            what: format!("a client's create meanwhile, p99 in ms (p50 {p50:.1}, {} of them)", times.len()),
            measured: format!("{p99:.1} ms"),
            against: String::new(),
            figure: p99,
            bound: Bound::AtMost(REQUEST_AT_MOST_MS),
        },
    ])
}

/// How long each create took, in milliseconds, until told that it is over.
async fn requests(address: &Address, over: &AtomicBool) -> Result<Vec<f64>> {
    let mut connection = Connection::to(address).await?;
    let mut times = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let begin = Instant::now();
        connection.post("/jobs", load::NOOP).await?;
        times.push(begin.elapsed().as_secs_f64() * 1_000.0);
        tokio::time::sleep(PAUSE).await;
    }
    Ok(times)
}

/// Polls in the fullest second, and in the mean of all.
fn per_second(polls: &[Poll]) -> (f64, f64) {
    let mut seconds: BTreeMap<i64, usize> = BTreeMap::new();
    for poll in polls {
        *seconds.entry(poll.at.micros() / 1_000_000).or_default() += 1;
    }
    let most = seconds.values().copied().max().unwrap_or_default();
    #[allow(clippy::cast_precision_loss, reason = "figures for people")]
    (most as f64, polls.len() as f64 / seconds.len().max(1) as f64)
}
