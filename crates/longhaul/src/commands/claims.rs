//! `longhaul claims`: leases on events and workorders, for workers that are scripts.

use std::process::ExitCode;

use anyhow::Result;
use api::{AcquireClaim, ClaimAnswer, SettleClaim, SwapClaim};
use clap::{Args, Subcommand};

use crate::client::{Call, Connection, segment};
use crate::due_time::seconds;
use crate::exit::Failed;
use crate::show::{plain, say};

const EXAMPLES: &str = "Examples:
  longhaul claims acquire EVENT --owner scheduler-1 --type TICKET_READY --wait 30
  longhaul claims renew EVENT event-0123 --owner scheduler-1 --version 0
  longhaul claims settle EVENT event-0123 --owner scheduler-1 --version 1 --reason SCHEDULED
  longhaul claims release WORKORDER work-0123 --owner runner-1 --version 0

A claim is a lease: whoever holds it shows its owner and its version. Each renewal has a new version; a claim that was lost \
changes nothing. `settle` ends what is claimed, once, with a reason.";

/// Claim, renew, settle and release events and workorders
#[derive(Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct ClaimsArguments {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Claim the oldest resource that nobody holds, or one by its id; prints the claim as JSON, or null
    Acquire {
        /// EVENT or WORKORDER
        #[arg(value_name = "TYPE")]
        resource_type: String,
        /// The resource; the oldest if left out
        #[arg(value_name = "ID")]
        id: Option<String>,
        /// Who claims it: unique per process
        #[arg(long, value_name = "NAME")]
        owner: String,
        /// Only events of this type; may be given several times
        #[arg(long = "type", value_name = "TYPE")]
        types: Vec<String>,
        /// Only workorders of this lane
        #[arg(long, value_name = "NAME")]
        lane: Option<String>,
        /// The circle
        #[arg(long, short, value_name = "NAME")]
        circle: Option<String>,
        /// Wait for one at most so long, such as 30s
        #[arg(long, value_name = "TIME", value_parser = seconds)]
        wait: Option<u64>,
    },
    /// Prolong a claim
    Renew(Held),
    /// Give a claim back
    Release(Held),
    /// End what is claimed, with a reason
    Settle {
        #[command(flatten)]
        held: Held,
        /// The terminal reason
        #[arg(long)]
        reason: String,
        /// Of a WORKORDER: completed, failed or cancelled [default: completed]
        #[arg(long)]
        state: Option<String>,
        /// Of an EVENT: the workorder that was made of it
        #[arg(long, value_name = "ID")]
        work_order: Option<String>,
    },
}

#[derive(Args)]
struct Held {
    /// EVENT or WORKORDER
    #[arg(value_name = "TYPE")]
    resource_type: String,
    /// The resource
    #[arg(value_name = "ID")]
    id: String,
    /// Who holds the claim
    #[arg(long, value_name = "NAME")]
    owner: String,
    /// The version of the claim
    #[arg(long, value_name = "NUMBER")]
    version: u64,
}

impl Held {
    fn path(&self, verb: &str) -> String {
        format!("/claims/{}/{}/{verb}", segment(&self.resource_type), segment(&self.id))
    }

    fn swap(&self) -> SwapClaim {
        SwapClaim { owner_id: self.owner.clone(), claim_version: self.version, lease_seconds: None }
    }
}

pub fn run(arguments: ClaimsArguments) -> Result<ExitCode> {
    let client = arguments.connection.client()?;
    let answer: ClaimAnswer = match arguments.verb {
        Verb::Acquire { resource_type, id, owner, types, lane, circle, wait } => {
            let sent = AcquireClaim {
                resource_type,
                resource_id: id,
                owner_id: owner,
                lane,
                event_types: types,
                circle,
                lease_seconds: None,
                wait_seconds: wait,
            };
            client.call(Call::post("/claims", &sent)).map_err(|error| Failed::to("claim", &error))?
        }
        Verb::Renew(held) => client
            .call(Call::post(&held.path("renew"), &held.swap()))
            .map_err(|error| Failed::to("renew", &error))?,
        Verb::Release(held) => client
            .call(Call::post(&held.path("release"), &held.swap()))
            .map_err(|error| Failed::to("release", &error))?,
        Verb::Settle { held, reason, state, work_order } => {
            let sent = SettleClaim {
                owner_id: held.owner.clone(),
                claim_version: held.version,
                reason,
                state,
                work_order_id: work_order,
            };
            client
                .call(Call::post(&held.path("settle"), &sent))
                .map_err(|error| Failed::to("settle", &error))?
        }
    };
    say(format_args!("{}", plain(&serde_json::to_string(&answer.claim)?)));
    Ok(ExitCode::SUCCESS)
}
