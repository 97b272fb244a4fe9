//! What a process executor runs, and within which bounds.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

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
    /// How long an attempt may take, besides the job's own limit.
    pub time_limit: Option<Duration>,
    /// Between TERM and KILL.
    pub grace: Duration,
    /// Kept of standard output, and as much of standard error.
    pub output_limit_bytes: u64,
}

/// What an executor runs.
#[derive(Clone, Debug)]
pub enum Program {
    /// Always this command; the job's input is on its standard input.
    Fixed(Vec<String>),
    /// The command that the job's input names: `{"argv": [..], "cwd"?, "env"?, "stdin"?}`.
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
            time_limit: None,
            grace: GRACE,
            output_limit_bytes: OUTPUT_LIMIT_BYTES,
        }
    }
}
