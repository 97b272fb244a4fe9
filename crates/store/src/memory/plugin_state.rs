//! What plugins remember, in the model.

use std::collections::BTreeMap;

use super::Tables;
use crate::commit::limits::MAX_PAGE;
use crate::plugin_state::KEPT_PLUGIN_FACTS;
use crate::{KeptPluginFact, PluginFact, PluginState, PluginStateChange, StoreError};

/// One plugin's state and facts.
#[derive(Clone, Debug)]
pub struct KeptPlugin {
    /// The state.
    pub state: PluginState,
    /// The facts, by number.
    pub facts: BTreeMap<u64, PluginFact>,
}

impl Tables {
    pub(super) fn plugin_facts(&self, plugin: &str, after: u64, limit: usize) -> Vec<KeptPluginFact> {
        let facts = self.plugins.get(plugin).into_iter().flat_map(|kept| &kept.facts);
        let after = facts.filter(|(number, _)| **number > after).take(limit.min(MAX_PAGE));
        after.map(|(number, fact)| KeptPluginFact { number: *number, fact: fact.clone() }).collect()
    }

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
