//! `longhaul verify`: says what differs from the ledger, and exits with 1 if anything does.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use store_sql::{open_for_reading, verify};

pub fn run(path: &Path) -> Result<ExitCode> {
    let connection = open_for_reading(path)?;
    let verified = verify(&connection).with_context(|| format!("cannot read {}", path.display()))?;
    for difference in &verified.differences {
        println!("differs: {difference}");
    }
    let untold = verified.difference_count - verified.differences.len() as u64;
    if untold > 0 {
        println!("... and {untold} more");
    }
    println!(
        "{} facts, {} records, {} differences",
        verified.facts, verified.records, verified.difference_count
    );
    Ok(if verified.difference_count == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
