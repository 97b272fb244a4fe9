//! The hidden verbs under which a drill and a bench start the services that work goes on at, in processes of their own.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Subcommand;
use slow_service::{Measures, Options, SlowService};

use crate::show::say;

#[derive(Subcommand)]
pub enum Service {
    /// The service that a drill gives work to
    #[command(hide = true)]
    DrillService {
        #[arg(long)]
        listen: SocketAddr,
        /// Where it keeps what it has accepted
        #[arg(long)]
        state: PathBuf,
        /// The drill
        #[arg(long)]
        end_with: u32,
    },
    /// The service that a bench gives work to
    #[command(hide = true)]
    BenchService {
        /// The bench
        #[arg(long)]
        end_with: u32,
    },
}

pub fn run(service: Service) -> Result<()> {
    match service {
        Service::DrillService { listen, state, end_with } => {
            super::end_with(end_with)?;
            // Its animals are small, but slower than a poll may take.
            let (hang, drip) = (Duration::from_secs(3), Duration::from_millis(50));
            let measures = Measures { hang, drip, ..Measures::small() };
            let options = Options { listen, state: Some(state), measures, ..Options::default() };
            super::with_workers(async {
                let running = SlowService::start(options).await?;
                say(format_args!("the service is at {}", running.url()));
                std::future::pending().await
            })
        }
        Service::BenchService { end_with } => {
            super::end_with(end_with)?;
            Ok(measure::serve()?)
        }
    }
}
