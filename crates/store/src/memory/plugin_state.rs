//! What plugins remember, in the model.

use std::collections::BTreeMap;

use super::{MemoryStore, Tables, ready};
use crate::commit::limits::MAX_PAGE;
use crate::plugin_state::KEPT_PLUGIN_FACTS;
use crate::{KeptPluginFact, PluginFact, PluginState, PluginStateChange, PluginStore, Reply, StoreError};

/// One plugin's state and facts.
#[derive(Clone, Debug)]
pub struct KeptPlugin {
    /// The state.
    pub state: PluginState,
    /// The facts, by number.
    pub facts: BTreeMap<u64, PluginFact>,
}

impl PluginStore for MemoryStore {
    fn plugin_state<'a>(&'a self, plugin: &'a str) -> Reply<'a, Option<PluginState>> {
        ready(Ok(self.tables().plugins.get(plugin).map(|kept| kept.state.clone())))
    }

    fn plugin_facts<'a>(
        &'a self,
        plugin: &'a str,
        after: u64,
        limit: usize,
    ) -> Reply<'a, Vec<KeptPluginFact>> {
        let tables = self.tables();
        let facts = tables.plugins.get(plugin).into_iter().flat_map(|kept| &kept.facts);
        let after = facts.filter(|(number, _)| **number > after).take(limit.min(MAX_PAGE));
        let kept =
            |(number, fact): (&u64, &PluginFact)| KeptPluginFact { number: *number, fact: fact.clone() };
        ready(Ok(after.map(kept).collect()))
    }
}

impl Tables {
    /// Refuses a state that was made from another version.
    pub(super) fn check_plugins(&self, changes: &[PluginStateChange]) -> Result<(), StoreError> {
        let version = |plugin: &str| self.plugins.get(plugin).map_or(0, |kept| kept.state.version);
        let fits = |change: &PluginStateChange| version(&change.plugin) == change.expected_version;
        if changes.iter().all(fits) { Ok(()) } else { Err(StoreError::Conflict) }
    }

    /// What a commit brings about.
    pub(super) fn change_plugins(&mut self, changes: &[PluginStateChange]) {
        for change in changes {
            let (mut facts, mut fact_count) = match self.plugins.remove(&change.plugin) {
                Some(kept) => (kept.facts, kept.state.fact_count),
                None => (BTreeMap::new(), 0),
            };
            for fact in &change.facts {
                fact_count += 1;
                facts.insert(fact_count, fact.clone());
            }
            facts.retain(|number, _| *number + KEPT_PLUGIN_FACTS > fact_count);
            let state = PluginState {
                plugin: change.plugin.clone(),
                version: change.expected_version + 1,
                state: change.state.clone(),
                fact_count,
            };
            self.plugins.insert(change.plugin.clone(), KeptPlugin { state, facts });
        }
    }
}
