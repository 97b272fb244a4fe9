//! Arrays: borrowed from the template or the context, or built and shared.

use std::rc::Rc;

use serde_json::Value as Json;

use super::Value;
use crate::error::Outcome;
use crate::meter::Meter;

#[derive(Clone)]
pub(crate) enum Array<'r> {
    Given(&'r [Json]),
    Built(Rc<BuiltArray<'r>>),
}

pub(crate) struct BuiltArray<'r> {
    items: Vec<Value<'r>>,
    levels: usize,
}

impl<'r> Array<'r> {
    pub(crate) fn build(items: Vec<Value<'r>>, meter: &mut Meter) -> Outcome<Array<'r>> {
        meter.collection(items.len())?;
        let levels = 1 + items.iter().map(Value::built_levels).max().unwrap_or(0);
        meter.depth(levels)?;
        Ok(Array::Built(Rc::new(BuiltArray { items, levels })))
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Array::Given(items) => items.len(),
            Array::Built(array) => array.items.len(),
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<Value<'r>> {
        match self {
            Array::Given(items) => items.get(index).map(Value::given),
            Array::Built(array) => array.items.get(index).cloned(),
        }
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = Value<'r>> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// The elements between two indices, borrowed again where they can be.
    pub(crate) fn part(&self, from: usize, to: usize, meter: &mut Meter) -> Outcome<Array<'r>> {
        match self {
            Array::Given(items) => Ok(Array::Given(&items[from..to])),
            Array::Built(array) => {
                meter.steps((to - from) as u64)?;
                Array::build(array.items[from..to].to_vec(), meter)
            }
        }
    }

    pub(super) fn built_levels(&self) -> usize {
        match self {
            Array::Given(_) => 0,
            Array::Built(array) => array.levels,
        }
    }
}
