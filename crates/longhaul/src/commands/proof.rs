//! What `drill` and `bench` share: where they work, how they are ended early, and what they say of the machine.

mod report_files;
mod scratch;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use reporting::Conditions;
use rustix::process::Signal;
use store_sql::{server_version, sqlite_version};
use tokio::signal::unix::SignalKind;

use crate::due_time;
use crate::exit::VOID;

pub use report_files::ReportFiles;
pub use scratch::Scratch;

/// File systems that are gone with the power, whatever was synced: what `statfs` calls tmpfs and ramfs.
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// What a reader of the report has to know, some of which is told at once too.
pub fn conditions(scratch: &Path, database: Option<&str>) -> Result<Conditions> {
    let mut notes = Vec::new();
    let database_version = match database {
        Some(server) => super::wait_for(async { Ok(server_version(server).await?) })?,
        None => {
            if is_in_memory(scratch) {
                notes.push(format!(
                    "{} is in memory, where nothing is durable: what is found there says nothing of a disk; name a directory on one \
                     with --dir",
                    scratch.parent().unwrap_or(scratch).display()
                ));
            }
            sqlite_version().to_owned()
        }
    };
    for note in &notes {
        eprintln!("longhaul: warning: {note}");
    }
    Ok(Conditions::here(env!("CARGO_PKG_VERSION"), due_time::time("0s")?, database_version, notes))
}

fn is_in_memory(dir: &Path) -> bool {
    rustix::fs::statfs(dir)
        .is_ok_and(|disk| u64::try_from(disk.f_type).is_ok_and(|kind| IN_MEMORY.contains(&kind)))
}

/// Set by the first Ctrl-C, SIGTERM or SIGHUP; the second one ends this process, and with it all that it has started.
pub fn interruption() -> Result<Arc<AtomicBool>> {
    let told = Arc::new(AtomicBool::new(false));
    let heard = told.clone();
    let mut kinds = vec![SignalKind::interrupt(), SignalKind::terminate()];
    // Whoever started it with nohup wants it to go on.
    if !is_ignored(Signal::HUP) {
        kinds.push(SignalKind::hangup());
    }
    super::on_signals(&kinds, move |time| {
        if time > 0 {
            std::process::exit(i32::from(VOID));
        }
        eprintln!("longhaul: ending; again to end at once");
        heard.store(true, Ordering::SeqCst);
    })?;
    Ok(told)
}

/// Whether this process was started with a signal ignored.
fn is_ignored(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    mask & (1 << (signal.as_raw() - 1)) != 0
}
