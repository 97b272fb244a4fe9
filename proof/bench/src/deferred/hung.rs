//! One of the services accepts and never answers: how late the others are asked about, beside a daemon whose services all answer.

use anyhow::Result;
use engine::{Clock, SystemClock};

use super::Sizes;
use super::due::{PATIENCE, WINDOW_SECONDS};
use super::host::{HUNG, Host, Poll};
use super::open::{AtOnce, Open};
use super::service::ServiceProcess;
use crate::daemon::report::{Bound, Line, middle, percentile};
use crate::daemon::{Place, ROUNDS};

const AT_MOST: f64 = 1.2;
const LATENESS_AT_MOST_MS: f64 = 1_000.0;
/// Services that answer.
const OTHERS: usize = 19;

/// Two lines: the ratio, and how late in all.
pub fn measure(place: &Place, service: &ServiceProcess, sizes: &Sizes) -> Result<Vec<Line>> {
    let each = sizes.due / (OTHERS + 1);
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push((lateness(place, service, each, each)?, lateness(place, service, each, 0)?));
    }
    let ratio = |(with, without): &(f64, f64)| with / without;
    let (with, without) = middle(rounds, ratio);
    Ok(vec![
        Line {
            what: format!(
                "{OTHERS} services with {each} operations due each in {WINDOW_SECONDS} s beside one that hangs, lateness p99, and without it"
            ),
            measured: format!("{with:.1} ms"),
            against: format!("{without:.1} ms"),
            figure: ratio(&(with, without)),
            bound: Bound::AtMost(AT_MOST),
        },
        Line {
            what: "the same in ms".to_owned(),
            measured: format!("{with:.1} ms"),
            against: String::new(),
            figure: with,
            bound: Bound::AtMost(LATENESS_AT_MOST_MS),
        },
    ])
}

/// The p99 of those whose services answer, in milliseconds.
fn lateness(place: &Place, service: &ServiceProcess, each: usize, hung: usize) -> Result<f64> {
    let at = SystemClock::starting_at(domain::Timestamp::default()).now();
    let mut kinds: Vec<_> = (0..OTHERS).map(|number| (format!("render-{number}"), each)).collect();
    kinds.push((HUNG.to_owned(), hung));
    let open = Open {
        kinds,
        service: service.address,
        at,
        due_after_seconds: WINDOW_SECONDS,
        at_once: AtOnce::USUAL,
    };
    let host = Host::filled(place, "hung", open)?;
    let daemon = host.start(place)?;
    host.until_answered(OTHERS * each, PATIENCE)?;
    // What it waits for would keep a graceful stop waiting.
    daemon.kill()?;
    let polls = host.first_polls()?;
    let mut lateness: Vec<f64> = polls.iter().filter(|poll| poll.kind != HUNG).map(Poll::lateness).collect();
    Ok(percentile(&mut lateness, 99))
}
