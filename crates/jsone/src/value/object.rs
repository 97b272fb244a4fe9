//! Objects: borrowed from the template or the context, or built and shared. Always walked in the order of the
//! keys' code points, so that no map's own order shows. Finding a key, and putting keys into order, is paid for
//! by the comparisons that it takes.

use std::rc::Rc;

use serde_json::{Map, Value as Json};

use super::{Text, Value};
use crate::error::Outcome;
use crate::meter::Meter;

#[derive(Clone)]
pub(crate) enum Object<'r> {
    Given(&'r Map<String, Json>),
    Built(Rc<BuiltObject<'r>>),
}

pub(crate) struct BuiltObject<'r> {
    // In key order, each key once.
    entries: Entries<'r>,
    levels: usize,
}

type Entries<'r> = Vec<(Text<'r>, Value<'r>)>;

/// Collects entries in any order; the last one of a key stays.
#[derive(Default)]
pub(crate) struct ObjectBuilder<'r> {
    entries: Entries<'r>,
}

impl<'r> ObjectBuilder<'r> {
    pub(crate) fn with_capacity(capacity: usize) -> ObjectBuilder<'r> {
        ObjectBuilder { entries: Vec::with_capacity(capacity) }
    }

    pub(crate) fn insert(&mut self, key: Text<'r>, value: Value<'r>) {
        self.entries.push((key, value));
    }

    pub(crate) fn insert_all(&mut self, object: &Object<'r>, meter: &mut Meter) -> Outcome<()> {
        self.entries.extend(object.entries(meter)?);
        Ok(())
    }

    pub(crate) fn build(mut self, meter: &mut Meter) -> Outcome<Object<'r>> {
        if put_in_order(&mut self.entries, meter)? == Order::Made {
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

/// Whether entries stood in order before they were put in order; only then each key surely stands there once.
#[derive(PartialEq, Eq)]
enum Order {
    Found,
    Made,
}

fn put_in_order(entries: &mut Entries<'_>, meter: &mut Meter) -> Outcome<Order> {
    // Also for the look whether they are.
    meter.texts(entries.iter().map(|(key, _)| key.len()))?;
    if entries.is_sorted_by(|left, right| *left.0 < *right.0) {
        return Ok(Order::Found);
    }
    meter.ordering(entries.iter().map(|(key, _)| key.len()))?;
    entries.sort_by(|left, right| left.0.cmp(&right.0));
    Ok(Order::Made)
}

impl<'r> Object<'r> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Object::Given(entries) => entries.len(),
            Object::Built(object) => object.entries.len(),
        }
    }

    pub(crate) fn get(&self, key: &str, meter: &mut Meter) -> Outcome<Option<Value<'r>>> {
        meter.search(self.len(), key.len())?;
        Ok(match self {
            Object::Given(entries) => entries.get(key).map(Value::given),
            Object::Built(object) => object
                .entries
                .binary_search_by(|(candidate, _)| (**candidate).cmp(key))
                .ok()
                .and_then(|found| object.entries.get(found))
                .map(|(_, value)| value.clone()),
        })
    }

    /// The entries in key order.
    pub(crate) fn entries(&self, meter: &mut Meter) -> Outcome<Entries<'r>> {
        meter.steps(self.len() as u64)?;
        match self {
            Object::Given(entries) => {
                let given = entries.iter().map(|(key, value)| (Text::Given(key), Value::given(value)));
                let mut given: Entries<'r> = given.collect();
                put_in_order(&mut given, meter)?;
                Ok(given)
            }
            Object::Built(object) => Ok(object.entries.clone()),
        }
    }

    /// Pays for looking at every byte of every key, and tells whether all of them hold.
    pub(crate) fn all_keys(&self, holds: fn(&str) -> bool, meter: &mut Meter) -> Outcome<bool> {
        meter.steps(self.len() as u64)?;
        match self {
            Object::Given(entries) => {
                meter.texts(entries.keys().map(String::len))?;
                Ok(entries.keys().all(|key| holds(key)))
            }
            Object::Built(object) => {
                meter.texts(object.entries.iter().map(|(key, _)| key.len()))?;
                Ok(object.entries.iter().all(|(key, _)| holds(key)))
            }
        }
    }

    pub(super) fn built_levels(&self) -> usize {
        match self {
            Object::Given(_) => 0,
            Object::Built(object) => object.levels,
        }
    }
}
