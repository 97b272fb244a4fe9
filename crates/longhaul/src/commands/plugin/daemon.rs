//! What a daemon knows of its plugins: their circuit breakers and `longhaul plugin reset`, their memory and `longhaul plugin state`.

use anyhow::Result;
use api::ductile::{PluginBreaker, PluginList, PluginMemory, PluginReset};
use clap::Args;

use super::Breakers;
use crate::client::{Call, Connection, segment};
use crate::show::{PrintArgs, plain};

/// Let a plugin that is left alone because its jobs failed be started again
///
/// It is the breaker of the node that answers: each node counts for itself.
#[derive(Args)]
pub struct Reset {
    #[command(flatten)]
    connection: Connection,
    /// The plugin: `longhaul plugin list` names them
    name: String,
    #[command(flatten)]
    print: PrintArgs,
}

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
    #[command(flatten)]
    print: PrintArgs,
}

pub fn reset(reset: &Reset) -> Result<()> {
    let path = format!("/plugin/{}/breaker/reset", segment(&reset.name));
    let told = reset.connection.client()?.ask("reset plugin", Call::bare("POST", &path))?;
    reset.print.print(&told, |PluginReset { plugin, breaker }| {
        format!("{plugin} may be started again: its breaker is {}", breaker.state)
    })
}

pub fn state(state: &State) -> Result<()> {
    let after = state.after.map(|after| format!("?after={after}")).unwrap_or_default();
    let path = format!("/plugin/{}/state{after}", segment(&state.name));
    let told = state.connection.client()?.ask("show what a plugin remembers", Call::get(&path))?;
    state.print.print(&told, |told: &PluginMemory| {
        let mut lines = vec![
            format!("{} has changed its state {} times", plain(&told.plugin), told.version),
            format!("state: {}", plain(told.state.as_str())),
            format!("facts: {}", told.fact_count),
        ];
        lines.extend(told.facts.iter().map(|fact| {
            format!("  {} {} {}", fact.number, plain(&fact.fact_type), plain(fact.value.as_str()))
        }));
        lines.join("\n")
    })
}

/// The breakers of the daemon's plugins by their names; none if no daemon answers, since the files say all the rest.
pub fn breakers(connection: &Connection) -> Breakers {
    let Ok(client) = connection.client() else { return Breakers::new() };
    let Ok(found) = client.call::<PluginList>(Call::get("/plugins")) else { return Breakers::new() };
    found.plugins.into_iter().map(|plugin| (plugin.name, plugin.breaker)).collect()
}

/// A breaker in a few words.
pub fn breaker(breaker: Option<&PluginBreaker>) -> String {
    let Some(breaker) = breaker else { return String::new() };
    match (&breaker.open_until, breaker.failures, breaker.threshold) {
        (Some(until), _, _) => format!("{} until {until}", breaker.state),
        (None, Some(failures), Some(threshold)) => {
            format!("{}, {failures} of {threshold} failed", breaker.state)
        }
        (None, _, _) => breaker.state.clone(),
    }
}
