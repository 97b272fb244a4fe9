//! The hidden verb under which a drill starts the service that work goes on at, in a process of its own.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use slow_service::{Measures, Options, SlowService};

use crate::show::say;

#[derive(Args)]
pub struct DrillService {
    #[arg(long)]
    listen: SocketAddr,
    /// Where it keeps what it has accepted
    #[arg(long)]
    state: PathBuf,
    /// The drill
    #[arg(long)]
    end_with: u32,
}

pub fn run(service: &DrillService) -> Result<ExitCode> {
    super::end_with(service.end_with)?;
    // Its animals are small, but slower than a poll may take.
    let measures =
        Measures { hang: Duration::from_secs(3), drip: Duration::from_millis(50), ..Measures::small() };
    let options = Options {
        listen: service.listen,
        state: Some(service.state.clone()),
        measures,
        ..Options::default()
    };
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let running = SlowService::start(options).await?;
        say(format_args!("the service is at {}", running.url()));
        std::future::pending::<()>().await;
        Ok(ExitCode::SUCCESS)
    })
}
