//! `longhaul verify`: says what differs from the ledger, and exits with 1 if anything does.

use std::process::ExitCode;

use anyhow::{Context, Result};
use store_sql::{PostgresLedger, open_for_reading, verify};

use crate::database::{Location, Place};

pub fn run(location: &Location) -> Result<ExitCode> {
    let verified = match location.place()? {
        Place::File(path) => {
            let connection = open_for_reading(&path)?;
            verify(&connection).with_context(|| format!("cannot read {}", path.display()))?
        }
        Place::Server(address) => super::wait_for(async {
            let ledger = PostgresLedger::open(&address).await?;
            ledger.verify().await.with_context(|| format!("cannot read {address}"))
        })?,
    };
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
