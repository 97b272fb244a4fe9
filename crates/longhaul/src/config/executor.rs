//! One executor of the file: a command, what it may see, how often it is tried.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use domain::RetryPolicy;
use domain::limits::MAX_LABEL_BYTES;
use engine::Executors;
use executors::backend::BackendSettings;
use executors::process::{Limits, NewPrivileges, ProcessSettings, Program};
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::bounded::{Bounded, Seconds};
use super::sandbox::{Confinement, SandboxWord};
use crate::builtin;

const MAX_CONCURRENCY: u64 = 1_000;
const DEFAULT_CONCURRENCY: usize = 4;
pub(super) const MAX_ATTEMPTS: u64 = domain::retry::MAX_ATTEMPTS as u64;
pub(super) const MAX_BACKOFF_SECONDS: u64 = domain::retry::MAX_BACKOFF_SECONDS as u64;
/// A year.
const MAX_TIMEOUT_SECONDS: u64 = 31_536_000;
const MAX_GRACE_SECONDS: u64 = 60;
/// A gibibyte.
const MAX_OUTPUT_BYTES: u64 = 1_073_741_824;
/// The supervisor itself lives within them.
const LEAST_MEMORY_BYTES: u64 = 64 * 1_048_576;
const MOST_MEMORY_BYTES: u64 = 1 << 50;
const LEAST_OPEN_FILES: u64 = 32;
const MOST_OPEN_FILES: u64 = 65_536;
const MOST_PROCESSES: u64 = 1_000_000;
/// Commands of a backend that stay, if the config does not say.
const DEFAULT_PERSISTENT: usize = 8;
const DEFAULT_IDLE: Duration = Duration::from_mins(10);
const MAX_WORDS: usize = 1_000;
const MAX_VARIABLES: usize = 1_000;

/// One executor.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecutorConfig {
    /// What jobs call it.
    pub name: String,
    /// Whose jobs it is for; everybody's if it is left out.
    pub circle: Option<String>,
    /// How it works.
    pub kind: Kind,
    argv: Vec<String>,
    cwd: Option<PathBuf>,
    /// Of a backend: more words of the command, by the name that jobs may give.
    #[serde(default)]
    profiles: BTreeMap<String, Vec<String>>,
    /// Of a backend: the folders under which jobs may have it work.
    #[serde(default)]
    roots: Vec<PathBuf>,
    /// Of a backend: commands that stay, at the same time.
    max_persistent: Option<Bounded<1, MAX_CONCURRENCY>>,
    /// Of a backend: how long such a command stays without a job.
    idle_seconds: Option<Seconds<1, MAX_TIMEOUT_SECONDS>>,
    #[serde(default)]
    env: Environment,
    concurrency: Option<Bounded<1, MAX_CONCURRENCY>>,
    #[serde(default)]
    retry: Retry,
    timeout_seconds: Option<Seconds<1, MAX_TIMEOUT_SECONDS>>,
    grace_seconds: Option<Seconds<0, MAX_GRACE_SECONDS>>,
    output_limit_bytes: Option<Bounded<0, MAX_OUTPUT_BYTES>>,
    #[serde(default)]
    limits: LimitsConfig,
    /// Whether it may run without the sandbox.
    sandbox: Option<SandboxWord>,
    /// Who it runs as.
    pub(super) run_as: Option<Spanned<String>>,
}

/// How an executor works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A command; the job's input is on its standard input.
    Process,
    /// A command that is started in the folder that the job names; the prompt is on its standard input.
    Backend,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Environment {
    /// Variables that the command has from the daemon.
    allow: Option<Vec<String>>,
    /// Variables with fixed values.
    set: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Retry {
    max_attempts: Option<Bounded<1, MAX_ATTEMPTS>>,
    backoff_seconds: Option<Seconds<0, MAX_BACKOFF_SECONDS>>,
    max_backoff_seconds: Option<Seconds<0, MAX_BACKOFF_SECONDS>>,
}

/// What the kernel keeps a command to.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct LimitsConfig {
    memory_bytes: Option<Bounded<LEAST_MEMORY_BYTES, MOST_MEMORY_BYTES>>,
    cpu_seconds: Option<Seconds<1, MAX_TIMEOUT_SECONDS>>,
    open_files: Option<Bounded<LEAST_OPEN_FILES, MOST_OPEN_FILES>>,
    processes: Option<Bounded<1, MOST_PROCESSES>>,
    new_privileges: bool,
}

impl LimitsConfig {
    fn limits(self) -> Limits {
        Limits {
            memory_bytes: self.memory_bytes.map(Bounded::value),
            cpu_seconds: self.cpu_seconds.map(Seconds::value),
            open_files: self.open_files.map(Bounded::value),
            processes: self.processes.map(Bounded::value),
            new_privileges: if self.new_privileges { NewPrivileges::Allowed } else { NewPrivileges::Never },
        }
    }
}

