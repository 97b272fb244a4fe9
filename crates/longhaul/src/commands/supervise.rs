//! The hidden verb under which the daemon starts its own binary to have the commands of attempts supervised.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use engine::process::{Limits, NewPrivileges};

/// Run commands for the daemon and end everything that they start
#[derive(Parser)]
#[command(no_binary_name = true)]
struct Supervise {
    #[arg(long)]
    memory_bytes: Option<u64>,
    #[arg(long)]
    cpu_seconds: Option<u64>,
    #[arg(long)]
    open_files: Option<u64>,
    #[arg(long)]
    processes: Option<u64>,
    #[arg(long)]
    new_privileges: bool,
}

/// With what follows the verb.
pub fn run(words: impl Iterator<Item = OsString>) -> Result<ExitCode> {
    engine::process::supervise(&Supervise::parse_from(words).limits())?;
    Ok(ExitCode::SUCCESS)
}

impl Supervise {
    fn limits(&self) -> Limits {
        Limits {
            memory_bytes: self.memory_bytes,
            cpu_seconds: self.cpu_seconds,
            open_files: self.open_files,
            processes: self.processes,
            new_privileges: if self.new_privileges { NewPrivileges::Allowed } else { NewPrivileges::Never },
        }
    }
}
