//! What a process executor runs, and within which bounds.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use domain::job::AttemptLimit;

use super::sandbox::{RunAs, SandboxPolicy};
use engine::Failure;

/// Variables that a command has from the daemon if nothing else is said.
const INHERITED: [&str; 6] = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"];
/// Between TERM and KILL.
const GRACE: Duration = Duration::from_secs(5);
/// Kept of each output.
const OUTPUT_LIMIT_BYTES: u64 = 16 * 1_048_576;

/// The settings of one process executor.
#[derive(Clone, Debug)]
pub struct ProcessSettings {
    /// What it runs.
    pub program: Program,
    /// Where.
    pub working_directory: PathBuf,
    /// Names of the variables that are inherited from the daemon; nothing else is.
    pub inherited: Vec<String>,
    /// Variables with fixed values. Names that begin with `LONGHAUL_` are ours and win.
    pub environment: BTreeMap<String, String>,
    /// Variables of ours that this command has besides, by their whole names.
    pub own: BTreeMap<&'static str, String>,
    /// How long an attempt may take, besides the job's own limit.
    pub time_limit: Option<Duration>,
    /// Between TERM and KILL.
    pub grace: Duration,
    /// Kept of standard output, and as much of standard error.
    pub output_limit_bytes: u64,
    /// What the kernel keeps a command to.
    pub limits: Limits,
    /// Whether it may run without a sandbox.
    pub sandbox: SandboxPolicy,
    /// Who it runs as; none: the daemon's user.
    pub run_as: Option<RunAs>,
    /// What it works with, which it may reach also where that lies in the data directory.
    pub own_paths: Vec<PathBuf>,
}

/// What the kernel keeps a command, and each process that it starts, to. What is left out is as the daemon has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Address space of one process.
    pub memory_bytes: Option<u64>,
    /// Processor time of one process.
    pub cpu_seconds: Option<u64>,
    /// Open files of one process.
    pub open_files: Option<u64>,
    /// Processes of the daemon's user, all together. The kernel does not count those of root.
    pub processes: Option<u64>,
    /// Whether set-user-ID programs such as sudo work.
    pub new_privileges: NewPrivileges,
}

/// Whether a command may gain what the daemon's user does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NewPrivileges {
    /// It may not.
    #[default]
    Never,
    /// As on any terminal.
    Allowed,
}

/// What an executor runs.
#[derive(Clone, Debug)]
pub enum Program {
    /// Always this command; the job's input is on its standard input.
    Fixed(Vec<String>),
    /// The command that the job's input names: `{"argv": [..], "cwd"?, "env"?, "stdin"?, "final_exit"?}`.
    FromJob,
}

impl ProcessSettings {
    /// The usual bounds.
    pub fn new(program: Program, working_directory: impl Into<PathBuf>) -> Self {
        Self {
            program,
            working_directory: working_directory.into(),
            inherited: INHERITED.map(str::to_owned).to_vec(),
            environment: BTreeMap::new(),
            own: BTreeMap::new(),
            time_limit: None,
            grace: GRACE,
            output_limit_bytes: OUTPUT_LIMIT_BYTES,
            limits: Limits::default(),
            sandbox: SandboxPolicy::default(),
            run_as: None,
            own_paths: Vec::new(),
        }
    }

    /// The failure of an attempt that has reached the time limit.
    pub(crate) fn reached(&self, failure: Failure) -> Failure {
        match self.time_limit {
            Some(limit) => {
                failure.limited_by(AttemptLimit::Executor { seconds: limit.as_secs(), command: None })
            }
            None => failure,
        }
    }
}
