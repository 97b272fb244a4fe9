//! Which number is larger, exactly: no integer goes through a float.

use std::cmp::Ordering;

use serde_json::Number;

/// Compares by what the numbers are worth.
pub(super) fn compare(a: &Number, b: &Number) -> Ordering {
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(a), None) => compare_mixed(a, float(b)),
        (None, Some(b)) => compare_mixed(b, float(a)).reverse(),
        // JSON has no number that cannot be compared.
        (None, None) => float(a).partial_cmp(&float(b)).unwrap_or(Ordering::Equal),
    }
}

fn whole(number: &Number) -> Option<i128> {
    number.as_u64().map(i128::from).or_else(|| number.as_i64().map(i128::from))
}

fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or_default()
}

fn compare_mixed(whole: i128, float: f64) -> Ordering {
    // A float that lies outside of 64 bits is clipped to the ends of 128 bits, which is still outside.
    #[allow(clippy::cast_possible_truncation, reason = "the part behind the point is compared below")]
    let before_point = float.trunc() as i128;
    let behind_point = || 0.0_f64.partial_cmp(&float.fract()).unwrap_or(Ordering::Equal);
    whole.cmp(&before_point).then_with(behind_point)
}
