//! Deep equality: by type and value, without coercion. Pays a step for every pair that it looks at, because
//! values that share their parts can be far larger than the memory that they take.

use std::cmp::Ordering;

use super::{Array, Function, Object, Value};
use crate::error::Outcome;
use crate::meter::Meter;

/// Whether both are the same value. Recurses as deep as the values, which the depth budget bounds.
pub(crate) fn equal(left: &Value<'_>, right: &Value<'_>, meter: &mut Meter) -> Outcome<bool> {
    meter.step()?;
    Ok(match (left, right) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Number(left), Value::Number(right)) => left.compare(*right) == Ordering::Equal,
        (Value::Text(left), Value::Text(right)) => {
            if left.len() != right.len() {
                return Ok(false);
            }
            meter.text(left.len())?;
            **left == **right
        }
        (Value::Array(left), Value::Array(right)) => arrays(left, right, meter)?,
        (Value::Object(left), Value::Object(right)) => objects(left, right, meter)?,
        (Value::Function(left), Value::Function(right)) => functions(*left, *right),
        _ => false,
    })
}

fn arrays(left: &Array<'_>, right: &Array<'_>, meter: &mut Meter) -> Outcome<bool> {
    if left.len() != right.len() {
        return Ok(false);
    }
    for (left, right) in left.iter().zip(right.iter()) {
        if !equal(&left, &right, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn objects(left: &Object<'_>, right: &Object<'_>, meter: &mut Meter) -> Outcome<bool> {
    if left.len() != right.len() {
        return Ok(false);
    }
    for (key, left) in left.entries(meter)? {
        let Some(right) = right.get(&key, meter)? else { return Ok(false) };
        if !equal(&left, &right, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn functions(left: Function<'_>, right: Function<'_>) -> bool {
    match (left, right) {
        (Function::Builtin(left), Function::Builtin(right)) => left.name == right.name,
        (Function::Host(left), Function::Host(right)) => left.name() == right.name(),
        (Function::Builtin(_), Function::Host(_)) | (Function::Host(_), Function::Builtin(_)) => false,
    }
}
