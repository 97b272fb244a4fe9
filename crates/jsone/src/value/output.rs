//! From computed values to `serde_json`: the result of a render, or the arguments of a host function.
//! Functions cannot leave; what leaves as a result is counted byte by byte and held to every size limit.

use serde_json::{Map, Value as Json};

use super::Value;
use crate::error::{Error, Outcome};
use crate::json_length;
use crate::meter::Meter;

/// What the JSON is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The result: its bytes, sizes and depth count.
    Result,
    /// An argument of a host function: only the work counts.
    Argument,
}

/// Copies a value out. Recurses as deep as the value, which the depth budget bounds.
pub(crate) fn to_json(value: &Value<'_>, purpose: Purpose, meter: &mut Meter) -> Outcome<Json> {
    Copy { purpose, meter }.value(value, 0)
}

struct Copy<'m> {
    purpose: Purpose,
    meter: &'m mut Meter,
}

impl Copy<'_> {
    fn value(&mut self, value: &Value<'_>, outer: usize) -> Outcome<Json> {
        self.meter.step()?;
        match value {
            Value::Null => {
                self.bytes(4)?;
                Ok(Json::Null)
            }
            Value::Bool(bool) => {
                self.bytes(if *bool { 4 } else { 5 })?;
                Ok(Json::Bool(*bool))
            }
            Value::Number(number) => {
                let number = number.to_json().ok_or_else(|| Error::interpreter("a number is not finite"))?;
                self.bytes(json_length::number(&number)?)?;
                Ok(Json::Number(number))
            }
            Value::Text(text) => Ok(Json::String(self.text(text)?)),
            Value::Array(array) => {
                self.open(array.len(), outer + 1)?;
                let mut items = Vec::with_capacity(array.len());
                for item in array.iter() {
                    items.push(self.value(&item, outer + 1)?);
                }
                Ok(Json::Array(items))
            }
            Value::Object(object) => {
                self.open(object.len(), outer + 1)?;
                let mut entries = Vec::with_capacity(object.len());
                for (key, value) in object.entries(self.meter)? {
                    self.bytes(json_length::COLON)?;
                    entries.push((self.text(&key)?, self.value(&value, outer + 1)?));
                }
                // A map of entries that stand in order compares each key once; inserting them one by one would
                // search for every place.
                Ok(Json::Object(Map::from_iter(entries)))
            }
            Value::Function(_) => Err(Error::template("evaluated template contained uncalled functions")),
        }
    }

    fn text(&mut self, text: &str) -> Outcome<String> {
        match self.purpose {
            Purpose::Result => {
                self.meter.string(text.len())?;
                self.meter.output(json_length::string(text))?;
            }
            Purpose::Argument => self.meter.text(text.len())?,
        }
        Ok(text.to_owned())
    }

    fn open(&mut self, size: usize, depth: usize) -> Outcome<()> {
        match self.purpose {
            Purpose::Result => {
                self.meter.depth(depth)?;
                self.meter.collection(size)?;
                self.meter.output(json_length::brackets(size))
            }
            Purpose::Argument => self.meter.steps(size as u64),
        }
    }

    fn bytes(&mut self, bytes: usize) -> Outcome<()> {
        match self.purpose {
            Purpose::Result => self.meter.output(bytes),
            Purpose::Argument => Ok(()),
        }
    }
}
