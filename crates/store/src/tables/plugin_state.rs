//! What plugins remember: one JSON object per plugin with a version, and the facts that its manifest asks to keep.
//!
//! It changes only in the commit that ends a job of the plugin, so that a turn is remembered whole or not at all. Not part of the ledger.

use std::sync::Arc;

use crate::StoreError;

/// The state of one plugin, and one fact of it.
pub const MAX_PLUGIN_STATE_BYTES: usize = 1_048_576;
/// Facts that are kept of one plugin: the newest.
pub const KEPT_PLUGIN_FACTS: u64 = 10_000;
/// Plugins whose state one commit may change.
pub const MAX_PLUGIN_STATES: usize = 16;
/// Facts of one plugin in one commit.
pub const MAX_NEW_PLUGIN_FACTS: usize = 100;
const MAX_TEXT_BYTES: usize = 256;

/// What a plugin remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginState {
    /// Whose it is.
    pub plugin: String,
    /// 1 after its first commit, and one more after each.
    pub version: u64,
    /// The state: a JSON object, as it was written.
    pub state: Arc<str>,
    /// Facts that were ever written; the number of the last one.
    pub fact_count: u64,
}

/// What a commit makes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginStateChange {
    /// Whose it is.
    pub plugin: String,
    /// The version that the new state was made from; 0 if there must be none.
    pub expected_version: u64,
    /// The whole new state.
    pub state: Arc<str>,
    /// What is kept besides.
    pub facts: Vec<PluginFact>,
}

/// Something that a plugin's manifest asks to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginFact {
    /// What it is called.
    pub fact_type: String,
    /// A JSON object, as it was written.
    pub json: Arc<str>,
}

/// A fact that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptPluginFact {
    /// Counted from 1 for each plugin, never given twice.
    pub number: u64,
    /// What it is.
    pub fact: PluginFact,
}

impl PluginStateChange {
    /// Refuses what is over its limits, before anything is queued.
    pub fn check(&self) -> Result<(), StoreError> {
        text("name of a plugin", &self.plugin)?;
        within(self.state.len(), "state of a plugin", MAX_PLUGIN_STATE_BYTES)?;
        within(self.facts.len(), "facts of a plugin in one commit", MAX_NEW_PLUGIN_FACTS)?;
        for fact in &self.facts {
            text("fact_type", &fact.fact_type)?;
            within(fact.json.len(), "fact of a plugin", MAX_PLUGIN_STATE_BYTES)?;
        }
        Ok(())
    }
}

fn within(count: usize, what: &'static str, limit: usize) -> Result<(), StoreError> {
    if count > limit { Err(StoreError::TooLarge { what, limit }) } else { Ok(()) }
}

/// A name that every database can keep.
fn text(what: &'static str, text: &str) -> Result<(), StoreError> {
    within(text.len(), what, MAX_TEXT_BYTES)?;
    if text.is_empty() || text.chars().any(char::is_control) {
        return Err(StoreError::Broken(format!("{text:?} cannot be the {what}")));
    }
    Ok(())
}
