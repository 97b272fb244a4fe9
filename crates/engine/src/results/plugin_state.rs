//! What a turn of a plugin changes of what the plugin remembers, applied to the row as it is when the turn is committed.
//!
//! Values stay as they were written: nothing of a state is read as a number.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;
use store::{MAX_PLUGIN_STATE_BYTES, PluginFact, PluginState, PluginStateChange, StoreError};

/// An object whose values are kept as they were written.
pub type JsonObject = BTreeMap<String, Box<RawValue>>;

/// What a turn changes.
#[derive(Clone, Debug)]
pub struct StateUpdate {
    /// Whose state it is.
    pub plugin: String,
    /// What becomes of it.
    pub change: StateChange,
    /// What is kept besides.
    pub facts: Vec<PluginFact>,
}

/// What becomes of a state.
#[derive(Clone, Debug)]
pub enum StateChange {
    /// It stays as it is.
    Unchanged,
    /// These members are set, each whole; `null` is a value like others.
    Merge(JsonObject),
    /// It is this.
    Replace(JsonObject),
}

impl StateUpdate {
    /// The change of the row that is there.
    pub(crate) fn applied(&self, before: Option<&PluginState>) -> Result<PluginStateChange, StoreError> {
        let there = before.map_or("{}", |before| &*before.state);
        let state: Arc<str> = match &self.change {
            StateChange::Unchanged => there.into(),
            StateChange::Replace(object) => object_text(object)?,
            StateChange::Merge(changed) => {
                let mut merged: JsonObject = serde_json::from_str(there).map_err(|error| {
                    StoreError::Broken(format!("the state of {:?} is no object: {error}", self.plugin))
                })?;
                merged.extend(changed.iter().map(|(name, value)| (name.clone(), value.clone())));
                object_text(&merged)?
            }
        };
        if state.len() > MAX_PLUGIN_STATE_BYTES {
            return Err(StoreError::TooLarge { what: "state of a plugin", limit: MAX_PLUGIN_STATE_BYTES });
        }
        Ok(PluginStateChange {
            plugin: self.plugin.clone(),
            expected_version: before.map_or(0, |before| before.version),
            state,
            facts: self.facts.clone(),
        })
    }
}

/// The text of an object.
pub fn object_text(object: &JsonObject) -> Result<Arc<str>, StoreError> {
    serde_json::to_string(object).map(Arc::from).map_err(|error| StoreError::Broken(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &str) -> JsonObject {
        serde_json::from_str(text).unwrap()
    }

    fn after(change: StateChange, before: Option<&str>) -> Result<PluginStateChange, StoreError> {
        let before = before.map(|state| PluginState {
            plugin: "gauge".to_owned(),
            version: 7,
            state: state.into(),
            fact_count: 0,
        });
        StateUpdate { plugin: "gauge".to_owned(), change, facts: Vec::new() }.applied(before.as_ref())
    }

    #[test]
    fn members_are_merged_at_the_top_alone_and_null_is_kept() {
        let merged = after(
            StateChange::Merge(object(r#"{"nested":{"b":2},"gone":null}"#)),
            Some(r#"{"kept":1,"nested":{"a":1},"gone":3}"#),
        )
        .unwrap();
        assert_eq!(&*merged.state, r#"{"gone":null,"kept":1,"nested":{"b":2}}"#);
        assert_eq!(merged.expected_version, 7);
    }

    #[test]
    fn first_state_is_made_from_nothing() {
        let first = after(StateChange::Merge(object(r#"{"a":1}"#)), None).unwrap();
        assert_eq!((&*first.state, first.expected_version), (r#"{"a":1}"#, 0));
    }

    #[test]
    fn numbers_of_19_digits_and_more_stay_as_they_were_object_text() {
        let before = r#"{"mtime_ns":1763337600123456789,"d":0.10}"#;
        let big = StateChange::Merge(object(r#"{"big":123456789012345678901234567890}"#));
        let merged = after(big, Some(before)).unwrap();
        assert_eq!(
            &*merged.state,
            r#"{"big":123456789012345678901234567890,"d":0.10,"mtime_ns":1763337600123456789}"#
        );
    }

    #[test]
    fn snapshot_replaces_the_whole_state() {
        let replaced = after(StateChange::Replace(object(r#"{"b":2}"#)), Some(r#"{"a":1}"#)).unwrap();
        assert_eq!(&*replaced.state, r#"{"b":2}"#);
        let unchanged = after(StateChange::Unchanged, Some(r#"{"a":1}"#)).unwrap();
        assert_eq!(&*unchanged.state, r#"{"a":1}"#);
    }

    #[test]
    fn state_over_its_limit_is_refused_also_when_only_both_together_are() {
        let half = format!(r#"{{"a":"{}"}}"#, "x".repeat(600_000));
        let other = object(&format!(r#"{{"b":"{}"}}"#, "x".repeat(600_000)));
        let refused = after(StateChange::Merge(other), Some(&half)).unwrap_err();
        assert_eq!(
            refused,
            StoreError::TooLarge { what: "state of a plugin", limit: MAX_PLUGIN_STATE_BYTES }
        );
    }
}
