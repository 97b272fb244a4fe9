//! `longhaul executors`: what jobs may name.

use anyhow::Result;
use api::CapabilityList;
use clap::Args;

use crate::client::{Call, Connection};
use crate::exit::Failed;
use crate::show::{PrintArgs, Table};

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
    #[command(flatten)]
    print: PrintArgs,
}

pub fn run(arguments: &Executors) -> Result<()> {
    let list = arguments.connection.client()?.call(Call::get("/v1/capabilities")).map_err(Failed::from)?;
    arguments.print.print(&list, table)
}

/// Circles are only shown where there are any.
fn table(list: &CapabilityList) -> Table {
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
    table
}
