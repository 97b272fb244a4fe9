//! `events:` in the configuration: who settles events of a type. What is not named is settled by the router.

use std::collections::BTreeSet;
use std::path::Path;

use config_file::Mistake;
use domain::event::MAX_TYPE_BYTES;
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::Config;

/// One type of events.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventConfig {
    #[serde(rename = "type")]
    kind: String,
    settled_by: SettlerWord,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SettlerWord {
    Router,
    Claimants,
}

/// Refuses a type that no event can have, and one that is named twice.
pub fn check(path: &Path, events: &[Spanned<EventConfig>]) -> Result<(), Mistake> {
    let mut named = BTreeSet::new();
    for event in events {
        let wrong = |told: String| Err(Mistake::at(path.display(), &event.defined, told));
        let kind = &event.value.kind;
        if kind.is_empty() || kind.chars().count() > MAX_TYPE_BYTES || kind.chars().any(char::is_control) {
            return wrong(format!(
                "type: a type has 1 to {MAX_TYPE_BYTES} characters, none of them a control character"
            ));
        }
        if !named.insert(kind) {
            return wrong(format!("the type {kind:?} is named twice"));
        }
    }
    Ok(())
}

impl Config {
    /// The types of events that are left to those who claim them.
    pub fn left_to_claimants(&self) -> Vec<String> {
        let left = self.events.iter().filter(|event| event.value.settled_by == SettlerWord::Claimants);
        left.map(|event| event.value.kind.clone()).collect()
    }
}
