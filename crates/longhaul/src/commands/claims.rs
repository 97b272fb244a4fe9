//! `longhaul claims`: leases on events and workorders, for workers that are scripts.

use anyhow::Result;
use api::{AcquireClaim, ClaimAnswer, SettleClaim, SwapClaim};
use clap::{Args, Subcommand};

use crate::client::{Call, Client, segment};
use crate::due_time::seconds;
use crate::show::{plain, say};

const EXAMPLES: &str = "Examples:
  longhaul claims acquire EVENT --owner scheduler-1 --type TICKET_READY --wait 30
  longhaul claims renew EVENT event-0123 --owner scheduler-1 --version 0
  longhaul claims settle EVENT event-0123 --owner scheduler-1 --version 1 --reason SCHEDULED
  longhaul claims release WORKORDER work-0123 --owner runner-1 --version 0

A claim is a lease: whoever holds it shows its owner and its version. Each renewal has a new version; a claim that was lost \
changes nothing. `settle` ends what is claimed, once, with a reason.";

/// Claim, renew, settle and release events and workorders
#[derive(Subcommand)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub enum Verb {
    /// Claim the oldest resource that nobody holds, or one by its id; prints the claim as JSON, or null
    Acquire {
        /// EVENT or WORKORDER
        #[arg(value_name = "TYPE")]
        resource_type: String,
        /// The resource; the oldest if left out
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
pub struct Held {
    /// EVENT or WORKORDER
    #[arg(value_name = "TYPE")]
    resource_type: String,
    /// The resource
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

pub fn run(client: &Client, verb: Verb) -> Result<()> {
    let answer: ClaimAnswer = match verb {
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
            client.ask("claim", Call::post("/claims", &sent))?
        }
        Verb::Renew(held) => client.ask("renew", Call::post(&held.path("renew"), &held.swap()))?,
        Verb::Release(held) => client.ask("release", Call::post(&held.path("release"), &held.swap()))?,
        Verb::Settle { held, reason, state, work_order } => {
            let path = held.path("settle");
            let (owner_id, claim_version) = (held.owner, held.version);
            let sent = SettleClaim { owner_id, claim_version, reason, state, work_order_id: work_order };
            client.ask("settle", Call::post(&path, &sent))?
        }
    };
    say(plain(&serde_json::to_string(&answer.claim)?));
    Ok(())
}
