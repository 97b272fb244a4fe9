//! `longhaul plugin state`: what a plugin remembers.

use std::process::ExitCode;

use anyhow::Result;
use api::ductile::PluginMemory;
use clap::Args;

use crate::client::{Call, Connection, segment};
use crate::exit::Failed;
use crate::show::{plain, say};

/// Show what a plugin remembers: its state, and the facts that its manifest asks to keep
///
/// The newest facts; the last 10,000 of each plugin are there.
#[derive(Args)]
pub struct State {
    #[command(flatten)]
    connection: Connection,
    /// The plugin: `longhaul plugin list` names them
    name: String,
    /// Facts after this number instead of the newest
    #[arg(long, value_name = "NUMBER")]
    after: Option<u64>,
    /// Print JSON for machines
    #[arg(long)]
    json: bool,
}

pub fn show(state: &State) -> Result<ExitCode> {
    let after = state.after.map(|after| format!("?after={after}")).unwrap_or_default();
    let path = format!("/plugin/{}/state{after}", segment(&state.name));
    let client = state.connection.client()?;
    let told: PluginMemory =
        client.call(Call::get(&path)).map_err(|error| Failed::to("show what a plugin remembers", &error))?;
    if state.json {
        say(format_args!("{}", serde_json::to_string(&told)?));
        return Ok(ExitCode::SUCCESS);
    }
    say(format_args!("{} has changed its state {} times", plain(&told.plugin), told.version));
    say(format_args!("state: {}", plain(told.state.as_str())));
    say(format_args!("facts: {}", told.fact_count));
    for fact in &told.facts {
        say(format_args!("  {} {} {}", fact.number, plain(&fact.fact_type), plain(fact.value.as_str())));
    }
    Ok(ExitCode::SUCCESS)
}
