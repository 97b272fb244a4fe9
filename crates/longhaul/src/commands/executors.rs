//! `longhaul executors`: what jobs may name.

use std::process::ExitCode;

use anyhow::Result;
use api::CapabilityList;
use clap::Args;

use crate::client::{Call, Connection};
use crate::exit::Failed;
use crate::show::{Table, say};

const EXAMPLES: &str = "Examples:
  longhaul executors                       what `longhaul jobs create --executor NAME` may name
  longhaul executors --json | jq -r '.capabilities[] | select(.available) | .name'

Every daemon has noop, slow and command; longhaul.yaml and connectors add others. sync-only answers with the result, async-only \
leaves work outside, either does both. One that only another node has shows no mode here.";

/// List the executors that jobs may name
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Executors {
    #[command(flatten)]
    connection: Connection,
    /// Print JSON for machines
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Executors) -> Result<ExitCode> {
    let client = arguments.connection.client()?;
    let list: CapabilityList = client.call(Call::get("/v1/capabilities")).map_err(Failed::from)?;
    if arguments.json {
        say(format_args!("{}", serde_json::to_string(&list)?));
    } else {
        say(format_args!("{}", table(&list)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Circles are only shown where there are any.
fn table(list: &CapabilityList) -> String {
    let circles = list.capabilities.iter().any(|capability| capability.circle.is_some());
    let heads = ["Executor", "Mode", "Available", "Circle"];
    let shown = if circles { heads.len() } else { heads.len() - 1 };
    let mut table = Table::new(&heads[..shown]);
    for capability in &list.capabilities {
        let mode = capability.execution_mode_support.as_deref().unwrap_or_default();
        let available = if capability.available { "yes" } else { "no" };
        let cells = [&*capability.name, mode, available, capability.circle.as_deref().unwrap_or_default()];
        table.row(&cells[..shown]);
    }
    table.text()
}
