//! What plugins remember, on a file: it is written by commits, and read beside them.

use store::{KeptPluginFact, PluginState, PluginStore, Reply};

use super::SqliteStore;
use crate::database::at_once;
use crate::plugin_state;

impl PluginStore for SqliteStore {
    fn plugin_state<'a>(&'a self, plugin: &'a str) -> Reply<'a, Option<PluginState>> {
        let plugin = plugin.to_owned();
        self.readers.read(move |connection| at_once(plugin_state::state(connection, &plugin)))
    }

    fn plugin_facts<'a>(
        &'a self,
        plugin: &'a str,
        after: u64,
        limit: usize,
    ) -> Reply<'a, Vec<KeptPluginFact>> {
        let plugin = plugin.to_owned();
        self.readers.read(move |connection| at_once(plugin_state::facts(connection, &plugin, after, limit)))
    }
}
