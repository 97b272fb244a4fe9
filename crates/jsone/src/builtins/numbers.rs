//! Built-ins that compute with numbers.

use std::cmp::Ordering;

use crate::builtins::array_of;
use crate::error::Outcome;
use crate::meter::Meter;
use crate::number::Number;
use crate::value::Value;

pub(super) fn with_one<'r>(
    arguments: &[Value<'r>],
    compute: fn(Number) -> Option<Number>,
) -> Option<Value<'r>> {
    let [Value::Number(number)] = arguments else { return None };
    compute(*number).map(Value::Number)
}

pub(super) fn extreme<'r>(arguments: &[Value<'r>], wanted: Ordering) -> Option<Value<'r>> {
    let mut best: Option<Number> = None;
    for argument in arguments {
        let Value::Number(number) = argument else { return None };
        if best.is_none_or(|best| number.compare(best) == wanted) {
            best = Some(*number);
        }
    }
    best.map(Value::Number)
}

pub(super) fn range<'r>(arguments: &[Value<'r>], meter: &mut Meter) -> Outcome<Option<Value<'r>>> {
    let bounds = match arguments {
        [Value::Number(start), Value::Number(stop)] => [*start, *stop, Number::Int(1)],
        [Value::Number(start), Value::Number(stop), Value::Number(step)] => [*start, *stop, *step],
        _ => return Ok(None),
    };
    let [Some(start), Some(stop), Some(step)] = bounds.map(Number::countable) else { return Ok(None) };
    let Some(count) = count(start, stop, step) else { return Ok(None) };
    // Before anything is allocated: the size may be astronomical.
    meter.collection(usize::try_from(count).unwrap_or(usize::MAX))?;
    let items = (0..count).map(|index| Value::Number(Number::from_integer(start + index * step)));
    array_of(items.collect(), meter)
}

/// How many numbers lie in a range; `None` when its step leads nowhere or its bounds are beyond counting.
fn count(start: i128, stop: i128, step: i128) -> Option<i128> {
    let (distance, stride) = match step.cmp(&0) {
        Ordering::Greater => (stop.checked_sub(start)?, step),
        Ordering::Less => (start.checked_sub(stop)?, step.checked_neg()?),
        Ordering::Equal => return None,
    };
    if distance <= 0 {
        return Some(0);
    }
    Some((distance - 1) / stride + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    fn ranged(arguments: [&str; 3]) -> Option<usize> {
        let arguments = arguments.map(|text| Value::Number(Number::parse(text).unwrap()));
        match range(&arguments, &mut Meter::new(&Limits::default())) {
            Ok(Some(Value::Array(items))) => Some(items.len()),
            Ok(Some(_) | None) | Err(_) => None,
        }
    }

    #[test]
    fn a_range_beyond_counting_is_refused_and_never_shortened() {
        assert_eq!(ranged(["0", "1.2676506002282294e30", "1.5845632502852868e29"]), Some(8));
        assert_eq!(ranged(["0", "1e300", "1e299"]), None);
        assert_eq!(ranged(["-1e300", "0", "1e299"]), None);
        assert_eq!(ranged(["0", "1", "1e300"]), None);
    }

    #[test]
    fn a_range_is_counted_before_it_is_built() {
        assert_eq!(count(0, 10, 3), Some(4));
        assert_eq!(count(20, 0, -7), Some(3));
        assert_eq!(count(5, 5, 1), Some(0));
        assert_eq!(count(5, 1, 1), Some(0));
        assert_eq!(count(0, 1, 0), None);
        assert_eq!(count(i128::from(i64::MIN), i128::from(u64::MAX), 1), Some(27_670_116_110_564_327_423));
        assert_eq!(count(10, 0, i128::from(i64::MIN)), Some(1));
        assert_eq!(count(i128::MIN, i128::MAX, 1), None);
    }
}
