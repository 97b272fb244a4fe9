//! What the file says of plugins: where they are, and how each is set up.
//!
//! What cannot be understood stops the daemon; a plugin that cannot be used is a doubt, and the others are there all the same. Jobs
//! that name it wait.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Error, Result, ensure};
use config_file::{Mistake, hint};
use domain::RetryPolicy;
use domain::breaker::BreakerPolicy;
use engine::LeftOut;
use executors::http::SecretSource;
use executors::plugin::{
    Activity, Discovered, Misconfigured, Plugin, PluginSettings, Plugins, Strictness, Symlinks, cannot_start,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use serde_saphyr::Spanned;

use super::Config;
use super::bounded::{Bounded, Seconds};
use super::executor::{MAX_ATTEMPTS, MAX_BACKOFF_SECONDS};
use super::sandbox::{Confinement, SandboxWord};
use crate::builtin;

const MAX_TIMEOUT_SECONDS: u64 = 604_800;
const MAX_PARALLELISM: u64 = 1_000;
const MAX_THRESHOLD: u64 = 1_000;
const MAX_VARIABLES: usize = 1_000;

/// Why a plugin may not be called like an executor that is built in.
pub const TAKEN: &str = "every daemon has an executor of that name; choose another";

/// Where plugins are and how they are set up, as the file says.
#[derive(Debug, Default)]
pub struct LoadedPlugins {
    /// Those that can be used.
    pub plugins: Plugins,
    /// What is to be told of them and of the others.
    pub told: Vec<Mistake>,
    /// How many of those are plugins that cannot be used.
    pub left_out: usize,
    /// What jobs may name although it cannot be used now.
    pub waited_for: Vec<LeftOut>,
}

/// One plugin of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PluginConfig {
    /// Whether jobs may name it.
    enabled: Option<bool>,
    /// The plugin that it is another name of.
    uses: Option<String>,
    /// What it is given as its configuration.
    config: Map<String, Value>,
    /// What it is given and nobody may see.
    secrets: BTreeMap<String, SecretSource>,
    retry: RetryConfig,
    /// By command.
    timeouts: BTreeMap<String, Seconds<1, MAX_TIMEOUT_SECONDS>>,
    parallelism: Option<Bounded<1, MAX_PARALLELISM>>,
    circuit_breaker: BreakerConfig,
    env_passthrough: Vec<String>,
    /// Whether an answer without a result is a failure.
    strict: bool,
    /// Whether it may run without the sandbox.
    sandbox: Option<SandboxWord>,
    /// Who it runs as.
    pub(super) run_as: Option<Spanned<String>>,
    /// `null` says that there is none.
    schedule: Option<Spanned<IgnoredAny>>,
    schedules: Option<Spanned<IgnoredAny>>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RetryConfig {
    max_attempts: Option<Bounded<1, MAX_ATTEMPTS>>,
    backoff_base_seconds: Option<Seconds<0, MAX_BACKOFF_SECONDS>>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct BreakerConfig {
    threshold: Option<Bounded<0, MAX_THRESHOLD>>,
    reset_after_seconds: Option<Seconds<1, MAX_TIMEOUT_SECONDS>>,
}

impl Config {
    /// Looks for the plugins of this file and sets them up. Roots are seen from the file.
    pub(super) fn load_plugins(&mut self, path: &Path) -> Result<(), Mistake> {
        let beside = path.parent().unwrap_or(Path::new(""));
        let symlinks = Symlinks::from(self.allow_symlinks);
        let mut discovered = Discovered::default();
        for root in &self.plugin_roots {
            // A plugin is started elsewhere than where the file was read.
            let dir = beside.join(&root.value);
            let dir = std::path::absolute(&dir).unwrap_or(dir);
            if let Err(mistake) = discovered.add_root(&dir, symlinks) {
                let told = format!("{mistake}; its plugins are left out");
                discovered.left_out.push(Mistake::at(path.display(), &root.defined, told));
            }
        }
        let confinement = self.confinement();
        // One of which the file says nothing is confined like all.
        let usual = |name: &String| (name.clone(), PluginConfig::default().confined(&confinement));
        let mut settings: BTreeMap<String, PluginSettings> = discovered.plugins.keys().map(usual).collect();
        for (name, plugin) in &self.plugins {
            let wrong = |told: Error| Mistake::at(path.display(), &plugin.defined, told.to_string());
            let set_up = plugin.value.settings(name, beside, &confinement);
            settings.insert(name.clone(), set_up.map_err(wrong)?);
        }
        let at = |Misconfigured { plugin, told, in_manifest }: Misconfigured| match self.plugins.get(&plugin)
        {
            Some(entry) => Mistake::at(path.display(), &entry.defined, told),
            None => in_manifest.unwrap_or_else(|| Mistake::somewhere(path.display(), told)),
        };
        let (mut plugins, left_out) = Plugins::assemble(&discovered, &settings);
        // Those that were found broken are told already.
        let mut waited_for = discovered.names_left_out;
        let mut told = discovered.left_out;
        for one in left_out {
            if !waited_for.contains_key(&one.plugin) {
                let (name, mistake) = (one.plugin.clone(), at(one));
                told.push(mistake.clone());
                waited_for.insert(name, mistake);
            }
        }
        for plugin in plugins.list().cloned().collect::<Vec<_>>() {
            let name = &plugin.name;
            if !plugin.is_enabled() {
                if let Some(entry) = self.plugins.get(name) {
                    let told = "it is disabled by `enabled: false`";
                    waited_for.insert(name.clone(), Mistake::at(path.display(), &entry.defined, told));
                }
            } else if let Some(why) = self.taken(name) {
                let in_manifest = Some(plugin.in_manifest(plugin.manifest.places.name, &why));
                told.push(at(Misconfigured { plugin: name.clone(), told: why, in_manifest }));
                plugins.leave_out(name);
            } else if let Some(why) = cannot_start(&plugin.entrypoint) {
                let why = format!("the plugin {name:?} is left out: {why}");
                let mistake = plugin.in_manifest(plugin.manifest.places.entrypoint, &why);
                told.push(mistake.clone());
                waited_for.insert(name.clone(), mistake);
                plugins.leave_out(name);
            }
        }
        let mut warnings = discovered.warnings;
        for plugin in plugins.list() {
            if let Some(entry) = self.plugins.get(&plugin.name) {
                let told = doubts_of(plugin).into_iter();
                warnings.extend(told.map(|told| Mistake::at(path.display(), &entry.defined, told)));
            }
        }
        waited_for.retain(|name, _| {
            self.taken(name).is_none() && !plugins.find(name).is_some_and(|plugin| plugin.is_enabled())
        });
        let waited_for = waited_for
            .into_iter()
            .map(|(name, why)| {
                let settings = settings.get(&name).cloned().unwrap_or_default();
                left_out_plugin(name, &settings, why.to_string())
            })
            .collect();
        let left_out = told.len();
        told.extend(warnings);
        self.loaded_plugins = LoadedPlugins { plugins, told, left_out, waited_for };
        Ok(())
    }

    /// Why a plugin cannot be called so.
    fn taken(&self, name: &str) -> Option<String> {
        if builtin::NAMES.contains(&name) {
            return Some(format!("the plugin {name:?} is left out: {TAKEN}"));
        }
        self.names_and_circles().any(|(taken, _)| taken == name).then(|| {
            format!("the plugin {name:?} is left out: the configuration has an executor of that name already")
        })
    }
}

impl PluginConfig {
    fn confined(&self, all: &Confinement) -> PluginSettings {
        let Confinement { sandbox, run_as } = Confinement::of((self.sandbox, self.run_as.as_ref()), all);
        PluginSettings { sandbox, run_as, ..PluginSettings::default() }
    }

    fn settings(&self, name: &str, beside: &Path, all: &Confinement) -> Result<PluginSettings> {
        ensure!(
            self.schedule.is_none() && self.schedules.is_none(),
            "schedules of {name:?} are refused: schedules come later with calendars; \
             create each job with `longhaul jobs create --due-at`"
        );
        let few = self.env_passthrough.len() <= MAX_VARIABLES;
        ensure!(few, "env_passthrough of {name:?} has more than {MAX_VARIABLES} variables");
        for variable in &self.env_passthrough {
            let can_be = !variable.is_empty() && !variable.contains(['=', '\0']);
            let is_given = can_be && !variable.starts_with("LONGHAUL_");
            ensure!(is_given, "{variable:?} in env_passthrough of {name:?} cannot be a variable");
        }
        let mut secrets = self.secrets.clone();
        for (secret, source) in &mut secrets {
            let is_one = source.env.is_some() != source.file.is_some();
            ensure!(is_one, "the secret {secret:?} of {name:?} comes from either env or file");
            source.file = source.file.take().map(|file| beside.join(file));
        }
        let usual = self.confined(all);
        let BreakerConfig { threshold, reset_after_seconds: reset } = self.circuit_breaker;
        let backoff_seconds =
            self.retry.backoff_base_seconds.map_or(usual.retry.backoff_seconds, Seconds::as_u32);
        let seconds = |limit: &Seconds<1, MAX_TIMEOUT_SECONDS>| Duration::from_secs(limit.value());
        Ok(PluginSettings {
            activity: if self.enabled == Some(false) { Activity::Disabled } else { Activity::Enabled },
            uses: self.uses.clone(),
            config: self.config.clone(),
            secrets,
            retry: RetryPolicy {
                max_attempts: self.retry.max_attempts.map_or(usual.retry.max_attempts, Bounded::as_u32),
                backoff_seconds,
                max_backoff_seconds: usual.retry.max_backoff_seconds.max(backoff_seconds),
            },
            timeouts: self.timeouts.iter().map(|(name, limit)| (name.clone(), seconds(limit))).collect(),
            parallelism: self.parallelism.map(Bounded::as_usize),
            breaker: BreakerPolicy {
                threshold: threshold.map_or(usual.breaker.threshold, Bounded::as_u32),
                reset_after_seconds: reset.map_or(usual.breaker.reset_after_seconds, Seconds::value),
            },
            env_passthrough: self.env_passthrough.clone(),
            strictness: if self.strict { Strictness::Strict } else { Strictness::Lenient },
            sandbox: usual.sandbox,
            run_as: usual.run_as,
        })
    }
}

/// What the operator says of a plugin that it does not bear out.
fn doubts_of(plugin: &Plugin) -> Vec<String> {
    let Plugin { name, manifest, settings, .. } = plugin;
    let known: Vec<&str> = manifest.commands.iter().map(|command| command.name.as_str()).collect();
    let unknown = settings.timeouts.keys().filter(|command| manifest.command(command).is_none());
    let mut doubts: Vec<String> = unknown
        .map(|command| {
            let near = hint(command, &known);
            let known = known.join(", ");
            format!("timeouts of {name:?}: it has no command {command:?}{near}; it has {known}")
        })
        .collect();
    if let Some(many @ 2..) = settings.parallelism.filter(|_| !manifest.concurrency_safe) {
        doubts.push(format!(
            "parallelism: {many} of {name:?}: its manifest says `concurrency_safe: false`, so two of it at the same time may disturb each other"
        ));
    }
    doubts
}

/// A plugin that jobs may name and that cannot be used now, and why.
pub fn left_out_plugin(name: String, settings: &PluginSettings, why: String) -> LeftOut {
    let (lane, retry) = (executors::plugin::lane(&name, settings.parallelism), settings.retry);
    LeftOut { name, why, lane, retry, needs_its_node: false }
}
