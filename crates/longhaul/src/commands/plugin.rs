//! `longhaul plugin`: what plugins there are, whether they can be used, a new one, and one job of one.
//!
//! All but `run`, `state` and `reset` work on the configuration and the files alone; what a daemon that answers says of breakers is shown with them.

mod daemon;
mod new;
mod run;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use api::ductile::PluginBreaker;
use clap::{Args, Subcommand};
use config_file::Mistake;
use executors::plugin::{Discovered, Found, MANIFEST, Plugin, Symlinks, cannot_start, look_at};
use serde_json::json;

use crate::builtin;
use crate::client::Connection;
use crate::config::{Config, ConfigArgument, TAKEN};
use crate::exit::{FAILED, Failed};
use crate::show::{PrintArgs, Table, plain, say, say_json};

const EXAMPLES: &str = "A plugin is a directory with a manifest.yaml and a program in any language: it is given one JSON object on its \
standard input and answers with one on its standard output, {\"status\": \"ok\", \"result\": \"done\"}. longhaul.yaml says where \
plugins are; each is an executor under its own name. Plugins for Ductile work as they are. See docs/plugins.md.

Examples:
  longhaul plugin new greet --lang bash --dir plugins     a plugin to begin with
  longhaul plugin check plugins/greet                     can it be used, and if not, why
  echo 'plugin_roots: [plugins]' > longhaul.yaml
  longhaul plugin list                                    what the daemon would have
  longhaul plugin run greet --payload '{\"name\": \"you\"}'  one job of it, followed to its end
  longhaul plugin state greet                             what it remembers, and its newest facts
  longhaul plugin reset greet                             left alone after failures: try it again

Exit codes: 0 it can be used, or the job has completed; 1 it cannot, or the job failed; 4 there is no such plugin.";

/// What a daemon says of the breakers of its plugins, by their names.
type Breakers = BTreeMap<String, PluginBreaker>;

/// List, check, make and run plugins
#[derive(Subcommand)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub enum Verb {
    /// The plugins that the daemon would have with this configuration
    List(Known),
    /// One plugin: its commands, where it is, how its jobs queue
    Show {
        /// Its name
        name: String,
        #[command(flatten)]
        known: Known,
    },
    /// Say what is wrong with a plugin, with all plugins below a directory, or with those of the configuration
    Check {
        /// A plugin, or a directory with plugins
        #[arg(value_name = "DIR")]
        directory: Option<PathBuf>,
        #[command(flatten)]
        config: ConfigArgument,
    },
    New(new::New),
    Run(run::Run),
    State(daemon::State),
    Reset(daemon::Reset),
}

/// What is known of plugins: from the configuration, and from the daemon if one answers.
#[derive(Args)]
pub struct Known {
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    config: ConfigArgument,
    #[command(flatten)]
    print: PrintArgs,
}

