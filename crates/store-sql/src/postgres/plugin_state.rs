//! What plugins remember, on a server: it is written by commits, and read beside them.

use store::{KeptPluginFact, PluginState, PluginStore, Reply};

use super::PostgresStore;
use crate::plugin_state;

impl PluginStore for PostgresStore {
    fn plugin_state<'a>(&'a self, plugin: &'a str) -> Reply<'a, Option<PluginState>> {
        Box::pin(self.pool.read(move |session| async move { plugin_state::state(&*session, plugin).await }))
    }

    fn plugin_facts<'a>(
        &'a self,
        plugin: &'a str,
        after: u64,
        limit: usize,
    ) -> Reply<'a, Vec<KeptPluginFact>> {
        Box::pin(
            self.pool.read(move |session| async move {
                plugin_state::facts(&*session, plugin, after, limit).await
            }),
        )
    }
}
