//! How numbers compare: by their exact value, also when one is an integer that no double can hold.

use std::cmp::Ordering;

use super::Number;

/// Beyond every integer that [`Number`] holds exactly.
const BEYOND_INTEGERS: f64 = 1e20;

/// How two numbers of JSON compare, by their exact value.
pub fn compare_numbers(left: &serde_json::Number, right: &serde_json::Number) -> Ordering {
    Number::from_json(left).compare(Number::from_json(right))
}

impl Number {
    pub(crate) fn compare(self, other: Number) -> Ordering {
        match (self.integer(), other.integer()) {
            (Some(left), Some(right)) => left.cmp(&right),
            (Some(left), None) => integer_against_float(left, other.as_float()),
            (None, Some(right)) => integer_against_float(right, self.as_float()).reverse(),
            (None, None) => floats(self.as_float(), other.as_float()),
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "integral and far within the range of i128")]
#[expect(
    clippy::cast_precision_loss,
    reason = "the integer is compared exactly; the fraction decides the rest"
)]
fn integer_against_float(integer: i128, float: f64) -> Ordering {
    if float.abs() >= BEYOND_INTEGERS {
        return floats(0.0, float);
    }
    let whole = float.trunc() as i128;
    integer.cmp(&whole).then_with(|| floats(whole as f64, float))
}

fn floats(left: f64, right: f64) -> Ordering {
    // Both are finite, so there is always an order.
    left.partial_cmp(&right).unwrap_or(Ordering::Equal)
}
