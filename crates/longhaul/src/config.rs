//! `longhaul.yaml`: what a daemon may run and within which limits, as its operator says.
//!
//! A key that is not known is refused, with its place and the nearest key that is. Nothing in it can exceed the limits below.

mod bounded;
mod connector;
mod doubts;
mod events;
mod executor;
mod plugin;
mod sandbox;
mod webhook;
mod workspaces;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use config_file::{FileLimits, Mistake};
use domain::attention::Retention;
use domain::duration::written;
use domain::limits::MAX_LABEL_BYTES;
use domain::policy::{HostPolicy, NOT_VOLATILE, Persistence};
use domain::timeline::{ADOPT_AFTER_BOUNDS_SECONDS, ADOPT_AFTER_SECONDS};
use domain::{Lease, Refusal};
use executors::http::{Connector, Signers};
use serde::Deserialize;
use serde_saphyr::{Location, Spanned};
use store_sql::Durability;

use crate::builtin;
use bounded::{Bounded, Seconds};
pub use connector::OpenedConnector;
use connector::{ConnectorEntry, ConnectorKeys};
use events::EventConfig;
pub use executor::{ExecutorConfig, Kind};
use plugin::PluginConfig;
pub use plugin::{LoadedPlugins, TAKEN, left_out_plugin};
use sandbox::check_user;
pub use sandbox::{Confinement, SandboxWord};
use webhook::WebhookConfig;
pub use workspaces::Among;
use workspaces::WorkspacesConfig;

/// What the file may hold.
const LIMITS: FileLimits = FileLimits { bytes: 1_048_576, nesting: 16, nodes: 100_000 };
/// Executors, lanes, plugins and files of pipelines in one file.
const MAX_ENTRIES: usize = 1_000;
/// Ten years.
const MAX_RETENTION_SECONDS: u64 = 315_360_000;
const MAX_LANE_LIMIT: u64 = 10_000;
const MAX_CONNECTIONS: u64 = 1_000_000;

/// What `./longhaul.yaml` is called.
const CONFIG_FILE: &str = "longhaul.yaml";

/// The argument that names a configuration.
#[derive(Args, Clone)]
pub struct ConfigArgument {
    /// The configuration [default: ./longhaul.yaml]
    #[arg(long, env = "LONGHAUL_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
}

impl ConfigArgument {
    /// Where it is.
    pub fn path(&self) -> &Path {
        self.config.as_deref().unwrap_or(Path::new(CONFIG_FILE))
    }

    /// Where it is, if it was named or lies here.
    pub fn found(&self) -> Option<&Path> {
        Some(self.path()).filter(|path| self.config.is_some() || path.exists())
    }

    pub fn read(&self) -> Result<Config, Mistake> {
        Config::read(self.path())
    }
}

/// The whole file. What is left out is as the daemon has it by itself.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where to listen.
    pub listen: Option<SocketAddr>,
    /// Connections at the same time; whoever waits for work holds one.
    connections: Option<Bounded<64, MAX_CONNECTIONS>>,
    /// Where services outside reach this daemon; without it they are not asked to call back.
    public_url: Option<Spanned<String>>,
    /// When a commit counts as done.
    #[serde(with = "DurabilityWord")]
    pub durability: Durability,
    lease: Option<Spanned<LeaseConfig>>,
    retention: RetentionConfig,
    /// When a step of the wall clock is believed.
    clock: ClockConfig,
    lanes: BTreeMap<String, Spanned<LaneConfig>>,
    /// What can do jobs, besides what is built in.
    pub executors: Vec<Spanned<ExecutorConfig>>,
    /// Services that can do jobs: a file each, beside this one.
    connectors: Vec<Spanned<ConnectorEntry>>,
    /// Public keys: a connector that none of them has signed is refused.
    #[serde(deserialize_with = "connector::some_keys")]
    connector_keys: Option<ConnectorKeys>,
    /// Where plugins are, seen from this file.
    plugin_roots: Vec<Spanned<PathBuf>>,
    /// Whether symbolic links may lead to plugins.
    allow_symlinks: bool,
    /// How plugins are set up, and other names for them.
    plugins: BTreeMap<String, Spanned<PluginConfig>>,
    /// Where plugins work, and how much they may leave there.
    pub workspaces: WorkspacesConfig,
    /// Whether commands, plugins and backends may run without the sandbox.
    sandbox: Option<SandboxWord>,
    /// Who commands, plugins and backends run as.
    run_as: Option<Spanned<String>>,
    /// What follows which event: files, and directories of them, beside this one.
    pub pipelines: Vec<PathBuf>,
    /// Who settles events of which type.
    events: Vec<Spanned<EventConfig>>,
    /// Where messages from outside come in.
    webhooks: Vec<Spanned<WebhookConfig>>,
    /// What work outside is granted.
    policy: Option<Spanned<HostPolicy>>,
    /// Whose signature connectors need.
    #[serde(skip)]
    pub signers: Signers,
    /// The connectors, read.
    #[serde(skip)]
    pub opened: Vec<OpenedConnector>,
    /// The plugins, found and set up.
    #[serde(skip)]
    pub loaded_plugins: LoadedPlugins,
    /// The webhooks, with their secrets.
    #[serde(skip)]
    pub opened_webhooks: server::Webhooks,
}

