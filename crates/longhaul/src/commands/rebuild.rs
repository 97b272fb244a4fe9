//! `longhaul rebuild`: views and agenda anew from the ledger, or nothing changed and the reason.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use domain::Timestamp;
use domain::attention::Retention;
use engine::{Clock, SystemClock};
use store_sql::{open_for_rebuilding, rebuild};

pub fn run(path: &Path) -> Result<ExitCode> {
    let (mut connection, _lock) = open_for_rebuilding(path)?;
    let now = SystemClock::starting_at(Timestamp::default()).now();
    let rebuilt = rebuild(&mut connection, Retention::DEFAULT, now)?;
    println!("rebuilt {} records from {} facts", rebuilt.records, rebuilt.facts);
    Ok(ExitCode::SUCCESS)
}
