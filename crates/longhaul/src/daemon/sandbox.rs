//! What commands are kept in, found out at the start and said once where there is nothing or less than everything.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use executors::process::{Artifacts, ProcessHost, SandboxMethod, SandboxPolicy};

use super::DaemonOptions;
use crate::config::SandboxWord;
use crate::log::say;

/// Finds out which sandbox there is.
pub(super) fn host(
    data_dir: &Path,
    artifacts: &Arc<Artifacts>,
    options: &DaemonOptions,
) -> Result<Arc<ProcessHost>> {
    let supervisor = std::env::current_exe().context("cannot find the program of this process")?;
    let policy = options.sandbox.map(SandboxWord::policy);
    let host = ProcessHost::new(supervisor, data_dir, artifacts.clone())?.with_sandbox_policy(policy);
    let of_config = options.config.confinement().sandbox;
    match (policy.unwrap_or(of_config), host.sandbox_method()) {
        (SandboxPolicy::Off, _) => say!(
            "longhaul: commands, plugins and backends can read and change {}, because the sandbox is off",
            data_dir.display()
        ),
        (SandboxPolicy::Preferred, Err(why)) => say!(
            "longhaul: commands, plugins and backends can read and change {}: {why}; \
             run them as another user (`run_as` in the config), or refuse them (`sandbox: required`)",
            data_dir.display()
        ),
        (SandboxPolicy::Required, Err(why)) => {
            say!("longhaul: no command, plugin or backend is started: {why}");
        }
        (policy, Ok(method)) => {
            match method {
                SandboxMethod::Cover | SandboxMethod::UserNamespace => {}
                // What Landlock alone does not do.
                SandboxMethod::Siblings => say!(
                    "longhaul: {} cannot be covered for commands: they can create nothing beside it, and they can change \
                     permissions, owners and times of files in it, but not their content (docs/sandbox.md, \"Landlock alone\")",
                    data_dir.display()
                ),
            }
            report_gaps(host.sandbox_gaps(), policy);
        }
    }
    Ok(Arc::new(host))
}

/// Says what links lead to and the sandbox does not protect.
fn report_gaps(gaps: &[String], policy: SandboxPolicy) {
    if gaps.is_empty() {
        return;
    }
    let gaps = gaps.join("; ");
    match policy {
        SandboxPolicy::Required => say!("longhaul: no command, plugin or backend is started: {gaps}"),
        SandboxPolicy::Preferred | SandboxPolicy::Off => say!(
            "longhaul: the sandbox does not protect everything: {gaps}; \
             or refuse commands until then (`sandbox: required`)"
        ),
    }
}
