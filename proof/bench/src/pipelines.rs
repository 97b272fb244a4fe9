//! The bench of pipelines: what a run costs beyond the starts of its plugins and its durable commits, how quickly events are routed, and
//! how soon one step follows another; all beside what the same machine can do in the same run.

mod cost;
mod hop;
mod host;
mod many;
mod pages;
mod route;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, ensure};
use clap::Args;
use measure::log;

use crate::daemon::report::{self, Line};
use crate::daemon::{self, Place};
use host::Host;

/// Measures pipelines of plugins that do nothing: a run, the routing of an event, the way from one step to the next.
#[derive(Args)]
pub struct Pipelines {
    /// Runs per round.
    #[arg(long, default_value_t = 150)]
    runs: usize,
    /// Events per round of the routing.
    #[arg(long, default_value_t = 1_000)]
    events: usize,
    /// The daemon; built if it is not named.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// The plugin that does nothing; built if it is not named.
    #[arg(long)]
    plugin: Option<PathBuf>,
    /// Only these figures: cost, route, hop, many.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

/// Prints the tables; fails if a bound was missed.
pub fn run(pipelines: &Pipelines, scratch: &Path) -> Result<()> {
    let place = Place::new(pipelines.binary.clone(), scratch)?;
    let plugin = pipelines.plugin.clone().map_or_else(|| daemon::built("bench", "trivial-plugin"), Ok)?;
    let wanted = |name: &str| pipelines.only.is_empty() || pipelines.only.iter().any(|only| only == name);
    let mut missed = 0;
    let mut print = |line: Line| missed += usize::from(!line.print());
    if wanted("cost") || wanted("hop") || wanted("route") {
        report::head();
    }
    if wanted("cost") || wanted("hop") {
        let host = Host::start(&place, &plugin, "runs", None)?;
        for _ in 0..cost::RUNS_BEFORE {
            place.runtime.block_on(host.run())?;
        }
        if wanted("cost") {
            print(cost::measure(&place, &host, pipelines.runs)?);
        }
        if wanted("hop") {
            print(hop::measure(&place, &host, pipelines.runs)?);
        }
        place.runtime.block_on(host.daemon.stop());
    }
    if wanted("route") {
        print(route::measure(&place, pipelines.events)?);
    }
    if wanted("many") {
        println!();
        let most = many::AT_ONCE.into_iter().max();
        let host = Arc::new(Host::start(&place, &plugin, "many", most)?);
        many::print(&place, &host, pipelines.runs * 2)?;
        place.runtime.block_on(host.daemon.stop());
    }
    ensure!(missed == 0, "{missed} figures miss their bounds");
    Ok(())
}
