//! `longhaul orphans`: what may still run outside although it is over here.

use anyhow::Result;
use api::{Orphan, OrphanAnswer, OrphanList, RetryCancel, SettleOrphan};
use clap::Subcommand;

use crate::client::{Call, Client, segment};
use crate::show::{PrintArgs, Table, plain, say};

const EXAMPLES: &str = "Examples:
  longhaul orphans list                    what may still run outside, oldest first
  longhaul orphans cancel op-0123          ask its service again to stop it
  longhaul orphans settle op-0123 --note 'not on the console any more'

Work stays on this list when its cancel was not confirmed, when the host gave it up while it ran, when its service does not \
know it, or when nobody knows whether it was ever taken. It leaves the list when its service says that it has stopped or ended \
(it is asked less and less often, for a week at most; `cancel` begins anew), or when somebody has looked and says so.";

/// See and settle what may still run outside
#[derive(Subcommand)]
#[command(after_help = EXAMPLES, mut_subcommands = |verb| verb.after_help(EXAMPLES))]
pub enum Verb {
    /// What may still run outside, oldest first
    List {
        /// The most that are shown
        #[arg(long, default_value_t = 100)]
        limit: u16,
        #[command(flatten)]
        print: PrintArgs,
    },
    /// Ask its service again to stop it
    Cancel {
        /// The operation
        id: String,
        /// Why
        #[arg(long)]
        reason: Option<String>,
    },
    /// Vouch that nothing of it runs outside any more
    Settle {
        /// The operation
        id: String,
        /// What was found
        #[arg(long)]
        note: String,
    },
}

pub fn run(client: &Client, verb: Verb) -> Result<()> {
    match verb {
        Verb::List { limit, print } => {
            print.print(&client.ask("list", Call::get(&format!("/orphans?limit={limit}")))?, table)?;
        }
        Verb::Cancel { id, reason } => {
            let path = format!("/orphans/{}/cancel", segment(&id));
            let _: OrphanAnswer = client.ask("cancel", Call::post(&path, &RetryCancel { reason }))?;
            say(format_args!(
                "Its service is asked again to stop {id}; `longhaul orphans list` shows what it says"
            ));
        }
        Verb::Settle { id, note } => {
            let path = format!("/orphans/{}/settle", segment(&id));
            let answer: OrphanAnswer = client.ask("settle", Call::post(&path, &SettleOrphan { note }))?;
            let (note, job) = (answer.orphan.settled_note.unwrap_or_default(), answer.orphan.job_id);
            say(format_args!("Settled {id}: {}; `longhaul jobs why {job}` shows it", plain(&note)));
        }
    }
    Ok(())
}

fn table(list: &OrphanList) -> Table {
    let mut table = Table::new(&["Operation", "Job", "Service", "Reason", "Since", "Cancel"]);
    for orphan in &list.orphans {
        let answer = orphan.last_cancel_answer.as_ref().map(|last| match &last.told {
            Some(told) => format!("{} ({told})", last.answer),
            None => last.answer.clone(),
        });
        let cancel = answer.or_else(|| orphan.cancel_unavailable_reason.clone()).unwrap_or_default();
        let Orphan { operation_id, job_id, kind, .. } = orphan;
        let (reason, since) = (orphan.reason.as_deref(), orphan.since.as_deref());
        let (reason, since) = (reason.unwrap_or_default(), since.unwrap_or_default());
        table.row(&[operation_id, job_id, kind, reason, since, &cancel]);
    }
    table
}
