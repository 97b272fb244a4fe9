//! `longhaul verify`: says what differs from the ledger, and exits with 1 if anything does. `longhaul rebuild`: views and agenda anew
//! from the ledger, or nothing changed and the reason.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use domain::Timestamp;
use domain::attention::Retention;
use engine::{Clock, SystemClock};
use store_sql::{PostgresLedger, accepted_loss, open_for_reading, open_for_rebuilding, verify, verify_since};

use crate::database::{Location, Place};
use crate::show::say;

const EXAMPLES: &str = "Examples:
  longhaul verify --data-dir ./longhaul-data
  longhaul verify --since 1200                    only what later facts are about

Verified in part, it says how far the ledger went: the next `--since`. Records that have lost all of their facts, and counts, only \
the whole walk finds.

Exit codes: 0 everything agrees, 1 something differs, and is printed.";

/// Compare views, agenda, checksums and bodies with what the facts say; may run beside a daemon
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Verify {
    #[command(flatten)]
    location: Location,
    /// Only the records that something happened to after this place in the ledger
    #[arg(long, value_name = "POSITION")]
    since: Option<u64>,
}

pub fn run(Verify { location, since }: &Verify) -> Result<ExitCode> {
    let verified = match location.place_of_store()? {
        Place::File(path) => {
            let connection = open_for_reading(&path)?;
            let verified = match since {
                None => verify(&connection),
                Some(position) => verify_since(&connection, *position),
            };
            let verified = verified.with_context(|| format!("cannot read {}", path.display()))?;
            if let Some(loss) = accepted_loss(&connection)? {
                say(format_args!(
                    "note: lost commits were accepted at {}: the ledger ended at position {}, commits up to position {} were acknowledged",
                    super::export::rfc3339(loss.at)?,
                    loss.position,
                    loss.acknowledged
                ));
            }
            verified
        }
        Place::Server(address) => super::wait_for(async {
            let ledger = PostgresLedger::open(&address).await?;
            let verified = match since {
                None => ledger.verify().await,
                Some(position) => ledger.verify_since(*position).await,
            };
            verified.with_context(|| format!("cannot read {address}"))
        })?,
    };
    for difference in &verified.differences {
        say(format_args!("differs: {difference}"));
    }
    let untold = verified.difference_count - verified.differences.len() as u64;
    if untold > 0 {
        say(format_args!("... and {untold} more"));
    }
    say(format_args!(
        "{} facts, {} records, {} differences",
        verified.facts, verified.records, verified.difference_count
    ));
    if let Some(position) = since {
        say(format_args!("what was touched after position {position}, up to position {}", verified.position));
    }
    Ok(if verified.difference_count == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

pub const REBUILD_EXAMPLE: &str = "Example:
  longhaul rebuild --data-dir ./longhaul-data

Exit codes: 0 done, 1 nothing was changed, and the reason is printed.";

pub fn rebuild(location: &Location) -> Result<()> {
    let now = SystemClock::starting_at(Timestamp::default()).now();
    let rebuilt = match location.place_of_store()? {
        Place::File(path) => {
            let (mut connection, _lock) = open_for_rebuilding(&path)?;
            store_sql::rebuild(&mut connection, Retention::DEFAULT, now)?
        }
        Place::Server(address) => super::wait_for(async {
            let ledger = PostgresLedger::open(&address).await?;
            Ok(ledger.rebuild(Retention::DEFAULT, now).await?)
        })?,
    };
    say(format_args!("rebuilt {} records from {} facts", rebuilt.records, rebuilt.facts));
    Ok(())
}
