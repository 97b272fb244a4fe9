//! `longhaul nodes`: who works on this store, and the order to take no more work.

use std::process::ExitCode;

use anyhow::Result;
use api::{NodeAnswer, NodeList};
use clap::{Args, Subcommand};

use crate::client::{Call, Client, Connection, segment};
use crate::exit::Failed;
use crate::show::{Table, say};

const EXAMPLES: &str = "Examples:
  longhaul nodes                           who works on this store
  longhaul nodes drain daemon-0123         takes nothing new, and finishes what it has
  longhaul nodes undrain daemon-0123       takes work again

A node drains until it is told otherwise or ends. When it has no attempts left it can be stopped without a loss of time; a node \
that is stopped with attempts hands them back. A silent node was not heard of for 30 seconds: its work is taken over when its \
leases end, whether it lives or not.";

/// See the nodes that work on this store, and drain them
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct NodesArguments {
    #[command(flatten)]
    connection: Connection,
    /// Print JSON for machines
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Subcommand)]
enum Verb {
    /// Take nothing new; finish what it has
    #[command(after_help = EXAMPLES)]
    Drain {
        /// The node
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Take work again
    #[command(after_help = EXAMPLES)]
    Undrain {
        /// The node
        #[arg(value_name = "ID")]
        id: String,
    },
}

pub fn run(arguments: NodesArguments) -> Result<ExitCode> {
    let client = arguments.connection.client()?;
    match arguments.verb {
        None => list(&client, arguments.json)?,
        Some(Verb::Drain { id }) => {
            tell(&client, &id, "drain")?;
            say(format_args!("{id} takes nothing new; `longhaul nodes` shows when it is empty"));
        }
        Some(Verb::Undrain { id }) => {
            tell(&client, &id, "undrain")?;
            say(format_args!("{id} takes work again"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(client: &Client, json: bool) -> Result<()> {
    let list: NodeList = client.call(Call::get("/nodes")).map_err(|error| Failed::to("list", &error))?;
    if json {
        say(format_args!("{}", serde_json::to_string(&list)?));
    } else {
        say(format_args!("{}", table(&list)));
    }
    Ok(())
}

fn tell(client: &Client, id: &str, verb: &str) -> Result<()> {
    let path = format!("/nodes/{}/{verb}", segment(id));
    let _: NodeAnswer =
        client.call(Call::post(&path, &serde_json::json!({}))).map_err(|error| Failed::to(verb, &error))?;
    Ok(())
}

fn table(list: &NodeList) -> String {
    let mut table = Table::new(&[
        "Node",
        "Machine",
        "Address",
        "Version",
        "State",
        "Last heard",
        "Attempts",
        "Polls",
        "Clock off",
    ]);
    for node in &list.nodes {
        table.row(&[
            &node.id,
            &node.name,
            &node.url,
            &node.version,
            &node.state,
            &node.heartbeat_at,
            &node.attempts.to_string(),
            &node.polls.to_string(),
            &clock_off(node.clock_step_seconds),
        ]);
    }
    table.text()
}

/// How far the wall clock is off, if it is.
fn clock_off(seconds: i64) -> String {
    if seconds == 0 { String::new() } else { format!("{seconds:+} s") }
}
