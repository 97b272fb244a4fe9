//! `simulator --seeds N --start S [--bug NAME]`: runs seeds and says what they did.

use std::process::ExitCode;
use std::time::Instant;

use simulator::{Batch, Failure, batch};

const USAGE: &str = "usage: simulator [--seeds N] [--start S] [--bug NAME]";

struct Arguments {
    seeds: u64,
    start: u64,
    bug: Option<String>,
}

fn main() -> ExitCode {
    let arguments = match parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("{message}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    if let Err(message) = plant(arguments.bug.as_deref()) {
        eprintln!("{message}");
        return ExitCode::from(2);
    }
    let started = Instant::now();
    let (batch, failure) = batch(arguments.start..arguments.start.saturating_add(arguments.seeds));
    tell(&batch, started.elapsed().as_secs_f64());
    match failure {
        None => ExitCode::SUCCESS,
        Some(failure) => {
            tell_failure(&failure);
            ExitCode::FAILURE
        }
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut arguments = Arguments { seeds: 200, start: 0, bug: None };
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        let number = || value.parse().map_err(|_| format!("{value} is not a number"));
        match word.as_str() {
            "--seeds" => arguments.seeds = number()?,
            "--start" => arguments.start = number()?,
            "--bug" => arguments.bug = Some(value),
            other => return Err(format!("unknown argument {other}")),
        }
    }
    Ok(arguments)
}

#[cfg(feature = "planted-bugs")]
fn plant(name: Option<&str>) -> Result<(), String> {
    use domain::planted::{Bug, plant};
    let Some(name) = name else { return Ok(()) };
    let bug = Bug::ALL.into_iter().find(|bug| format!("{bug:?}") == name);
    let bug = bug.ok_or_else(|| format!("no bug is called {name}; there are {:?}", Bug::ALL))?;
    plant(Some(bug));
    Ok(())
}

#[cfg(not(feature = "planted-bugs"))]
fn plant(name: Option<&str>) -> Result<(), String> {
    name.map_or(Ok(()), |_| Err("build with --features planted-bugs to plant one".to_owned()))
}

#[allow(clippy::cast_precision_loss, reason = "a rate for people")]
fn tell(batch: &Batch, seconds: f64) {
    println!("seeds          {}", batch.seeds);
    println!("steps          {}", batch.steps);
    println!("facts          {}", batch.facts);
    println!("seconds        {seconds:.2}");
    println!("steps/s        {:.0}", batch.steps as f64 / seconds.max(1e-9));
    println!("simulated h    {:.1}", batch.simulated as f64 / 3.6e9);
    println!("\nfaults");
    for (class, count) in batch.counters.faults() {
        println!("{count:12}  {class:?}");
    }
    println!("\nsometimes");
    for (situation, count) in batch.counters.situations() {
        println!("{count:12}  {situation:?}");
    }
}

fn tell_failure(failure: &Failure) {
    println!("\nthe last events of seed {}:", failure.seed);
    for line in &failure.story {
        println!("  {line}");
    }
    println!("\nseed {} broke {} after {} steps", failure.seed, failure.violation.invariant, failure.steps);
    println!("{}", failure.violation.text);
    println!("run it again: simulator --seeds 1 --start {}", failure.seed);
}