impl ExecutorConfig {
    /// What the form alone does not show.
    pub(super) fn check(&self) -> Result<()> {
        let name = &self.name;
        let fits = (1..=MAX_LABEL_BYTES).contains(&name.len());
        ensure!(fits, "the name of an executor has 1 to {MAX_LABEL_BYTES} bytes");
        let is_built_in = builtin::NAMES.contains(&name.as_str());
        ensure!(!is_built_in, "{name:?} is built in; give the executor another name");
        ensure!(
            !self.program().is_empty() && self.argv.len() <= MAX_WORDS,
            "argv of {name:?} begins with the name of a program and has up to {MAX_WORDS} words"
        );
        self.check_kind()?;
        let has_nul = self.argv.iter().any(|word| word.contains('\0'));
        ensure!(!has_nul, "argv of {name:?} cannot hold a NUL character");
        let allowed = self.env.allow.iter().flatten();
        let most = allowed.clone().count().max(self.env.set.len());
        ensure!(most <= MAX_VARIABLES, "env of {name:?} has more than {MAX_VARIABLES} variables");
        for variable in allowed.chain(self.env.set.keys()) {
            let can_be = !variable.is_empty() && !variable.contains(['=', '\0']);
            ensure!(can_be, "{variable:?} in env of {name:?} cannot be a variable");
            let is_ours = variable.starts_with("LONGHAUL_");
            ensure!(!is_ours, "{variable:?} in env of {name:?}: names that begin with LONGHAUL_ are ours");
        }
        let waits = self.retry().check();
        ensure!(waits.is_ok(), "retry of {name:?}: backoff_seconds is at most max_backoff_seconds");
        Ok(())
    }

    /// What belongs to one kind alone.
    fn check_kind(&self) -> Result<()> {
        let Self { name, profiles, roots, max_persistent, idle_seconds, cwd, .. } = self;
        if self.kind == Kind::Process {
            let for_backends = "profiles, roots, max_persistent and idle_seconds are for `kind: backend`";
            let has_other = max_persistent.is_some() || idle_seconds.is_some();
            ensure!(profiles.is_empty() && roots.is_empty() && !has_other, "{name:?}: {for_backends}");
            return Ok(());
        }
        ensure!(!roots.is_empty(), "roots of {name:?}: list the folders under which jobs may have it work");
        ensure!(roots.iter().all(|root| root.is_absolute()), "roots of {name:?}: a folder begins with /");
        ensure!(cwd.is_none(), "cwd of {name:?}: a backend works in the folder that the job names");
        ensure!(profiles.len() <= MAX_VARIABLES, "{name:?} has more than {MAX_VARIABLES} profiles");
        Ok(())
    }

    /// Where and how a backend works.
    pub fn backend(&self, all: &Confinement) -> BackendSettings {
        BackendSettings {
            argv: self.argv.clone(),
            profiles: self.profiles.clone(),
            roots: self.roots.clone(),
            most_persistent: self.max_persistent.map_or(DEFAULT_PERSISTENT, Bounded::as_usize),
            idle_for: self.idle_seconds.map_or(DEFAULT_IDLE, |seconds| Duration::from_secs(seconds.value())),
            process: self.confined_settings(all),
        }
    }

    /// What is run: `check` has seen that there is one.
    pub(super) fn program(&self) -> &str {
        self.argv.first().map_or("", String::as_str)
    }

    /// Attempts at the same time.
    pub fn concurrency(&self) -> usize {
        self.concurrency.map_or(DEFAULT_CONCURRENCY, Bounded::as_usize)
    }

    /// How its jobs are tried.
    pub fn retry(&self) -> RetryPolicy {
        let default = match self.kind {
            Kind::Process => Executors::DEFAULT_RETRY,
            Kind::Backend => RetryPolicy { max_attempts: 1, ..Executors::DEFAULT_RETRY },
        };
        let Retry { max_attempts, backoff_seconds, max_backoff_seconds: max } = self.retry;
        let backoff_seconds = backoff_seconds.map_or(default.backoff_seconds, Seconds::as_u32);
        RetryPolicy {
            max_attempts: max_attempts.map_or(default.max_attempts, Bounded::as_u32),
            backoff_seconds,
            max_backoff_seconds: max
                .map_or(default.max_backoff_seconds.max(backoff_seconds), Seconds::as_u32),
        }
    }

    /// What it runs, with its own sandbox and user or those of all.
    pub fn confined_settings(&self, all: &Confinement) -> ProcessSettings {
        Confinement::of((self.sandbox, self.run_as.as_ref()), all).applied_to(self.settings())
    }

    /// What it runs.
    pub fn settings(&self) -> ProcessSettings {
        let cwd = self.cwd.clone().unwrap_or_else(|| PathBuf::from("."));
        let usual = ProcessSettings::new(Program::Fixed(self.argv.clone()), cwd);
        ProcessSettings {
            inherited: self.env.allow.clone().unwrap_or(usual.inherited),
            environment: self.env.set.clone(),
            time_limit: self.timeout_seconds.map(|seconds| Duration::from_secs(seconds.value())),
            grace: self.grace_seconds.map_or(usual.grace, |seconds| Duration::from_secs(seconds.value())),
            output_limit_bytes: self.output_limit_bytes.map_or(usual.output_limit_bytes, Bounded::value),
            limits: self.limits.limits(),
            ..usual
        }
    }
}
