//! `longhaul clock`: how the store's time stands to the wall clock, and the order to make it what the wall clock says.

use anyhow::{Result, bail};
use api::{Clock, ClockSet, ClockStep};
use clap::{Args, Subcommand};

use crate::client::{Call, Connection};
use crate::show::PrintArgs;

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
    #[command(flatten)]
    print: PrintArgs,
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

pub fn run(arguments: &ClockArguments) -> Result<()> {
    let client = arguments.connection.client()?;
    match arguments.verb {
        None => arguments.print.print(&client.ask("read", Call::get("/clock"))?, shown),
        Some(Verb::SetRight { yes: false }) => {
            let clock: Clock = client.ask("read", Call::get("/clock"))?;
            let seconds = clock.step_seconds;
            bail!("nothing was changed: store time would jump by {seconds} s; pass --yes to do it");
        }
        Some(Verb::SetRight { yes: true }) => {
            let set = client.ask("set-right", Call::post("/clock/set-right", &serde_json::json!({})))?;
            arguments.print.print(&set, |set: &ClockSet| match set.jumped_seconds {
                0 => "store time agrees with the wall clock: nothing was changed".to_owned(),
                seconds => format!("store time jumped by {seconds} s to {}", set.clock.store_time),
            })
        }
    }
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
