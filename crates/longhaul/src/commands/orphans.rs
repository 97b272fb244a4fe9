//! `longhaul orphans`: what may still run outside although it is over here.

use std::process::ExitCode;

use anyhow::Result;
use api::{OrphanAnswer, OrphanList, RetryCancel, SettleOrphan};
use clap::{Args, Subcommand};

use crate::client::{Call, Connection, segment};
use crate::exit::Failed;
use crate::show::{Table, plain, say};

const EXAMPLES: &str = "Examples:
  longhaul orphans list                    what may still run outside, oldest first
  longhaul orphans cancel op-0123          ask its service again to stop it
  longhaul orphans settle op-0123 --note 'not on the console any more'

Work stays on this list when its cancel was not confirmed, when the host gave it up while it ran, when its service does not \
know it, or when nobody knows whether it was ever taken. It leaves the list when its service says that it has stopped or ended \
(it is asked less and less often, for a week at most; `cancel` begins anew), or when somebody has looked and says so.";

/// See and settle what may still run outside
#[derive(Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct OrphansArguments {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// What may still run outside, oldest first
    #[command(after_help = EXAMPLES)]
    List {
        /// The most that are shown
        #[arg(long, default_value_t = 100)]
        limit: u16,
        /// Print JSON for machines
        #[arg(long)]
        json: bool,
    },
    /// Ask its service again to stop it
    #[command(after_help = EXAMPLES)]
    Cancel {
        /// The operation
        #[arg(value_name = "ID")]
        id: String,
        /// Why
        #[arg(long)]
        reason: Option<String>,
    },
    /// Vouch that nothing of it runs outside any more
    #[command(after_help = EXAMPLES)]
    Settle {
        /// The operation
        #[arg(value_name = "ID")]
        id: String,
        /// What was found
        #[arg(long)]
        note: String,
    },
}

pub fn run(arguments: OrphansArguments) -> Result<ExitCode> {
    let client = arguments.connection.client()?;
    match arguments.verb {
        Verb::List { limit, json } => {
            let path = format!("/orphans?limit={limit}");
            let list: OrphanList =
                client.call(Call::get(&path)).map_err(|error| Failed::to("list", &error))?;
            if json {
                say(format_args!("{}", serde_json::to_string(&list)?));
            } else {
                say(format_args!("{}", table(&list)));
            }
        }
        Verb::Cancel { id, reason } => {
            let path = format!("/orphans/{}/cancel", segment(&id));
            let sent = RetryCancel { reason };
            let _: OrphanAnswer =
                client.call(Call::post(&path, &sent)).map_err(|error| Failed::to("cancel", &error))?;
            say(format_args!(
                "Its service is asked again to stop {id}; `longhaul orphans list` shows what it says"
            ));
        }
        Verb::Settle { id, note } => {
            let path = format!("/orphans/{}/settle", segment(&id));
            let sent = SettleOrphan { note };
            let answer: OrphanAnswer =
                client.call(Call::post(&path, &sent)).map_err(|error| Failed::to("settle", &error))?;
            let note = answer.orphan.settled_note.unwrap_or_default();
            say(format_args!(
                "Settled {id}: {}; `longhaul jobs why {}` shows it",
                plain(&note),
                answer.orphan.job_id
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn table(list: &OrphanList) -> String {
    let mut table = Table::new(&["Operation", "Job", "Service", "Reason", "Since", "Cancel"]);
    for orphan in &list.orphans {
        let answer = orphan.last_cancel_answer.as_ref().map(|last| match &last.told {
            Some(told) => format!("{} ({told})", last.answer),
            None => last.answer.clone(),
        });
        let cancel = answer.or_else(|| orphan.cancel_unavailable_reason.clone()).unwrap_or_default();
        table.row(&[
            &orphan.operation_id,
            &orphan.job_id,
            &orphan.kind,
            orphan.reason.as_deref().unwrap_or_default(),
            orphan.since.as_deref().unwrap_or_default(),
            &cancel,
        ]);
    }
    table.text()
}
