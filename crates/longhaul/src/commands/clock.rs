//! `longhaul clock`: how the store's time stands to the wall clock, and the order to make it what the wall clock says.

use std::process::ExitCode;

use anyhow::{Result, bail};
use api::{Clock, ClockSet, ClockStep};
use clap::{Args, Subcommand};

use crate::client::{Call, Connection};
use crate::exit::Failed;
use crate::show::say;

const EXAMPLES: &str = "Examples:
  longhaul clock                           how the store's time stands to the wall clock
  longhaul clock set-right --yes           make store time what the wall clock says

Store time goes by the boot-time clock. A step of the wall clock is adopted by itself when it has lasted (clock.adopt_after, 5m). A \
store that is ahead of the wall clock after a reboot waits for set-right. Leases, lives and time limits keep the time that they have \
left; deadlines and due times are times of day and stay.";

/// Show how the store's time stands to the wall clock, and set it right
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct ClockArguments {
    #[command(flatten)]
    connection: Connection,
    /// Print JSON for machines
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Subcommand)]
enum Verb {
    /// Make store time what the wall clock says
    #[command(after_help = EXAMPLES)]
    SetRight {
        /// Do it: without this nothing is changed
        #[arg(long)]
        yes: bool,
    },
}

pub fn run(arguments: ClockArguments) -> Result<ExitCode> {
    let client = arguments.connection.client()?;
    match arguments.verb {
        None => {
            let clock: Clock =
                client.call(Call::get("/clock")).map_err(|error| Failed::to("read", &error))?;
            if arguments.json {
                say(format_args!("{}", serde_json::to_string(&clock)?));
            } else {
                say(format_args!("{}", shown(&clock)));
            }
        }
        Some(Verb::SetRight { yes: false }) => {
            let clock: Clock =
                client.call(Call::get("/clock")).map_err(|error| Failed::to("read", &error))?;
            let seconds = clock.step_seconds;
            bail!("nothing was changed: store time would jump by {seconds} s; pass --yes to do it");
        }
        Some(Verb::SetRight { yes: true }) => {
            let set: ClockSet = client
                .call(Call::post("/clock/set-right", &serde_json::json!({})))
                .map_err(|error| Failed::to("set-right", &error))?;
            if arguments.json {
                say(format_args!("{}", serde_json::to_string(&set)?));
            } else if set.jumped_seconds == 0 {
                say(format_args!("store time agrees with the wall clock: nothing was changed"));
            } else {
                let (seconds, now) = (set.jumped_seconds, &set.clock.store_time);
                say(format_args!("store time jumped by {seconds} s to {now}"));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn shown(clock: &Clock) -> String {
    let mut lines = vec![
        format!("Store time   {}", clock.store_time),
        format!("Wall clock   {}", clock.wall_time),
        format!("Difference   {} s", clock.step_seconds),
    ];
    lines.extend(clock.since.as_ref().map(|since| format!("Since        {since}")));
    lines.extend(clock.steps.iter().map(|step| {
        let ClockStep { from, seconds, adopted_by, .. } = step;
        format!("Adopted      {seconds} s at {from} by {adopted_by}")
    }));
    lines.extend(clock.detail.as_ref().map(|detail| format!("\n{detail}")));
    lines.join("\n")
}
