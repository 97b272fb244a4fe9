//! The process executor: an attempt is a command of the operating system, under a supervisor of its own.
//!
//! No descendant outlives its attempt. The daemon starts its own binary as supervisor, one for each attempt that runs; it adopts whatever the
//! command leaves behind and ends it when the command is over, when told to, or when the daemon is gone. There is no shell, nothing of the
//! environment is inherited but a list, and output beyond its limit is read and thrown away.
//!
//! It does not touch the store.

mod artifact_files;
mod artifacts;
mod attempt;
mod bounded_lines;
mod capture;
mod collect;
mod command_line;
mod errand;
mod follow;
mod launch;
mod limits;
mod outcome;
mod processes;
mod program;
mod progress_lines;
mod report;
mod resident;
mod sandbox;
mod settings;
mod supervisor;
mod supervisors;
mod sweep;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use engine::{Assignment, ExecutorTraits, Failure, Link, Produced, Specialist};
use futures::future::BoxFuture;

pub use artifact_files::{
    SetAside, each_artifact_file, place_artifact_file, set_artifacts_aside, sync_artifact_files,
};
pub use artifacts::Artifacts;
pub(super) use artifacts::{KeptFile, is_name, is_segment};
pub(super) use collect::{Collected, Heard, HeardLimits, collect, keep_artifact};
pub(super) use follow::Ending;
pub(super) use outcome::limited_by_some;
pub(super) use program::is_program;
pub use progress_lines::{MAX_LINE_BYTES, PROGRESS_DESCRIPTOR};
pub(super) use report::Exit;
pub(super) use resident::{Resident, Turned, longest_answer};
pub use sandbox::{
    RunAs, SandboxMethod, SandboxPolicy, SandboxSettings, UserError, hide_from_tracers, is_root,
};
pub use settings::{Limits, NewPrivileges, ProcessSettings, Program};
pub use supervisor::{SupervisorSettings, VERB, supervise, try_sandbox};
use supervisors::Supervisors;
pub use sweep::sweep_leftovers;

/// What the directory of workspaces is called in a data directory.
pub const WORKSPACES_DIR: &str = "workspaces";

/// Runs commands for jobs.
pub struct ProcessExecutor {
    host: Arc<ProcessHost>,
    settings: ProcessSettings,
}

/// What every process executor of a daemon shares.
pub struct ProcessHost {
    /// Our binary, whose verb `supervise` has the commands of attempts.
    supervisor: PathBuf,
    /// Those that are between two commands.
    supervisors: Arc<Supervisors>,
    /// Marks our processes as those of this daemon's data.
    data_dir: PathBuf,
    artifacts: Arc<Artifacts>,
    /// What commands are kept in, or why there is nothing.
    sandbox: Result<SandboxSettings, String>,
    /// What that sandbox leaves within their reach although it should not.
    sandbox_gaps: Vec<String>,
    /// What counts for every command, whatever its own settings say.
    policy: Option<SandboxPolicy>,
}

impl ProcessHost {
    /// The directory must exist: its full path is the mark by which processes are found again.
    pub fn new(
        supervisor: PathBuf,
        data_dir: impl AsRef<std::path::Path>,
        artifacts: Arc<Artifacts>,
    ) -> io::Result<Self> {
        let data_dir = data_dir.as_ref().canonicalize()?;
        // What lies in it may be a link to elsewhere.
        let parts = [artifacts.dir().to_owned(), data_dir.join(WORKSPACES_DIR)];
        let protected = sandbox::ProtectedPaths::resolve(&data_dir, &parts);
        let sandbox = sandbox::probe(&supervisor, &protected.paths);
        let sandbox_gaps =
            sandbox.as_ref().map(|settings| protected.gaps(settings.method)).unwrap_or_default();
        let supervisors = Arc::default();
        Ok(Self { supervisor, supervisors, data_dir, artifacts, sandbox, sandbox_gaps, policy: None })
    }

    /// The same, with a policy that counts for every command.
    pub fn with_sandbox_policy(self, policy: Option<SandboxPolicy>) -> Self {
        Self { policy, ..self }
    }

    /// The method by which commands are kept out of the data directory, or why they are not.
    pub fn sandbox_method(&self) -> Result<SandboxMethod, &str> {
        self.sandbox.as_ref().map(|settings| settings.method).map_err(String::as_str)
    }

    /// What links in the data directory lead to and the sandbox cannot protect, in words for the operator.
    pub fn sandbox_gaps(&self) -> &[String] {
        &self.sandbox_gaps
    }

    /// The sandbox of a command, if it has one.
    fn sandbox_of(&self, settings: &ProcessSettings) -> Option<&SandboxSettings> {
        match self.policy.unwrap_or(settings.sandbox) {
            SandboxPolicy::Required | SandboxPolicy::Preferred => self.sandbox.as_ref().ok(),
            SandboxPolicy::Off => None,
        }
    }

    /// Refuses a command that must not run without a sandbox, if there is none here or one with gaps.
    fn check_sandbox(&self, settings: &ProcessSettings) -> Result<(), Failure> {
        let (why, remedy) = match (self.policy.unwrap_or(settings.sandbox), &self.sandbox) {
            (SandboxPolicy::Preferred | SandboxPolicy::Off, _) => return Ok(()),
            (SandboxPolicy::Required, Ok(_)) if self.sandbox_gaps.is_empty() => return Ok(()),
            (SandboxPolicy::Required, Ok(_)) => (self.sandbox_gaps.join("; "), "run it all the same"),
            (SandboxPolicy::Required, Err(why)) => (why.clone(), "run it without"),
        };
        let message = format!("the command was not started: {why}; say `sandbox: preferred` to {remedy}");
        Err(Failure::transient("sandbox_unavailable", message))
    }

    /// What attempts leave to be read.
    pub(super) fn artifacts(&self) -> &Arc<Artifacts> {
        &self.artifacts
    }
}

impl ProcessExecutor {
    /// An executor with these settings.
    pub fn new(host: Arc<ProcessHost>, settings: ProcessSettings) -> Self {
        Self { host, settings }
    }
}

impl Specialist for ProcessExecutor {
    /// Dropping the future closes the line to the supervisor, which ends the tree.
    fn produce(&self, assignment: Assignment, link: Link) -> BoxFuture<'_, Produced> {
        Box::pin(attempt::run(&self.host, &self.settings, assignment, link))
    }

    fn traits(&self) -> ExecutorTraits {
        let runs_its_input = matches!(self.settings.program, Program::FromJob);
        ExecutorTraits { runs_its_input, ..ExecutorTraits::default() }
    }

    fn missing_program(&self) -> Option<String> {
        self.settings.missing_program()
    }
}
