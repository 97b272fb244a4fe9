//! Objects: borrowed from the template or the context, or built and shared. Always walked in the order of the
//! keys' code points, so that no map's own order shows.

use std::rc::Rc;

use serde_json::{Map, Value as Json};

use super::{Text, Value};
use crate::error::Outcome;
use crate::measure::in_key_order;
use crate::meter::Meter;

#[derive(Clone)]
pub(crate) enum Object<'r> {
    Given(&'r Map<String, Json>),
    Built(Rc<BuiltObject<'r>>),
}

pub(crate) struct BuiltObject<'r> {
    // In key order, each key once.
    entries: Vec<(Text<'r>, Value<'r>)>,
    levels: usize,
}

/// Collects entries in any order; the last one of a key stays.
#[derive(Default)]
pub(crate) struct ObjectBuilder<'r> {
    entries: Vec<(Text<'r>, Value<'r>)>,
}

impl<'r> ObjectBuilder<'r> {
    pub(crate) fn with_capacity(capacity: usize) -> ObjectBuilder<'r> {
        ObjectBuilder { entries: Vec::with_capacity(capacity) }
    }

    pub(crate) fn insert(&mut self, key: Text<'r>, value: Value<'r>) {
        self.entries.push((key, value));
    }

    pub(crate) fn insert_all(&mut self, object: &Object<'r>, meter: &mut Meter) -> Outcome<()> {
        meter.steps(object.len() as u64)?;
        self.entries.extend(object.entries());
        Ok(())
    }

    pub(crate) fn build(mut self, meter: &mut Meter) -> Outcome<Object<'r>> {
        if !self.entries.is_sorted_by(|left, right| *left.0 < *right.0) {
            meter.steps(self.entries.len() as u64)?;
            self.entries.sort_by(|left, right| left.0.cmp(&right.0));
            // Equal keys stand in the order of insertion; dedup keeps the first of what it compares.
            self.entries.reverse();
            self.entries.dedup_by(|left, right| *left.0 == *right.0);
            self.entries.reverse();
        }
        meter.collection(self.entries.len())?;
        let levels = 1 + self.entries.iter().map(|(_, value)| value.built_levels()).max().unwrap_or(0);
        meter.depth(levels)?;
        Ok(Object::Built(Rc::new(BuiltObject { entries: self.entries, levels })))
    }
}

impl<'r> Object<'r> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Object::Given(entries) => entries.len(),
            Object::Built(object) => object.entries.len(),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<Value<'r>> {
        match self {
            Object::Given(entries) => entries.get(key).map(Value::given),
            Object::Built(object) => {
                let found = object.entries.binary_search_by(|(candidate, _)| (**candidate).cmp(key)).ok()?;
                object.entries.get(found).map(|(_, value)| value.clone())
            }
        }
    }

    pub(crate) fn contains(&self, key: &str) -> bool {
        match self {
            Object::Given(entries) => entries.contains_key(key),
            Object::Built(object) => {
                object.entries.binary_search_by(|(candidate, _)| (**candidate).cmp(key)).is_ok()
            }
        }
    }

    /// The entries in key order.
    pub(crate) fn entries(&self) -> Vec<(Text<'r>, Value<'r>)> {
        match self {
            Object::Given(entries) => in_key_order(entries)
                .into_iter()
                .map(|(key, value)| (Text::Given(key), Value::given(value)))
                .collect(),
            Object::Built(object) => object.entries.clone(),
        }
    }

    pub(super) fn built_levels(&self) -> usize {
        match self {
            Object::Given(_) => 0,
            Object::Built(object) => object.levels,
        }
    }
}
