//! More clients than the daemon has places for: how much is still accepted, beside what is accepted when there are just enough of them.
//! Once they come back when they were told to, and once at once, which is told and has no bound: the load generator shares the machine, and
//! what it sends in vain costs both.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::connection::Connection;
use super::load;
use super::process::{Address, DaemonProcess, Dispatch};
use super::report::{Bound, Line, middle};
use super::{Place, ROUNDS};

/// Requests that the daemon carries out at the same time.
const PLACES: usize = 256;
/// Of the peak, if they wait as they are told.
const AT_LEAST: f64 = 0.9;
/// What every refusal says.
const RETRY_AFTER: Duration = Duration::from_secs(1);

const OVERLOADS: [(usize, Refused); 4] = [
    (2, Refused::ComesBackLater),
    (5, Refused::ComesBackLater),
    (2, Refused::ComesBackAtOnce),
    (5, Refused::ComesBackAtOnce),
];

/// What a client does when it is sent away.
#[derive(Clone, Copy)]
enum Refused {
    ComesBackLater,
    ComesBackAtOnce,
}

/// One line for each overload; all take turns on one daemon.
pub fn measure(place: &Place, seconds: u64) -> Result<Vec<Line>> {
    let data_dir = place.fresh("overload")?;
    let daemon = DaemonProcess::start(&place.binary, &data_dir, Dispatch::Off)?;
    let runtime = load::runtime()?;
    let lasts = Duration::from_secs(seconds);
    let offer = |times, refused| runtime.block_on(offer(&daemon.address, times * PLACES, refused, lasts));
    let mut rounds = OVERLOADS.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for (round, (times, refused)) in rounds.iter_mut().zip(OVERLOADS) {
            let peak = offer(1, refused)?;
            round.push((offer(times, refused)?, peak));
        }
    }
    let (_, most_kib) = daemon.memory_kib()?;
    let line = |(round, (times, refused)): (Vec<(Offered, Offered)>, (usize, Refused))| {
        let (over, peak) = middle(round, |(over, peak)| over.accepted / peak.accepted);
        let (come_back, bound) = match refused {
            Refused::ComesBackLater => ("when they are told", Bound::AtLeast(AT_LEAST)),
            Refused::ComesBackAtOnce => ("at once", Bound::Told),
        };
        Line {
            what: format!(
                "creates accepted of {} clients at once that come back {come_back} ({:.0}/s refused; most memory ever {} MiB), and of {PLACES}",
                times * PLACES,
                over.refused,
                most_kib / 1_024
            ),
            measured: format!("{:.0}/s", over.accepted),
            against: format!("{:.0}/s", peak.accepted),
            figure: over.accepted / peak.accepted,
            bound,
        }
    };
    Ok(rounds.into_iter().zip(OVERLOADS).map(line).collect())
}

/// What became of what was sent, per second.
#[derive(Clone, Copy)]
struct Offered {
    accepted: f64,
    refused: f64,
}

/// So many clients, each of which sends its next request when the one before is answered.
async fn offer(address: &Address, clients: usize, refused: Refused, lasts: Duration) -> Result<Offered> {
    let counts = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let mut open = Vec::with_capacity(clients);
    for _ in 0..clients {
        open.push(Connection::to(address).await?);
    }
    let begin = Instant::now();
    let callers: Vec<_> = open
        .into_iter()
        .map(|mut connection| {
            let counts = counts.clone();
            tokio::spawn(async move {
                while begin.elapsed() < lasts {
                    let is_refused = !connection.offer("/jobs", load::NOOP).await?;
                    counts[usize::from(is_refused)].fetch_add(1, Ordering::Relaxed);
                    match refused {
                        Refused::ComesBackLater if is_refused => tokio::time::sleep(RETRY_AFTER).await,
                        Refused::ComesBackLater | Refused::ComesBackAtOnce => {}
                    }
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for caller in callers {
        caller.await??;
    }
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let per_second = |count: &AtomicUsize| count.load(Ordering::Relaxed) as f64 / lasts.as_secs_f64();
    Ok(Offered { accepted: per_second(&counts[0]), refused: per_second(&counts[1]) })
}
