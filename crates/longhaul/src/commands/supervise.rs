//! The hidden verb under which the daemon starts its own binary to have the commands of attempts supervised.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;
use executors::process::{
    Limits, NewPrivileges, SandboxMethod, SandboxSettings, SupervisorSettings, supervise, try_sandbox,
};

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
    #[arg(long)]
    sandbox: Option<String>,
    #[arg(long)]
    protect: Vec<PathBuf>,
    /// Find out whether the sandbox can be had, and run nothing
    #[arg(long)]
    probe: bool,
}

/// With what follows the verb.
pub fn run(words: impl Iterator<Item = OsString>) -> Result<()> {
    let arguments = Supervise::parse_from(words);
    let settings = SupervisorSettings { limits: arguments.limits(), sandbox: arguments.sandbox()? };
    if arguments.probe {
        try_sandbox(&settings)?;
    } else {
        supervise(&settings)?;
    }
    Ok(())
}

impl Supervise {
    fn sandbox(&self) -> Result<Option<SandboxSettings>> {
        let Some(name) = &self.sandbox else { return Ok(None) };
        let method = SandboxMethod::parse(name).with_context(|| format!("there is no sandbox {name:?}"))?;
        Ok(Some(SandboxSettings { method, protected: self.protect.clone() }))
    }

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
