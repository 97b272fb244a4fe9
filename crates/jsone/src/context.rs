//! What a template may read: the caller's JSON object, checked once and borrowed for any number of renders.

use serde_json::{Map, Value as Json};

use crate::error::{Error, Outcome};
use crate::identifier::is_identifier;
use crate::limits::{Budget, Limits};
use crate::measure;

/// A checked context.
///
/// It borrows the object, so the caller keeps owning it and drops it. `serde_json` drops a value by recursion:
/// a caller that builds values of unlimited depth (parsing text never does) has to take them apart itself.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    values: Option<&'a Map<String, Json>>,
}

impl<'a> Context<'a> {
    /// A context without values.
    pub const EMPTY: Context<'static> = Context { values: None };

    /// Checks the size, the depth and the names of an object.
    pub fn new(json: &'a Json, limits: &Limits) -> Result<Context<'a>, Error> {
        let Json::Object(values) = json else {
            return Err(Error::template("context must be a dictionary"));
        };
        measure::check(json, limits, limits.context_bytes, Budget::ContextBytes)?;
        check_names(values)?;
        Ok(Context { values: Some(values) })
    }

    pub(crate) fn len(self) -> usize {
        self.values.map_or(0, Map::len)
    }

    pub(crate) fn get(self, name: &str) -> Option<&'a Json> {
        self.values?.get(name)
    }
}

fn check_names(values: &Map<String, Json>) -> Outcome<()> {
    if values.keys().all(|name| is_identifier(name)) {
        return Ok(());
    }
    Err(Error::template("top level keys of context must follow /[a-zA-Z_][a-zA-Z0-9_]*/"))
}
