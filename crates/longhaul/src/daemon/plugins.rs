//! The plugins of the configuration as executors, each under its own name.

use std::sync::Arc;

use engine::{Executors, LeftOut, Timer};
use executors::plugin::PluginExecutor;
use executors::process::ProcessHost;
use executors::{Reach, Workspaces};
use store::Store;

use crate::config::{Config, left_out_plugin};

/// Registers all that can be used. One whose secrets cannot be read is left out, and the others are there all the same; jobs that
/// name what is left out wait.
pub(super) fn register(
    executors: &mut Executors,
    config: &Config,
    host: &Arc<ProcessHost>,
    clock: &Arc<dyn Timer>,
    store: &Arc<dyn Store>,
    workspaces: &Arc<Workspaces>,
) {
    let mut left_out = config.loaded_plugins.waited_for.clone();
    for plugin in config.loaded_plugins.plugins.list().filter(|plugin| plugin.is_enabled()) {
        let (clock, store) = (clock.clone(), store.clone());
        match PluginExecutor::open(host.clone(), plugin.clone(), clock, store, workspaces.clone()) {
            Ok(opened) => executors.register(&plugin.name, opened.executor()),
            Err(error) => {
                crate::log::say!("warning: the plugin {:?} is left out: {error}", plugin.name);
                left_out.push(left_out_plugin(plugin.name.clone(), &plugin.settings, error.to_string()));
            }
        }
    }
    let needs_its_node = workspaces.settings().reach == Reach::ItsNode;
    for one in left_out {
        let name = one.name.clone();
        executors.register(&name, LeftOut { needs_its_node, ..one }.executor());
    }
}
