//! How long and how deep a JSON value is, found without recursion, so that no input can overflow the stack.
//! Also takes apart values that are too deep to be dropped safely.

use serde_json::{Map, Value as Json};

use crate::error::{Error, Outcome};
use crate::json_length;
use crate::limits::{Budget, Limits};

/// Refuses a value that is longer than `bytes` as compact JSON, or nested deeper than the limits allow.
pub(crate) fn check(json: &Json, limits: &Limits, bytes: usize, which: Budget) -> Outcome<()> {
    let mut length = Length { so_far: 0, limit: bytes, which };
    let mut open: Vec<Children<'_>> = Vec::new();
    let mut next = Some(json);
    loop {
        match next {
            Some(Json::Array(items)) => {
                length.add(json_length::brackets(items.len()))?;
                open.push(Children::Items(items.iter()));
            }
            Some(Json::Object(entries)) => {
                length.add(json_length::brackets(entries.len()))?;
                open.push(Children::Entries(entries.iter()));
            }
            Some(scalar @ (Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_))) => {
                length.add(json_length::scalar(scalar)?)?;
            }
            None => {
                open.pop();
            }
        }
        if open.len() > limits.levels() {
            return Err(Error::exceeded(Budget::Depth, limits.levels() as u64));
        }
        next = match open.last_mut() {
            None => return Ok(()),
            Some(Children::Items(items)) => items.next(),
            Some(Children::Entries(entries)) => match entries.next() {
                Some((key, value)) => {
                    length.add(json_length::string(key) + json_length::COLON)?;
                    Some(value)
                }
                None => None,
            },
        };
    }
}

/// Drops a value level by level; `Json`'s own `Drop` recurses and would overflow on a very deep one.
pub(crate) fn dismantle(json: Json) {
    let mut rest = vec![json];
    while let Some(next) = rest.pop() {
        match next {
            Json::Array(items) => rest.extend(items),
            Json::Object(entries) => rest.extend(entries.into_iter().map(|(_, value)| value)),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
        }
    }
}

/// The entries in the order of their keys, by code point, also where the map keeps another order.
pub(crate) fn in_key_order(entries: &Map<String, Json>) -> Vec<(&str, &Json)> {
    let mut sorted: Vec<(&str, &Json)> = entries.iter().map(|(key, value)| (key.as_str(), value)).collect();
    if !sorted.is_sorted_by(|left, right| left.0 < right.0) {
        sorted.sort_unstable_by_key(|(key, _)| *key);
    }
    sorted
}

enum Children<'a> {
    Items(std::slice::Iter<'a, Json>),
    Entries(serde_json::map::Iter<'a>),
}

struct Length {
    so_far: usize,
    limit: usize,
    which: Budget,
}

impl Length {
    fn add(&mut self, bytes: usize) -> Outcome<()> {
        self.so_far = self.so_far.saturating_add(bytes);
        if self.so_far > self.limit {
            return Err(Error::exceeded(self.which, self.limit as u64));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn measured(json: &Json, bytes: usize, depth: usize) -> Option<Budget> {
        let limits = Limits { depth, ..Limits::default() };
        check(json, &limits, bytes, Budget::TemplateBytes).err().and_then(|error| error.budget())
    }

    #[test]
    fn the_length_is_that_of_compact_json() {
        let json = json!({"a": [1, -2.5, true, null, "q\"\n\u{1}é"], "": {}, "b": [], "big": u64::MAX});
        let length = json.to_string().len();
        assert_eq!(measured(&json, length, 9), None);
        assert_eq!(measured(&json, length - 1, 9), Some(Budget::TemplateBytes));
    }

    #[test]
    fn an_empty_array_is_one_level() {
        assert_eq!(measured(&json!(1), 99, 0), None);
        assert_eq!(measured(&json!([]), 99, 0), Some(Budget::Depth));
        assert_eq!(measured(&json!([[], {"a": 1}]), 99, 2), None);
        assert_eq!(measured(&json!([[], {"a": []}]), 99, 2), Some(Budget::Depth));
    }
}
