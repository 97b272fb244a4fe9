//! `longhaul nodes`: who works on this store, and the order to take no more work.

use anyhow::Result;
use api::{Node, NodeAnswer, NodeList};
use clap::{Args, Subcommand};

use crate::client::{Call, Client, Connection, segment};
use crate::exit::Failed;
use crate::show::{PrintArgs, Table, say};

const EXAMPLES: &str = "Examples:
  longhaul nodes                           who works on this store
  longhaul nodes drain daemon-0123         takes nothing new, and finishes what it has
  longhaul nodes undrain daemon-0123       takes work again

A node drains until it is told otherwise or ends. When it has no attempts left it can be stopped without a loss of time; a node \
that is stopped with attempts hands them back. A silent node was not heard of for 30 seconds: its work is taken over when its \
leases end, whether it lives or not.";

/// See the nodes that work on this store, and drain them
#[derive(Args)]
#[command(after_help = EXAMPLES, mut_subcommands = |verb| verb.after_help(EXAMPLES))]
pub struct NodesArguments {
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    print: PrintArgs,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Subcommand)]
enum Verb {
    /// Take nothing new; finish what it has
    Drain(Named),
    /// Take work again
    Undrain(Named),
}

#[derive(Args)]
struct Named {
    /// The node
    id: String,
}

pub fn run(arguments: &NodesArguments) -> Result<()> {
    let client = arguments.connection.client()?;
    match &arguments.verb {
        None => arguments.print.print(&client.ask("list", Call::get("/nodes"))?, table)?,
        Some(Verb::Drain(Named { id })) => {
            tell(&client, id, "drain")?;
            say(format_args!("{id} takes nothing new; `longhaul nodes` shows when it is empty"));
        }
        Some(Verb::Undrain(Named { id })) => {
            tell(&client, id, "undrain")?;
            say(format_args!("{id} takes work again"));
        }
    }
    Ok(())
}

fn tell(client: &Client, id: &str, verb: &str) -> Result<NodeAnswer, Failed> {
    client.ask(verb, Call::post(&format!("/nodes/{}/{verb}", segment(id)), &serde_json::json!({})))
}

fn table(list: &NodeList) -> Table {
    let heads =
        ["Node", "Machine", "Address", "Version", "State", "Last heard", "Attempts", "Polls", "Clock off"];
    let mut table = Table::new(&heads);
    for node in &list.nodes {
        let Node { id, name, url, version, state, heartbeat_at, .. } = node;
        let (attempts, polls) = (node.attempts.to_string(), node.polls.to_string());
        let off = clock_off(node.clock_step_seconds);
        table.row(&[id, name, url, version, state, heartbeat_at, &attempts, &polls, &off]);
    }
    table
}

/// How far the wall clock is off, if it is.
fn clock_off(seconds: i64) -> String {
    if seconds == 0 { String::new() } else { format!("{seconds:+} s") }
}
