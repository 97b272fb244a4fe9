//! What a daemon says of the circuit breakers of its plugins, and `longhaul plugin reset`.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Result;
use api::ductile::{PluginBreaker, PluginList, PluginReset};
use clap::Args;

use crate::client::{Call, Connection, segment};
use crate::exit::Failed;
use crate::show::say;

/// Let a plugin that is left alone because its jobs failed be started again
///
/// It is the breaker of the node that answers: each node counts for itself.
#[derive(Args)]
pub struct Reset {
    #[command(flatten)]
    connection: Connection,
    /// The plugin: `longhaul plugin list` names them
    name: String,
    /// Print JSON for machines
    #[arg(long)]
    json: bool,
}

pub fn reset(reset: &Reset) -> Result<ExitCode> {
    let path = format!("/plugin/{}/breaker/reset", segment(&reset.name));
    let call = Call { method: "POST", path: &path, body: None, idempotency_key: None };
    let client = reset.connection.client()?;
    let told: PluginReset = client.call(call).map_err(|error| Failed::to("reset plugin", &error))?;
    if reset.json {
        say(format_args!("{}", serde_json::to_string(&told)?));
    } else {
        say(format_args!("{} may be started again: its breaker is {}", told.plugin, told.breaker.state));
    }
    Ok(ExitCode::SUCCESS)
}

/// The breakers of the daemon's plugins by their names; none if no daemon answers, since the files say all the rest.
pub fn known(connection: &Connection) -> BTreeMap<String, PluginBreaker> {
    let Ok(client) = connection.client() else { return BTreeMap::new() };
    let Ok(found) = client.call::<PluginList>(Call::get("/plugins")) else { return BTreeMap::new() };
    found.plugins.into_iter().map(|plugin| (plugin.name, plugin.breaker)).collect()
}

/// In a few words.
pub fn told(breaker: Option<&PluginBreaker>) -> String {
    let Some(breaker) = breaker else { return String::new() };
    match (&breaker.open_until, breaker.failures, breaker.threshold) {
        (Some(until), _, _) => format!("{} until {until}", breaker.state),
        (None, Some(failures), Some(threshold)) => {
            format!("{}, {failures} of {threshold} failed", breaker.state)
        }
        (None, _, _) => breaker.state.clone(),
    }
}
