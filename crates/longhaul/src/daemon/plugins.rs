//! The plugins of the configuration as executors, each under its own name.

use std::sync::Arc;

use engine::plugin::PluginExecutor;
use engine::process::ProcessHost;
use engine::{Executors, Timer, Workspaces};
use store::Store;

use crate::config::Config;

/// What every plugin of a daemon has around it.
pub(super) struct Around {
    pub(super) host: Arc<ProcessHost>,
    pub(super) clock: Arc<dyn Timer>,
    pub(super) store: Arc<dyn Store>,
    pub(super) workspaces: Arc<Workspaces>,
}

/// Registers all that can be used. One whose secrets cannot be read is left out, and the others are there all the same.
pub(super) fn register(executors: &mut Executors, config: &Config, around: &Around) {
    let Around { host, clock, store, workspaces } = around;
    for plugin in config.loaded_plugins.plugins.list().filter(|plugin| plugin.is_enabled()) {
        let (clock, store) = (clock.clone(), store.clone());
        match PluginExecutor::open(host.clone(), plugin.clone(), clock, store, workspaces.clone()) {
            Ok(opened) => executors.register(&plugin.name, opened.executor()),
            Err(error) => eprintln!("warning: the plugin {:?} is left out: {error}", plugin.name),
        }
    }
}