pub fn run(verb: Verb) -> Result<ExitCode> {
    match verb {
        Verb::List(known) => list(&known)?,
        Verb::Show { name, known } => show(&known, &name)?,
        Verb::Check { directory: Some(directory), .. } => return check(&directory),
        Verb::Check { directory: None, config } => return Ok(check_all(&config.read()?)),
        Verb::New(new) => new::run(&new)?,
        Verb::Run(run) => return run::run(&run),
        Verb::State(state) => daemon::state(&state)?,
        Verb::Reset(reset) => daemon::reset(&reset)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(known: &Known) -> Result<()> {
    let (config, breakers) = (known.config.read()?, daemon::breakers(&known.connection));
    warn("warning", &config.loaded_plugins.told);
    let plugins = &config.loaded_plugins.plugins;
    if known.print.json {
        let list: Vec<_> = plugins.list().map(|plugin| described(plugin, &breakers)).collect();
        return say_json(&json!({ "plugins": list }));
    }
    let mut table = Table::new(&["Plugin", "Version", "Enabled", "Commands", "Breaker", "Directory"]);
    for plugin in plugins.list() {
        let enabled = match (plugin.is_enabled(), plugin.lacks_a_secret()) {
            (true, None) => "yes",
            (true, Some(told)) => {
                eprintln!("warning: the plugin {:?}: {told}", plugin.name);
                "no: a secret is missing here"
            }
            (false, _) => "no",
        };
        let version = plugin.manifest.version.as_deref().unwrap_or_default();
        let directory = plugin.directory.display().to_string();
        let breaker = daemon::breaker(breakers.get(&plugin.name));
        table.row(&[&plugin.name, version, enabled, &plugin.manifest.command_names(), &breaker, &directory]);
    }
    say(table);
    Ok(())
}

fn show(known: &Known, name: &str) -> Result<()> {
    let (config, breakers) = (known.config.read()?, daemon::breakers(&known.connection));
    let plugins = &config.loaded_plugins.plugins;
    let Some(plugin) = plugins.find(name) else {
        let names: Vec<&str> = plugins.list().map(|plugin| plugin.name.as_str()).collect();
        let near = config_file::hint(name, &names);
        warn("warning", &config.loaded_plugins.told);
        return Err(Failed::missing(format!("no plugin is named {name:?}{near}")).into());
    };
    if known.print.json {
        return say_json(&described(plugin, &breakers));
    }
    let manifest = &plugin.manifest;
    let mut fields = vec![
        ("plugin", plugin.name.clone()),
        ("version", manifest.version.clone().unwrap_or_default()),
        ("about", manifest.description.clone().unwrap_or_default()),
        ("uses", plugin.settings.uses.clone().unwrap_or_default()),
        ("enabled", if plugin.is_enabled() { "yes" } else { "no" }.to_owned()),
        ("starts", plugin.entrypoint.display().to_string()),
        ("lane", plugin.lane()),
        ("attempts", plugin.settings.retry.max_attempts.to_string()),
        ("breaker", daemon::breaker(breakers.get(&plugin.name))),
        ("config", plugin.settings.config.keys().cloned().collect::<Vec<_>>().join(", ")),
        ("secrets", plugin.settings.secrets.keys().cloned().collect::<Vec<_>>().join(", ")),
    ];
    fields.retain(|(_, value)| !value.is_empty());
    for (field, value) in fields {
        say(format_args!("{field:>9}: {}", plain(&value)));
    }
    for command in &manifest.commands {
        let about = command.description.as_deref().unwrap_or_default();
        let seconds = plugin.settings.time_limit(&command.name).as_secs();
        let line = format!("{} ({}, {seconds} s) {about}", command.name, command.effect.as_str());
        say(format_args!("{:>9}: {}", "command", plain(line.trim_end())));
    }
    Ok(())
}

/// A plugin for machines. Of its secrets only the names, of its configuration only the keys: values may be private too.
fn described(plugin: &Plugin, breakers: &Breakers) -> serde_json::Value {
    let manifest = &plugin.manifest;
    let commands: Vec<_> = manifest
        .commands
        .iter()
        .map(|command| {
            json!({
                "name": command.name,
                "type": command.effect.as_str(),
                "description": command.description,
                "input_schema": command.input_schema,
                "output_schema": command.output_schema,
                "timeout_seconds": plugin.settings.time_limit(&command.name).as_secs(),
            })
        })
        .collect();
    json!({
        "name": plugin.name,
        "uses": plugin.settings.uses,
        "version": manifest.version,
        "description": manifest.description,
        "enabled": plugin.is_enabled(),
        "directory": plugin.directory,
        "entrypoint": plugin.entrypoint,
        "lane": plugin.lane(),
        "commands": commands,
        "breaker": breakers.get(&plugin.name),
        "config_keys": plugin.settings.config.keys().collect::<Vec<_>>(),
        "secrets": plugin.settings.secrets.keys().collect::<Vec<_>>(),
    })
}

fn check(directory: &Path) -> Result<ExitCode> {
    let directory = &std::path::absolute(directory)?;
    if directory.join(MANIFEST).exists() {
        let found = look_at(directory, directory, Symlinks::Refused)?;
        warn("warning", &found.manifest.warnings);
        let (name, commands) = (&found.manifest.name, found.manifest.command_names());
        if let Some(mistake) = of_no_use(&found) {
            return Err(mistake.into());
        }
        say(format_args!("{} can be used: plugin {name:?} with {commands}", directory.display()));
        return Ok(ExitCode::SUCCESS);
    }
    let mut discovered = Discovered::default();
    discovered.add_root(directory, Symlinks::Refused)?;
    let unusable: Vec<Mistake> = discovered.plugins.values().filter_map(of_no_use).collect();
    discovered.plugins.retain(|_, found| of_no_use(found).is_none());
    discovered.left_out.extend(unusable);
    warn("warning", &discovered.warnings);
    warn("error", &discovered.left_out);
    if discovered.plugins.is_empty() && discovered.left_out.is_empty() {
        let told = format!("there is no {MANIFEST} in or below {}", directory.display());
        return Err(Failed::because(told).into());
    }
    Ok(told_of(discovered.plugins.keys().map(String::as_str).collect(), discovered.left_out.len()))
}

/// Why a plugin that may be started is of no use all the same.
fn of_no_use(found: &Found) -> Option<Mistake> {
    let Found { manifest, directory, entrypoint } = found;
    let file = directory.join(MANIFEST).display().to_string();
    if builtin::NAMES.contains(&manifest.name.as_str()) {
        let told = format!("{:?}: {TAKEN}", manifest.name);
        return Some(Mistake { file, place: Some(manifest.places.name), told });
    }
    let told = cannot_start(entrypoint)?;
    Some(Mistake { file, place: Some(manifest.places.entrypoint), told })
}

fn check_all(config: &Config) -> ExitCode {
    let loaded = &config.loaded_plugins;
    for (number, told) in loaded.told.iter().enumerate() {
        eprintln!("{}: {told}", if number < loaded.left_out { "error" } else { "warning" });
    }
    let mut left_out = loaded.left_out;
    let mut usable = Vec::new();
    for plugin in loaded.plugins.list() {
        let lacks = plugin.lacks_a_secret().map(|told| format!("the plugin {:?}: {told}", plugin.name));
        match lacks.filter(|_| plugin.is_enabled()) {
            Some(told) => {
                left_out += 1;
                eprintln!("error: {told}");
            }
            None => usable.push(plugin.name.as_str()),
        }
    }
    told_of(usable, left_out)
}

fn told_of(names: Vec<&str>, left_out: usize) -> ExitCode {
    say(format_args!("{} can be used: {}; {left_out} cannot", names.len(), names.join(", ")));
    if left_out == 0 { ExitCode::SUCCESS } else { ExitCode::from(FAILED) }
}

fn warn(label: &str, told: &[Mistake]) {
    for told in told {
        eprintln!("{label}: {told}");
    }
}
