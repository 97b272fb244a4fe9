//! Very many operations that are open and not due: the start, the memory, the file, and a while in which nothing happens.

use std::time::Duration;

use anyhow::{Result, ensure};
use engine::{Clock, SystemClock};

use super::Sizes;
use super::host::Host;
use super::open::{AtOnce, Open};
use super::service::ServiceProcess;
use crate::daemon::Place;
use crate::daemon::report::{Bound, Line};
use measure::disk::out_of_the_cache;

const READY_BELOW_SECONDS: f64 = 10.0;
const MEMORY_BELOW_MIB: f64 = 512.0;
const STORE_BELOW_GB: f64 = 5.0;
/// What is under way after a start comes to its end first.
const SETTLE: Duration = Duration::from_secs(3);
/// So long nothing is due.
const DUE_AFTER_SECONDS: u32 = 3_600;

/// Five lines.
pub fn measure(place: &Place, service: &ServiceProcess, sizes: &Sizes) -> Result<Vec<Line>> {
    let operations = sizes.open;
    let at = SystemClock::starting_at(domain::Timestamp::default()).now();
    let kinds = vec![("render".to_owned(), operations)];
    let open = Open {
        kinds,
        service: service.address,
        at,
        due_after_seconds: DUE_AFTER_SECONDS,
        at_once: AtOnce::USUAL,
    };
    let host = Host::filled(place, "parked", open)?;
    // Once before: the first start makes the token.
    drop(host.start(place)?);
    out_of_the_cache(&host.data_dir)?;
    let daemon = host.start(place)?;
    let ready = daemon.ready_after.as_secs_f64();
    std::thread::sleep(SETTLE);
    let before = daemon.usage()?;
    std::thread::sleep(Duration::from_secs(sizes.idle_seconds));
    let after = daemon.usage()?;
    let (memory, most) = daemon.memory_kib()?;
    drop(daemon);
    let bytes: u64 =
        std::fs::read_dir(&host.data_dir)?.map(|file| Ok(file?.metadata()?.len())).sum::<Result<u64>>()?;
    ensure!(bytes > 0, "there is no store");
    let spent = Duration::from_nanos(after.nanoseconds - before.nanoseconds);
    let seconds = sizes.idle_seconds;
    #[allow(clippy::cast_precision_loss, reason = "figures for people")]
    let (mib, gigabytes, wakes, count) = (
        most as f64 / 1_024.0,
        bytes as f64 / 1e9,
        (after.store_wakes - before.store_wakes) as f64,
        operations.max(1) as f64,
    );
    let line = |what: String, measured: String, figure: f64, bound| Line {
        what,
        measured,
        against: String::new(),
        figure,
        bound,
    };
    Ok(vec![
        line(
            format!("cold start to ready with {operations} open operations"),
            format!("{ready:.3} s"),
            ready,
            Bound::Below(READY_BELOW_SECONDS),
        ),
        line(
            format!(
                "memory with {operations} open operations, most ever, in MiB (now {:.0})",
                memory / 1_024
            ),
            format!("{mib:.1} MiB"),
            mib,
            Bound::Below(MEMORY_BELOW_MIB),
        ),
        line(
            format!("the store of {operations} open operations and their jobs, in GB"),
            format!("{:.0} bytes each", gigabytes * 1e9 / count),
            gigabytes,
            Bound::Below(STORE_BELOW_GB),
        ),
        line(
            format!("nothing due for {seconds} s, how often a thread of the store woke"),
            format!("{wakes:.0}"),
            wakes,
            Bound::AtMost(0.0),
        ),
        line(
            format!("nothing due for {seconds} s, processor time in percent"),
            format!("{:.2} ms", spent.as_secs_f64() * 1_000.0),
            spent.as_secs_f64() / Duration::from_secs(seconds).as_secs_f64() * 100.0,
            Bound::Below(0.1),
        ),
    ])
}
