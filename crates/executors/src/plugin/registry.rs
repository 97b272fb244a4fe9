//! The plugins of a daemon: what was found together with what its operator says, and other names for it.
//!
//! An alias has the manifest of its base and everything else for itself: configuration, state, lane. A name that leads nowhere and a
//! plugin that lacks a key are left out, and the others are there all the same.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use domain::Timestamp;
use domain::breaker::BreakerState;

use super::super::http::Secrets;
use super::breaker::PluginBreaker;
use super::discover::{Discovered, Found};
use super::manifest::{MANIFEST, Manifest, is_plugin_name};
use super::settings::{Activity, PluginSettings};
use config_file::{Mistake, hint};

/// Other names that may lead to one plugin, one after the other.
const MAX_ALIASES_IN_A_ROW: usize = 16;

/// A plugin that jobs may name.
#[derive(Debug)]
pub struct Plugin {
    /// What jobs call it: its own name, or that of an alias.
    pub name: String,
    /// What it says of itself.
    pub manifest: Manifest,
    /// Where it is.
    pub directory: PathBuf,
    /// What is started.
    pub entrypoint: PathBuf,
    /// What the operator says of it.
    pub settings: PluginSettings,
    pub(super) breaker: Arc<PluginBreaker>,
}

/// All plugins of a daemon.
#[derive(Clone, Debug, Default)]
pub struct Plugins {
    by_name: BTreeMap<String, Arc<Plugin>>,
}

/// What is wrong with what the operator says of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misconfigured {
    /// The name in the configuration.
    pub plugin: String,
    /// What is wrong.
    pub told: String,
    /// Where its manifest says so, unless the configuration has an entry for it.
    pub in_manifest: Option<Mistake>,
}

impl Plugins {
    /// Puts together what was found and what the operator says. What comes besides is left out, and why.
    pub fn assemble(
        discovered: &Discovered,
        settings: &BTreeMap<String, PluginSettings>,
    ) -> (Self, Vec<Misconfigured>) {
        let mut plugins = Self::default();
        let mut left_out = Vec::new();
        let found = discovered.plugins.keys();
        let mut names: Vec<&String> = found.chain(settings.keys()).collect();
        names.sort();
        names.dedup();
        for name in names {
            let settings_of = settings.get(name);
            let wrong = |told: String| Misconfigured { plugin: name.clone(), told, in_manifest: None };
            let found = match base(name, discovered, settings) {
                Ok(found) => found,
                Err(told) => {
                    left_out.push(wrong(told));
                    continue;
                }
            };
            let settings = settings_of.cloned().unwrap_or_default();
            let plugin = Plugin {
                name: name.clone(),
                manifest: found.manifest.clone(),
                directory: found.directory.clone(),
                entrypoint: found.entrypoint.clone(),
                breaker: PluginBreaker::new(settings.breaker),
                settings,
            };
            match plugin.misses() {
                Some(told) if plugin.is_enabled() => {
                    let in_manifest = Some(plugin.in_manifest(plugin.manifest.places.required_keys, &told));
                    left_out.push(Misconfigured { in_manifest, ..wrong(told) });
                }
                Some(_) | None => {
                    plugins.by_name.insert(name.clone(), Arc::new(plugin));
                }
            }
        }
        (plugins, left_out)
    }

    /// Takes out one that cannot be used after all.
    pub fn leave_out(&mut self, name: &str) {
        self.by_name.remove(name);
    }

    /// All of them, by name; those that are not enabled too.
    pub fn list(&self) -> impl Iterator<Item = &Arc<Plugin>> {
        self.by_name.values()
    }

    /// The one of this name.
    pub fn find(&self, name: &str) -> Option<&Arc<Plugin>> {
        self.by_name.get(name)
    }
}

impl Plugin {
    /// Whether jobs may name it.
    pub fn is_enabled(&self) -> bool {
        self.settings.activity == Activity::Enabled
    }

    /// Whether it is left alone on this node.
    pub fn breaker(&self, now: Timestamp) -> BreakerState {
        self.breaker.lock().state(now)
    }

    /// Lets it be started again on this node as if nothing had failed.
    pub fn reset_breaker(&self) {
        self.breaker.lock().reset();
    }

    /// The lane that its jobs queue in, unless they name one.
    pub fn lane(&self) -> String {
        super::lane(&self.name, self.settings.parallelism)
    }

    /// A mistake in this place of its manifest.
    pub fn in_manifest(&self, place: (u64, u64), told: &str) -> Mistake {
        let file = self.directory.join(MANIFEST).display().to_string();
        Mistake { file, place: Some(place), told: told.to_owned() }
    }

    /// Why its secrets cannot be read, if they cannot.
    pub fn lacks_a_secret(&self) -> Option<String> {
        let read = Secrets::read(&self.settings.secrets, &|name| std::env::var(name).ok());
        read.err().map(|error| error.to_string())
    }

    /// Why it would not work with its configuration.
    fn misses(&self) -> Option<String> {
        let config = &self.settings.config;
        let missing: Vec<&str> = self
            .manifest
            .required_keys
            .iter()
            .filter(|key| !config.contains_key(*key) && !self.settings.secrets.contains_key(*key))
            .map(String::as_str)
            .collect();
        let keys = missing.join(", ");
        (!missing.is_empty()).then(|| format!("{:?} needs {keys} in its config, and is left out", self.name))
    }
}

