//! apalis on SQLite or PostgreSQL behind the protocol that all drivers speak (see `proof/bench/peers/README.md`): orders come as lines of JSON,
//! answers leave as lines of JSON, and the driver ends with its input.
//!
//! Clients and worker share one process where the worker is told of new jobs by a hook of its own SQLite connection.

mod enqueue;
mod postgres;
mod sqlite;
mod wakes;
mod work;

use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use enqueue::Enqueue;
use work::Work;

/// Tasks that one fetch takes.
const BATCH: usize = 500;
/// How often the worker looks by itself.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The same while idleness is measured: what the crates' own examples use.
const LOOK_EVERY_WHEN_IDLE: Duration = Duration::from_millis(500);
const QUEUE: &str = "noop";

/// Where everything is.
#[derive(Clone, Deserialize)]
struct Settings {
    /// An empty database; without one a SQLite file in the directory.
    database: Option<String>,
    directory: String,
    figure: String,
}

/// The same input as ours, and the time that lateness is counted from.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Job {
    at: f64,
    url: String,
    width: u32,
    height: u32,
    format: String,
}

#[derive(Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
enum Order {
    Describe,
    Setup,
    Enqueue(Enqueue),
    Work(Work),
}

#[tokio::main]
async fn main() -> Result<()> {
    let settings = std::env::args().nth(1).context("the settings are missing")?;
    let settings: Settings = serde_json::from_str(&settings).context("the settings are not understood")?;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    match &settings.database {
        Some(_) => {
            let place = postgres::Place::open(&settings).await?;
            while let Some(line) = lines.next_line().await? {
                match serde_json::from_str(&line)? {
                    Order::Describe => answer(&postgres::described()),
                    Order::Setup => answer(&place.setup().await?),
                    Order::Enqueue(order) => answer(&enqueue::run(place.storage(), order).await?),
                    Order::Work(order) => place.work(order).await?,
                }
            }
        }
        None => {
            let place = sqlite::Place::open(&settings).await?;
            while let Some(line) = lines.next_line().await? {
                match serde_json::from_str(&line)? {
                    Order::Describe => answer(&sqlite::described()),
                    Order::Setup => answer(&place.setup().await?),
                    Order::Enqueue(order) => answer(&enqueue::run(place.storage(), order).await?),
                    Order::Work(order) => place.work(order).await?,
                }
            }
        }
    }
    Ok(())
}

impl Settings {
    fn look_every(&self) -> Duration {
        if self.figure == "idle" { LOOK_EVERY_WHEN_IDLE } else { LOOK_EVERY }
    }
}

impl Job {
    fn at(at: f64) -> Self {
        Self {
            at,
            url: "https://example.org/a/b/c".to_owned(),
            width: 1_280,
            height: 720,
            format: "png".to_owned(),
        }
    }
}

fn versions() -> Value {
    json!({ "apalis": "1.0.0", "apalis-sqlite": "1.0.0", "apalis-postgres": "1.0.0" })
}

/// One line.
fn answer(said: &Value) {
    println!("{said}");
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
