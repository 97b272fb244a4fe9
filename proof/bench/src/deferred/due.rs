//! Many operations due within one window: how late they are asked about, and what a poll costs beside a bare client that asks the
//! same service at the same times and keeps one durable row of each answer.

use std::time::Duration;

use anyhow::Result;
use engine::{Clock, SystemClock};

use super::Sizes;
use super::bare;
use super::host::Host;
use super::open::{AtOnce, Open};
use super::service::ServiceProcess;
use crate::daemon::report::{Bound, Line, middle, percentile};
use crate::daemon::{Place, ROUNDS};

const LATENESS_BELOW_MS: f64 = 500.0;
const COST_AT_MOST: f64 = 3.0;
/// The window; it begins as long after the operations were accepted.
pub const WINDOW_SECONDS: u32 = 10;
/// Given up so long after the window.
pub const PATIENCE: Duration = Duration::from_mins(3);

struct Round {
    p50: f64,
    p99: f64,
    /// Microseconds on a processor per poll.
    ours: f64,
    bare: f64,
}

/// Two lines: lateness, and cost.
pub fn measure(place: &Place, service: &ServiceProcess, sizes: &Sizes) -> Result<Vec<Line>> {
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push(round(place, service, sizes.due)?);
    }
    let count = sizes.due;
    let (late, cost) = (
        middle(rounds.iter().collect(), |one| one.p99),
        middle(rounds.iter().collect(), |one| one.ours / one.bare),
    );
    Ok(vec![
        Line {
            what: format!(
                "{count} operations due in one window of {WINDOW_SECONDS} s, lateness p99 in ms (p50 {:.1})",
                late.p50
            ),
            measured: format!("{:.1} ms", late.p99),
            against: String::new(),
            figure: late.p99,
            bound: Bound::Below(LATENESS_BELOW_MS),
        },
        Line {
            what: "processor time per poll, and of a bare client with one durable row each".to_owned(),
            measured: format!("{:.0} µs", cost.ours),
            against: format!("{:.0} µs", cost.bare),
            figure: cost.ours / cost.bare,
            bound: Bound::AtMost(COST_AT_MOST),
        },
    ])
}

fn round(place: &Place, service: &ServiceProcess, count: usize) -> Result<Round> {
    let at = SystemClock::starting_at(domain::Timestamp::default()).now();
    let kinds = vec![("render".to_owned(), count)];
    let open = Open {
        kinds,
        service: service.address,
        at,
        due_after_seconds: WINDOW_SECONDS,
        at_once: AtOnce::MANY,
    };
    let host = Host::filled(place, "due", open)?;
    let daemon = host.start(place)?;
    let before = daemon.usage()?.nanoseconds;
    host.until_answered(count, PATIENCE)?;
    let spent = daemon.usage()?.nanoseconds - before;
    drop(daemon);
    let mut lateness: Vec<f64> = host.first_polls()?.iter().map(super::host::Poll::lateness).collect();
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let per_poll = |nanoseconds: u64| nanoseconds as f64 / 1_000.0 / count as f64;
    let bare = bare::cost(place, service, count, WINDOW_SECONDS)?;
    Ok(Round {
        p50: percentile(&mut lateness, 50),
        p99: percentile(&mut lateness, 99),
        ours: per_poll(spent),
        bare: per_poll(bare),
    })
}
