//! The plugins of the configuration as executors, each under its own name.

use std::sync::Arc;

use engine::plugin::PluginExecutor;
use engine::process::ProcessHost;
use engine::{Executors, Timer};
use store::Store;

use crate::config::Config;

/// Registers all that can be used. One whose secrets cannot be read is left out, and the others are there all the same.
pub(super) fn register(
    executors: &mut Executors,
    config: &Config,
    host: &Arc<ProcessHost>,
    clock: &Arc<dyn Timer>,
    store: &Arc<dyn Store>,
) {
    for plugin in config.loaded_plugins.plugins.list().filter(|plugin| plugin.is_enabled()) {
        match PluginExecutor::open(host.clone(), plugin.clone(), clock.clone(), store.clone()) {
            Ok(opened) => executors.register(&plugin.name, opened.executor()),
            Err(error) => eprintln!("warning: the plugin {:?} is left out: {error}", plugin.name),
        }
    }
}
