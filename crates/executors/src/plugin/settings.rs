//! What the operator says of one plugin. What is left out is as the contract has it.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::RetryPolicy;
use domain::breaker::BreakerPolicy;
use serde_json::{Map, Value};

use super::super::http::SecretSource;
use super::super::process::{RunAs, SandboxPolicy};

/// What plugins have from the daemon's environment.
const INHERITED: [&str; 19] = [
    "PATH",
    "HOME",
    "TZ",
    "LANG",
    "LANGUAGE",
    "TMPDIR",
    "LC_ALL",
    "LC_ADDRESS",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_IDENTIFICATION",
    "LC_MEASUREMENT",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NAME",
    "LC_NUMERIC",
    "LC_PAPER",
    "LC_TELEPHONE",
    "LC_TIME",
];

/// The settings of one plugin.
#[derive(Clone, Debug)]
pub struct PluginSettings {
    /// Whether jobs may name it.
    pub activity: Activity,
    /// The plugin that it is another name of.
    pub uses: Option<String>,
    /// What it is given as its configuration.
    pub config: Map<String, Value>,
    /// What it is given and nobody may see.
    pub secrets: BTreeMap<String, SecretSource>,
    /// How its jobs are tried.
    pub retry: RetryPolicy,
    /// How long a command may take, where it is not as usual.
    pub timeouts: BTreeMap<String, Duration>,
    /// Jobs at the same time on this node; one at a time on all nodes together if nothing is said.
    pub parallelism: Option<usize>,
    /// When it is left alone because its jobs fail.
    pub breaker: BreakerPolicy,
    /// Variables that it has from the daemon's environment besides the usual ones.
    pub env_passthrough: Vec<String>,
    /// What an answer of an older era is.
    pub strictness: Strictness,
    /// Whether it may run without a sandbox.
    pub sandbox: SandboxPolicy,
    /// Who it runs as; none: the daemon's user.
    pub run_as: Option<RunAs>,
}

/// Whether jobs may name a plugin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activity {
    /// They may.
    #[default]
    Enabled,
    /// It is left alone.
    Disabled,
}

/// What an answer without a `result` is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// Accepted with a warning.
    #[default]
    Lenient,
    /// A failure.
    Strict,
}

impl PluginSettings {
    /// Four attempts, half a minute apart and then longer.
    pub const DEFAULT_RETRY: RetryPolicy =
        RetryPolicy { max_attempts: 4, backoff_seconds: 30, max_backoff_seconds: 3_600 };

    /// How long a command may take.
    pub fn time_limit(&self, command: &str) -> Duration {
        let usual = match command {
            "handle" => 120,
            "health" => 10,
            "init" => 30,
            _ => 60,
        };
        self.timeouts.get(command).copied().unwrap_or(Duration::from_secs(usual))
    }

    /// The variables that it has from the daemon's environment.
    pub fn inherited(&self) -> Vec<String> {
        let usual = INHERITED.iter().map(|&name| name.to_owned());
        usual.chain(self.env_passthrough.iter().cloned()).collect()
    }
}

impl Default for PluginSettings {
    fn default() -> Self {
        Self {
            activity: Activity::default(),
            uses: None,
            config: Map::new(),
            secrets: BTreeMap::new(),
            retry: Self::DEFAULT_RETRY,
            timeouts: BTreeMap::new(),
            parallelism: None,
            breaker: BreakerPolicy::default(),
            env_passthrough: Vec::new(),
            strictness: Strictness::default(),
            sandbox: SandboxPolicy::default(),
            run_as: None,
        }
    }
}