/// What a name leads to.
fn base<'d>(
    name: &str,
    discovered: &'d Discovered,
    settings: &BTreeMap<String, PluginSettings>,
) -> Result<&'d Found, String> {
    let uses = |name: &str| settings.get(name).and_then(|settings| settings.uses.as_deref());
    let known: Vec<&str> = discovered.plugins.keys().map(String::as_str).collect();
    let Some(mut at) = uses(name) else {
        return discovered.plugins.get(name).ok_or_else(|| match discovered.names_left_out.get(name) {
            Some(mistake) => mistake.to_string(),
            None => format!("no plugin is named {name:?}{}", hint(name, &known)),
        });
    };
    if !is_plugin_name(name) {
        return Err(format!("{name:?}: a name has letters, digits, `_` and `-`, 64 at most"));
    }
    if discovered.plugins.contains_key(name) {
        return Err(format!("{name:?} is a plugin of its own and cannot be another name of {at:?}"));
    }
    if at == name {
        return Err(format!("{name:?} cannot be another name of itself"));
    }
    for _ in 0..MAX_ALIASES_IN_A_ROW {
        if let Some(found) = discovered.plugins.get(at) {
            return Ok(found);
        }
        at = uses(at).ok_or_else(|| match discovered.names_left_out.get(at) {
            Some(mistake) => format!("{name:?} uses {at:?}, which is left out: {mistake}"),
            None => format!("{name:?} uses {at:?}, and no plugin is named so{}", hint(at, &known)),
        })?;
    }
    Err(format!("{name:?} leads in a circle, or over more than {MAX_ALIASES_IN_A_ROW} other names"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn discovered() -> Discovered {
        let text = "name: gauge\nprotocol: 2\nentrypoint: run.sh\ncommands: [poll]\nconfig_keys: { required: [port] }\n";
        let plain = "name: echo\nprotocol: 2\nentrypoint: run.sh\ncommands: [poll]\n";
        let mut discovered = Discovered::default();
        for text in [text, plain] {
            let manifest = Manifest::parse("m.yaml", text).unwrap();
            let found = Found { directory: PathBuf::new(), entrypoint: PathBuf::new(), manifest };
            discovered.plugins.insert(found.manifest.name.clone(), found);
        }
        discovered
    }

    fn alias(name: &str, uses: &str) -> (String, PluginSettings) {
        (name.to_owned(), PluginSettings { uses: Some(uses.to_owned()), ..PluginSettings::default() })
    }

    fn with_port(mut settings: PluginSettings) -> PluginSettings {
        settings.config.insert("port".to_owned(), 1.into());
        settings
    }

    fn mistake<const N: usize>(settings: [(String, PluginSettings); N]) -> String {
        let (_, left_out) = Plugins::assemble(&discovered(), &BTreeMap::from(settings));
        left_out
            .into_iter()
            .find(|one| one.plugin != "gauge" || one.told.contains("of its own"))
            .unwrap()
            .told
    }

    #[test]
    fn plugin_that_lacks_a_required_key_is_left_out_and_the_others_are_there() {
        let (plugins, left_out) = Plugins::assemble(&discovered(), &BTreeMap::new());
        assert_eq!(plugins.list().map(|one| &*one.name).collect::<Vec<_>>(), ["echo"]);
        assert_eq!(left_out[0].told, "\"gauge\" needs port in its config, and is left out");
        let place = left_out[0].in_manifest.as_ref().unwrap().place;
        assert_eq!(place, Some((5, 14)));
    }

    #[test]
    fn alias_has_the_manifest_of_its_base_and_its_own_configuration() {
        let (name, settings) = alias("north", "gauge");
        let settings = BTreeMap::from([(name, with_port(settings)), alias("also", "echo")]);
        let (plugins, _) = Plugins::assemble(&discovered(), &settings);
        let north = plugins.find("north").unwrap();
        assert_eq!((north.manifest.name.as_str(), &north.settings.config["port"]), ("gauge", &1.into()));
        assert!(plugins.find("also").is_some() && plugins.find("gauge").is_none());
    }

    #[test]
    fn alias_of_an_alias_leads_to_the_plugin_whatever_the_order_of_names() {
        let settings = BTreeMap::from([alias("a", "z"), alias("z", "echo")]);
        let (plugins, _) = Plugins::assemble(&discovered(), &settings);
        assert_eq!(plugins.find("a").unwrap().manifest.name, "echo");
    }

    #[test]
    fn alias_that_leads_nowhere_is_left_out_and_the_others_are_there() {
        assert!(mistake([alias("a", "a")]).contains("of itself"));
        assert!(mistake([alias("a", "ecko")]).contains("no plugin is named so; did you mean \"echo\"?"));
        assert!(mistake([alias("gauge", "echo")]).contains("is a plugin of its own"));
        assert!(mistake([alias("a", "b"), alias("b", "a")]).contains("in a circle"));
        assert!(mistake([alias("a b", "echo")]).contains("a name has letters"));
    }

    #[test]
    fn alias_of_a_plugin_that_is_left_out_says_why_that_one_is() {
        let mut discovered = discovered();
        let mistake = Mistake { file: "m.yaml".to_owned(), place: Some((3, 7)), told: "no".to_owned() };
        discovered.names_left_out.insert("broken".to_owned(), mistake);
        let (plugins, left_out) = Plugins::assemble(&discovered, &BTreeMap::from([alias("a", "broken")]));
        assert!(plugins.find("echo").is_some());
        assert_eq!(left_out[0].told, "\"a\" uses \"broken\", which is left out: m.yaml:3:7: no");
    }

    #[test]
    fn settings_of_a_plugin_that_is_not_there_are_told_with_the_nearest_name() {
        let settings = BTreeMap::from([("ecko".to_owned(), PluginSettings::default())]);
        let (_, left_out) = Plugins::assemble(&discovered(), &settings);
        assert_eq!(left_out[0].told, "no plugin is named \"ecko\"; did you mean \"echo\"?");
    }
}