#[derive(Deserialize)]
#[serde(remote = "Durability", rename_all = "snake_case")]
enum DurabilityWord {
    Full,
    Relaxed,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LeaseConfig {
    #[serde(deserialize_with = "written::seconds")]
    seconds: u32,
    #[serde(deserialize_with = "written::seconds")]
    renew_every_seconds: u32,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RetentionConfig {
    completed_seconds: Option<Seconds<0, MAX_RETENTION_SECONDS>>,
    other_seconds: Option<Seconds<0, MAX_RETENTION_SECONDS>>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ClockConfig {
    /// How long a step of the wall clock has to last before it is adopted.
    adopt_after: Option<Seconds<{ ADOPT_AFTER_BOUNDS_SECONDS.0 }, { ADOPT_AFTER_BOUNDS_SECONDS.1 }>>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LaneConfig {
    limit: Bounded<1, MAX_LANE_LIMIT>,
}

impl Config {
    /// Reads a file, and the files that it names.
    pub fn read(path: &Path) -> Result<Self, Mistake> {
        let mut config = Self::read_alone(path)?;
        let beside = path.parent().unwrap_or(Path::new(""));
        for pipelines in &mut config.pipelines {
            *pipelines = beside.join(&pipelines);
        }
        for connector in std::mem::take(&mut config.connectors) {
            let wrong = |told: String| Mistake::at(path.display(), &connector.defined, told);
            let ConnectorEntry { file, circle } = &connector.value;
            let read = Connector::read_signed(&beside.join(file), &config.signers)
                .map_err(|mistake| wrong(mistake.to_string()))?;
            config.connect(circle.clone(), read).map_err(wrong)?;
        }
        config.load_plugins(path)?;
        config.open_webhooks(path)?;
        Ok(config)
    }

    /// Whose signature a file wants connectors to have; the files that it names are not read.
    pub fn signers_in(path: &Path) -> Result<Signers, Mistake> {
        Self::read_alone(path).map(|config| config.signers)
    }

    fn read_alone(path: &Path) -> Result<Self, Mistake> {
        Self::parse(path, &LIMITS.text_of(path)?)
    }

    /// Adds a connector, for everybody or for a circle, if nothing else there has its name.
    pub fn connect(&mut self, circle: Option<String>, connector: Connector) -> Result<(), String> {
        check_circle(circle.as_deref())?;
        let name = connector.name();
        if name.starts_with(server::OWN_PREFIX) {
            return Err(format!("names that begin with {:?} are the host's own", server::OWN_PREFIX));
        }
        if builtin::NAMES.contains(&name) {
            return Err(format!("name: every daemon has an executor named {name:?}; choose another"));
        }
        let same = (name, circle.as_deref());
        let taken = self.names_and_circles().any(|one| one == same);
        if taken || self.loaded_plugins.plugins.find(name).is_some_and(|plugin| plugin.is_enabled()) {
            return Err(two_of(name, circle.as_deref()));
        }
        self.opened.push(OpenedConnector { circle, connector });
        Ok(())
    }

    /// Executors that are commands or connectors, by what makes two of them the same.
    fn names_and_circles(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let commands =
            self.executors.iter().map(|Spanned { value, .. }| (&*value.name, value.circle.as_deref()));
        let connectors = self.opened.iter().map(|one| (one.connector.name(), one.circle.as_deref()));
        commands.chain(connectors)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, Mistake> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let mut config: Self = LIMITS.parse(&path.display().to_string(), text)?;
        config.check(path)?;
        let keys = config.connector_keys.as_ref();
        config.signers = keys.map(|keys| connector::signers(path, keys)).transpose()?.unwrap_or_default();
        Ok(config)
    }

    fn check(&self, path: &Path) -> Result<(), Mistake> {
        let Self { executors, lanes, plugins, pipelines, events, .. } = self;
        let entries = [executors.len(), lanes.len(), plugins.len(), pipelines.len(), events.len()];
        if entries.into_iter().any(|entries| entries > MAX_ENTRIES) {
            let many = "executors, lanes, plugins, files of pipelines or types of events";
            return Err(Mistake::somewhere(path.display(), format!("has more than {MAX_ENTRIES} {many}")));
        }
        let wrong = |place: &Location, told: String| Mistake::at(path.display(), place, told);
        if let Some(Spanned { value, defined, .. }) = &self.lease {
            lease_of(*value).map_err(|refusal| wrong(defined, lease_told(&refusal)))?;
        }
        if let Some(Spanned { value, defined, .. }) = &self.public_url
            && !["http://", "https://"].iter().any(|scheme| value.starts_with(scheme))
        {
            return Err(wrong(defined, "an address begins with https:// or http://".to_owned()));
        }
        if let Some(Spanned { value, defined, .. }) = &self.policy {
            // Or operations of kinds that do not ask for it would go with their daemon.
            if value.defaults.persistence == Some(Persistence::Volatile) {
                return Err(wrong(defined, NOT_VOLATILE.to_owned()));
            }
            value.check().map_err(|refusal| wrong(defined, refusal.to_string()))?;
        }
        events::check(path, &self.events)?;
        self.workspaces.check(path)?;
        check_user(path, self.run_as.as_ref())?;
        for plugin in self.plugins.values() {
            check_user(path, plugin.value.run_as.as_ref())?;
        }
        let mut names = std::collections::BTreeSet::new();
        for Spanned { value: executor, defined, .. } in &self.executors {
            executor.check().map_err(|told| wrong(defined, told.to_string()))?;
            check_user(path, executor.run_as.as_ref())?;
            let ExecutorConfig { name, circle, .. } = executor;
            check_circle(circle.as_deref()).map_err(|told| wrong(defined, told))?;
            if !names.insert((name, circle)) {
                return Err(wrong(defined, two_of(name, circle.as_deref())));
            }
        }
        Ok(())
    }

    /// The sandbox and the user of what says nothing else.
    pub fn confinement(&self) -> Confinement {
        Confinement::of((self.sandbox, self.run_as.as_ref()), &Confinement::default())
    }

    /// Connections at the same time.
    pub fn connections(&self) -> Option<u64> {
        self.connections.map(Bounded::value)
    }

    /// Where services outside reach this daemon, without a slash at the end.
    pub fn public_url(&self) -> Option<String> {
        self.public_url.as_ref().map(|url| url.value.trim_end_matches('/').to_owned())
    }

    /// That the services of some connectors are given an empty address to call back, if nobody said where this daemon is reached.
    pub fn without_callbacks(&self) -> Option<String> {
        let names = self.opened.iter().filter(|opened| opened.connector.gives_callback_url());
        let names: Vec<&str> = names.map(|opened| opened.connector.name()).collect();
        (self.public_url.is_none() && !names.is_empty()).then(|| {
            format!(
                "${{operation.callback_url}} is empty in the requests of {}: the configuration has no public_url, so nobody calls \
                 back and these services are only polled",
                names.join(", ")
            )
        })
    }

    /// The daemon's leases.
    pub fn lease(&self) -> Lease {
        let lease = self.lease.as_ref().and_then(|lease| lease_of(lease.value).ok());
        lease.unwrap_or(Lease::DEFAULT)
    }

    /// How long a step of the wall clock has to last before it is adopted.
    pub fn adopt_after_seconds(&self) -> u64 {
        self.clock.adopt_after.map_or(ADOPT_AFTER_SECONDS, Seconds::value)
    }

    /// How long ended jobs are kept.
    pub fn retention(&self) -> Retention {
        let or =
            |set: Option<Seconds<0, MAX_RETENTION_SECONDS>>, default| set.map_or(default, Seconds::value);
        Retention {
            completed_seconds: or(self.retention.completed_seconds, Retention::DEFAULT.completed_seconds),
            other_seconds: or(self.retention.other_seconds, Retention::DEFAULT.other_seconds),
        }
    }

    /// What work outside is granted. A connector's file is the operator's word for its own kind, unless this file has one.
    pub fn policy(&self) -> HostPolicy {
        let mut policy = self.policy.as_ref().map(|policy| policy.value.clone()).unwrap_or_default();
        for opened in &self.opened {
            let own = policy.kind_overrides.entry(opened.policy_name());
            own.or_insert_with(|| opened.connector.policy().clone());
        }
        policy
    }

    /// Attempts at the same time, per lane.
    pub fn lane_limits(&self) -> BTreeMap<String, usize> {
        self.lanes.iter().map(|(name, lane)| (name.clone(), lane.value.limit.as_usize())).collect()
    }
}

fn two_of(name: &str, circle: Option<&str>) -> String {
    let of = circle.map(|circle| format!(" of the circle {circle:?}")).unwrap_or_default();
    format!("there are two executors named {name:?}{of}")
}

fn check_circle(circle: Option<&str>) -> Result<(), String> {
    let fits = circle.is_none_or(|circle| (1..=MAX_LABEL_BYTES).contains(&circle.len()));
    if fits { Ok(()) } else { Err(format!("the name of a circle has 1 to {MAX_LABEL_BYTES} bytes")) }
}

fn lease_of(lease: LeaseConfig) -> Result<Lease, Refusal> {
    Lease::new(lease.seconds, lease.renew_every_seconds)
}

fn lease_told(refusal: &Refusal) -> String {
    let (shortest, longest) = Lease::BOUNDS_SECONDS;
    if *refusal == (Refusal::InvalidPolicy { field: "lease_seconds" }) {
        return format!("a lease has {shortest} to {longest} seconds");
    }
    "a lease is renewed at least twice in its time: renew_every_seconds is at most half of seconds".to_owned()
}

#[cfg(test)]
mod tests;
