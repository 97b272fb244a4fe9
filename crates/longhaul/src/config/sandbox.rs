//! What the operator says of the sandbox of commands, and of the user that they run as: for all of them, and for one.

use std::path::Path;

use config_file::Mistake;
use executors::process::{ProcessSettings, RunAs, SandboxPolicy};
use serde::Deserialize;
use serde_saphyr::Spanned;

/// Whether commands may run without the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum SandboxWord {
    /// Refuse to start commands where the system has no sandbox
    Required,
    /// Start them without where it has none, and say so
    Preferred,
    /// Start them without
    Off,
}

/// What counts for one executor.
#[derive(Clone, Debug, Default)]
pub struct Confinement {
    pub sandbox: SandboxPolicy,
    pub run_as: Option<RunAs>,
}

impl Confinement {
    /// What an executor says itself, or else what is said for all. Who cannot be found was refused by `check_user`.
    pub fn of(own: (Option<SandboxWord>, Option<&Spanned<String>>), all: &Self) -> Self {
        let (sandbox, run_as) = own;
        Self {
            sandbox: sandbox.map_or(all.sandbox, SandboxWord::policy),
            run_as: run_as.map_or_else(|| all.run_as.clone(), |user| RunAs::resolve(&user.value).ok()),
        }
    }

    /// The settings of a command with this.
    pub fn applied_to(self, settings: ProcessSettings) -> ProcessSettings {
        ProcessSettings { sandbox: self.sandbox, run_as: self.run_as, ..settings }
    }
}

impl SandboxWord {
    pub fn policy(self) -> SandboxPolicy {
        match self {
            Self::Required => SandboxPolicy::Required,
            Self::Preferred => SandboxPolicy::Preferred,
            Self::Off => SandboxPolicy::Off,
        }
    }
}

/// Refuses a user that commands cannot run as.
pub(super) fn check_user(path: &Path, run_as: Option<&Spanned<String>>) -> Result<(), Mistake> {
    let Some(user) = run_as else { return Ok(()) };
    let wrong = |error| Mistake::at(path.display(), &user.defined, format!("run_as: {error}"));
    RunAs::resolve(&user.value).map(drop).map_err(wrong)
}
