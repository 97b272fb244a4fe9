//! Equality of JSON by value: `1` and `1.0` are the same number, and two integers only when every digit is.

use serde_json::Value as Json;

pub fn same(left: &Json, right: &Json) -> bool {
    match (left, right) {
        (Json::Number(left), Json::Number(right)) => {
            let both_integers = !left.is_f64() && !right.is_f64();
            left == right || (!both_integers && left.as_f64() == right.as_f64())
        }
        (Json::Array(left), Json::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Json::Object(left), Json::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, left)| right.get(key).is_some_and(|right| same(left, right)))
        }
        _ => left == right,
    }
}
