//! More clients than the daemon has places for, none of whom waits when it is sent away: how much is still accepted, beside what is
//! accepted when there are just enough of them. The load generator shares the machine, and what it sends in vain costs it too.

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
const TIMES: [usize; 2] = [2, 5];
/// Of the peak.
const AT_LEAST: f64 = 0.9;

/// One line for each overload; the three take turns on one daemon.
pub fn measure(place: &Place, seconds: u64) -> Result<Vec<Line>> {
    let data_dir = place.fresh("overload")?;
    let daemon = DaemonProcess::start(&place.binary, &data_dir, Dispatch::Off)?;
    let runtime = load::runtime()?;
    let lasts = Duration::from_secs(seconds);
    let offer = |clients| runtime.block_on(offer(&daemon.address, clients, lasts));
    let mut rounds = TIMES.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        let peak = offer(PLACES)?;
        for (round, times) in rounds.iter_mut().zip(TIMES) {
            round.push((offer(times * PLACES)?, peak));
        }
    }
    let (_, most_kib) = daemon.memory_kib()?;
    let line = |(round, times): (Vec<(Offered, Offered)>, usize)| {
        let (over, peak) = middle(round, |(over, peak)| over.accepted / peak.accepted);
        Line {
            what: format!(
                "creates accepted of {} clients at once ({:.0}/s refused; most memory ever {} MiB), and of {PLACES}",
                times * PLACES,
                over.refused,
                most_kib / 1_024
            ),
            measured: format!("{:.0}/s", over.accepted),
            against: format!("{:.0}/s", peak.accepted),
            figure: over.accepted / peak.accepted,
            bound: Bound::AtLeast(AT_LEAST),
        }
    };
    Ok(rounds.into_iter().zip(TIMES).map(line).collect())
}

/// What became of what was sent, per second.
#[derive(Clone, Copy)]
struct Offered {
    accepted: f64,
    refused: f64,
}

/// So many clients, each of which sends its next request when the one before is answered, whatever the answer.
async fn offer(address: &Address, clients: usize, lasts: Duration) -> Result<Offered> {
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
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for caller in callers {
        caller.await??;
    }
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let per_second =
        |count: &AtomicUsize| count.load(Ordering::Relaxed) as f64 / begin.elapsed().as_secs_f64();
    Ok(Offered { accepted: per_second(&counts[0]), refused: per_second(&counts[1]) })
}
