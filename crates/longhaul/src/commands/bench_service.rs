//! The hidden verb under which a bench starts the service that work goes on at, in a process of its own.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

#[derive(Args)]
pub struct BenchService {
    /// The bench
    #[arg(long)]
    end_with: u32,
}

pub fn run(service: &BenchService) -> Result<ExitCode> {
    super::end_with(service.end_with)?;
    measure::serve()?;
    Ok(ExitCode::SUCCESS)
}
