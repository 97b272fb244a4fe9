//! The hidden verb under which the daemon starts its own binary, once per attempt of a process executor.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use engine::process::Limits;

pub fn run(argv: &[OsString], grace: Duration, limits: &Limits) -> Result<ExitCode> {
    engine::process::supervise(argv, grace, limits)?;
    Ok(ExitCode::SUCCESS)
}
