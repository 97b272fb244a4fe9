//! Those who are connected and wait for work that does not come: memory, and whether the store hears of them.

use std::time::Duration;

use anyhow::Result;

use super::drain::counted;
use crate::daemon::connection::Connection;
use crate::daemon::process::{Address, DaemonProcess, Dispatch};
use crate::daemon::report::{Bound, Line};
use crate::daemon::{Place, load};

const BELOW_MIB: f64 = 200.0;
/// Longer than they are watched.
const WAIT_SECONDS: u64 = 60;
/// What is under way comes to its end first.
const SETTLE: Duration = Duration::from_secs(3);

/// Two lines: the memory, and the questions to the store.
pub fn measure(place: &Place, peers: usize, watched: Duration) -> Result<[Line; 2]> {
    let data_dir = place.fresh("idle-peers")?;
    let daemon = DaemonProcess::start(&place.binary, &data_dir, Dispatch::On)?;
    let (before, _) = daemon.memory_kib()?;
    let runtime = load::runtime()?;
    let waiting = runtime.block_on(wait_all(&daemon.address, peers))?;
    std::thread::sleep(SETTLE);
    // A connection that stood idle in this crowd may have been cut to make room: each question brings its own.
    let asked = |what: &str| {
        runtime.block_on(async { counted(&mut Connection::to(&daemon.address).await?, what).await })
    };
    let questions = asked("longhaul_hand_out_questions_total ")?;
    let used = daemon.usage()?;
    std::thread::sleep(watched);
    let used = daemon.usage()?.store_wakes - used.store_wakes;
    let questions = asked("longhaul_hand_out_questions_total ")? - questions;
    let waiting_still = asked("longhaul_pullers_waiting ")?;
    let (after, most) = daemon.memory_kib()?;
    drop(waiting);
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let (missing, used) = (peers as f64 - waiting_still, used as f64);
    Ok([
        Line {
            what: format!("memory with {peers} connected peers that wait (most ever), and with none"),
            measured: format!("{:.1} MiB, now {:.1}", mib(most), mib(after)),
            against: format!("{:.1} MiB", mib(before)),
            figure: mib(most),
            bound: Bound::Below(BELOW_MIB),
        },
        Line {
            what: format!(
                "questions to the store and wakes of its threads in {} s while {peers} wait; peers sent away",
                watched.as_secs()
            ),
            measured: format!("{questions} and {used}; {missing}"),
            against: "0".to_owned(),
            figure: questions + used + missing,
            bound: Bound::AtMost(0.0),
        },
    ])
}

/// Connects all of them; each waits in a lane of its own, as its assigned work would come.
async fn wait_all(address: &Address, peers: usize) -> Result<Vec<Connection>> {
    let mut waiting = Vec::with_capacity(peers);
    for nth in 0..peers {
        let mut connection = Connection::to(address).await?;
        let body =
            format!(r#"{{"worker_id":"bench-{nth}","peer_id":"peer-{nth}","wait_seconds":{WAIT_SECONDS}}}"#);
        connection.send("POST", "/jobs/next", &body).await?;
        waiting.push(connection);
    }
    Ok(waiting)
}

#[allow(clippy::cast_precision_loss, reason = "a figure for people")]
fn mib(kib: u64) -> f64 {
    kib as f64 / 1_024.0
}
