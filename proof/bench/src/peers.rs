//! Our own driver beside those of the peers (`proof/bench/peers`): the real daemon, over HTTP, behind the protocol that all drivers speak.
//!
//! Orders come as lines of JSON on standard input, answers leave as lines of JSON on standard output, and the driver ends with its input.
//! What the figures mean is settled by whoever gives the orders.

mod enqueue;
mod lateness;
mod work;

use std::ffi::OsStr;
use std::io::BufRead;
use std::path::PathBuf;
use std::time::SystemTime;

use anyhow::{Context, Result};
use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::daemon::load;
use crate::daemon::process::{DaemonProcess, Dispatch};
use enqueue::Enqueue;
use work::Work;

/// Drives the daemon for the comparison with peers.
#[derive(Args)]
pub struct Ours {
    /// Where everything is, as JSON.
    settings: String,
}

/// Where everything is.
#[derive(Deserialize)]
struct Settings {
    /// The daemon.
    binary: PathBuf,
    /// A directory of this measurement's own.
    directory: PathBuf,
    /// An empty database of its own; without one the store is a SQLite file in the directory.
    database: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
enum Order {
    /// What is measured, in words.
    Describe,
    /// Make the tables.
    Setup,
    Enqueue(Enqueue),
    Work(Work),
}

/// Answers orders until there are no more.
pub fn run(ours: &Ours) -> Result<()> {
    let settings: Settings =
        serde_json::from_str(&ours.settings).context("the settings are not understood")?;
    let mut working = None;
    for line in std::io::stdin().lock().lines() {
        let order: Order = serde_json::from_str(&line?).context("the order is not understood")?;
        match order {
            Order::Describe => answer(&settings.described()),
            // A first start makes them.
            Order::Setup => {
                drop(settings.start(Dispatch::Off)?);
                answer(&json!({ "ready": true }));
            }
            Order::Enqueue(enqueue) => answer(&load::runtime()?.block_on(enqueue::run(&settings, &enqueue))?),
            Order::Work(work) => working = Some(work::run(&settings, &work)?),
        }
    }
    drop(working);
    Ok(())
}

impl Settings {
    fn start(&self, dispatch: Dispatch) -> Result<DaemonProcess> {
        let data_dir = self.directory.join("longhaul-data");
        let mut arguments: Vec<&OsStr> = Vec::new();
        if let Some(database) = &self.database {
            arguments.push("--database".as_ref());
            arguments.push(database.as_ref());
        }
        match dispatch {
            Dispatch::On => {}
            Dispatch::Off => arguments.push("--no-dispatch".as_ref()),
        }
        DaemonProcess::start_with(&self.binary, &data_dir, &arguments)
    }

    fn described(&self) -> Value {
        let durability = match self.database {
            None => {
                "synchronous=FULL, one fsync for all commits that wait together; a take by the daemon itself stands on the next commit's"
            }
            Some(_) => {
                "fsync on, synchronous_commit on for all that anybody is told; a take by the daemon itself stands on the next commit"
            }
        };
        json!({
            "versions": { "longhaul": env!("CARGO_PKG_VERSION") },
            "settings": "`longhaul serve` as it comes; the built-in executor `noop`; clients over HTTP with kept connections, from another process",
            "durability": durability,
            "rows": "one fact for each step of a job, its view, its agenda row and its bodies; all kept",
            "batches": true,
        })
    }
}

/// One line.
fn answer(said: &Value) {
    println!("{said}");
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
