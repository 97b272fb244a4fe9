//! `longhaul rebuild`: views and agenda anew from the ledger, or nothing changed and the reason.

use std::process::ExitCode;

use anyhow::Result;
use domain::Timestamp;
use domain::attention::Retention;
use engine::{Clock, SystemClock};
use store_sql::{PostgresLedger, open_for_rebuilding, rebuild};

use crate::database::{Location, Place};
use crate::show::say;

pub fn run(location: &Location) -> Result<ExitCode> {
    let now = SystemClock::starting_at(Timestamp::default()).now();
    let rebuilt = match location.place_of_store()? {
        Place::File(path) => {
            let (mut connection, _lock) = open_for_rebuilding(&path)?;
            rebuild(&mut connection, Retention::DEFAULT, now)?
        }
        Place::Server(address) => super::wait_for(async {
            let ledger = PostgresLedger::open(&address).await?;
            Ok(ledger.rebuild(Retention::DEFAULT, now).await?)
        })?,
    };
    say(format_args!("rebuilt {} records from {} facts", rebuilt.records, rebuilt.facts));
    Ok(ExitCode::SUCCESS)
}
