//! A whole run: which levels are measured, with how much time each, and what comes of them.
//!
//! Every figure has the raw database beside it, doing the same rows in the same run: absolute figures differ from machine to machine.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use reporting::Conditions;

use crate::disk;
use crate::level::Level;
use crate::levels::{executors, growth, http, idle, operations, pipelines, start, store};
use crate::line::{Bound, Line};
use crate::report::{self, Report};
use crate::site::Ground;
use crate::work::Work;

/// What is compared takes turns, and of so many rounds the middle one is told.
pub const ROUNDS: u32 = 3;

/// What a bench is run with.
pub struct Setting {
    /// What is measured.
    pub binary: PathBuf,
    /// About how long it takes in all, without the filling of stores.
    pub seconds: u64,
    /// A PostgreSQL database, instead of files.
    pub database: Option<String>,
    /// A directory of its own, which is there: the disk that is measured.
    pub scratch: PathBuf,
    /// What is measured.
    pub levels: Vec<Level>,
    /// The most records that the growth is measured with.
    pub records: usize,
    /// Adds a bound that nothing keeps.
    pub plant_a_miss: bool,
    /// Set from outside to end it early.
    pub interrupted: Arc<AtomicBool>,
    /// What a reader of the report has to know.
    pub conditions: Conditions,
}

/// What came of a bench.
pub struct Outcome {
    /// Bounds that were missed.
    pub missed: usize,
    /// The level in which somebody wanted to see the end of it.
    pub interrupted: Option<Level>,
    /// For people: Markdown.
    pub table: String,
    /// For machines.
    pub json: String,
    /// For people with a browser.
    pub page: String,
}

/// What one level came to.
#[derive(Default)]
pub struct Measured {
    /// Kinds of work.
    pub works: Vec<Work>,
    /// Figures with what they must keep.
    pub lines: Vec<Line>,
    /// The same work beside more and more records.
    pub growth: Vec<growth::Point>,
}

/// Runs it.
pub fn run(setting: &Setting) -> Result<Outcome> {
    let ground = Ground::new(
        setting.binary.clone(),
        setting.scratch.clone(),
        setting.database.clone(),
        setting.interrupted.clone(),
    )?;
    let begin = Instant::now();
    // The disk of a database is elsewhere.
    let syncs_per_second = match setting.database {
        Some(_) => None,
        None => {
            ground.begin("the bare disk");
            Some(disk::syncs_per_second(&setting.scratch)?)
        }
    };
    let (mut measured, mut interrupted) = (Vec::new(), None);
    for level in &setting.levels {
        ground.begin(&format!("{}, {} s so far", level.name(), begin.elapsed().as_secs()));
        match measure(*level, &ground, setting) {
            Ok(one) => measured.push((*level, one)),
            // Whatever it fails with, it was told to end.
            Err(_) if setting.interrupted.load(Ordering::SeqCst) => {
                interrupted = Some(*level);
                break;
            }
            Err(error) => return Err(error),
        }
    }
    ground.hush();
    if setting.plant_a_miss
        && let Some((_, first)) = measured.first_mut()
    {
        first.lines.push(Line {
            what: "a bound that nothing keeps".to_owned(),
            measured: "0".to_owned(),
            against: String::new(),
            figure: 0.0,
            bound: Bound::AtLeast(1.0),
        });
    }
    let report = Report {
        store: if setting.database.is_some() { "PostgreSQL" } else { "SQLite" },
        seconds: setting.seconds,
        took: begin.elapsed(),
        syncs_per_second,
        measured: &measured,
        interrupted,
        conditions: &setting.conditions,
    };
    let lines = measured.iter().flat_map(|(_, level)| &level.lines);
    Ok(Outcome {
        missed: lines.filter(|line| !line.holds()).count(),
        interrupted,
        table: report::table(&report),
        json: report::json(&report)?,
        page: report::page(&report),
    })
}

fn measure(level: Level, ground: &Ground, setting: &Setting) -> Result<Measured> {
    let time = time_of(level, setting);
    match level {
        Level::Store => store::measure(ground, time),
        Level::Http => http::measure(ground, time),
        Level::Executors => executors::measure(ground, time),
        Level::Operations => operations::measure(ground, time),
        Level::Pipelines => pipelines::measure(ground, time),
        Level::Growth => growth::measure(ground, time, setting.records),
        Level::Idle => idle::measure(ground, time),
        Level::Start => start::measure(ground, time),
    }
}

/// Its share of the time, among those that are measured.
fn time_of(level: Level, setting: &Setting) -> Duration {
    let share =
        |wanted: Level| Level::ALL.iter().find(|(one, _)| *one == wanted).map_or(0, |(_, share)| *share);
    let all: u32 = setting.levels.iter().map(|level| share(*level)).sum();
    Duration::from_secs(setting.seconds) * share(level) / all.max(1)
}
