//! Operators that only transform their value: `$flatten`, `$flattenDeep`, `$json`, `$merge`, `$mergeDeep` and
//! `$reverse`.

use crate::error::{Error, Outcome};
use crate::meter::Meter;
use crate::node::Transform;
use crate::value::{Array, Object, ObjectBuilder, Value, json_text};

/// `None` is a value that vanished.
pub(super) fn apply<'r>(
    transform: Transform,
    value: Option<&Value<'r>>,
    meter: &mut Meter,
) -> Outcome<Value<'r>> {
    match transform {
        Transform::Flatten => flatten(value, meter),
        Transform::FlattenDeep => flatten_deep(value, meter),
        Transform::Json => Ok(Value::Text(json_text(value.unwrap_or(&Value::Null), meter)?)),
        Transform::Merge => merge(value, meter),
        Transform::MergeDeep => merge_deep(value, meter),
        Transform::Reverse => reverse(value, meter),
    }
}

fn flatten<'r>(value: Option<&Value<'r>>, meter: &mut Meter) -> Outcome<Value<'r>> {
    let Some(Value::Array(array)) = value else {
        return Err(Error::template("$flatten value must evaluate to an array"));
    };
    let mut items = Vec::new();
    for item in array.iter() {
        meter.step()?;
        if let Value::Array(inner) = item {
            meter.steps(inner.len() as u64)?;
            items.extend(inner.iter());
        } else {
            items.push(item);
        }
    }
    Ok(Value::Array(Array::build(items, meter)?))
}

fn flatten_deep<'r>(value: Option<&Value<'r>>, meter: &mut Meter) -> Outcome<Value<'r>> {
    let Some(Value::Array(array)) = value else {
        return Err(Error::template("$flattenDeep value must evaluate to an array"));
    };
    let mut items = Vec::new();
    let mut open = vec![(array.clone(), 0)];
    while let Some((array, index)) = open.last_mut() {
        meter.step()?;
        let next = array.get(*index);
        *index += 1;
        match next {
            None => {
                open.pop();
            }
            Some(Value::Array(inner)) => open.push((inner, 0)),
            Some(item) => items.push(item),
        }
    }
    Ok(Value::Array(Array::build(items, meter)?))
}

fn reverse<'r>(value: Option<&Value<'r>>, meter: &mut Meter) -> Outcome<Value<'r>> {
    let Some(Value::Array(array)) = value else {
        return Err(Error::template("$reverse value must evaluate to an array of objects"));
    };
    meter.steps(array.len() as u64)?;
    Ok(Value::Array(Array::build(array.iter().rev().collect(), meter)?))
}

fn merge<'r>(value: Option<&Value<'r>>, meter: &mut Meter) -> Outcome<Value<'r>> {
    let objects = objects(value, "$merge", meter)?;
    let mut merged = ObjectBuilder::default();
    for object in &objects {
        merged.insert_all(object, meter)?;
    }
    Ok(Value::Object(merged.build(meter)?))
}

fn merge_deep<'r>(value: Option<&Value<'r>>, meter: &mut Meter) -> Outcome<Value<'r>> {
    let mut objects = objects(value, "$mergeDeep", meter)?.into_iter();
    let Some(mut merged) = objects.next() else {
        return Ok(Value::Object(ObjectBuilder::default().build(meter)?));
    };
    for object in objects {
        merged = merge_two(&merged, &object, meter)?;
    }
    Ok(Value::Object(merged))
}

/// Recurses as deep as both values, which the depth budget bounds.
fn merge_two<'r>(left: &Object<'r>, right: &Object<'r>, meter: &mut Meter) -> Outcome<Object<'r>> {
    let mut merged = ObjectBuilder::default();
    merged.insert_all(left, meter)?;
    for (key, right) in right.entries(meter)? {
        let value = match (left.get(&key, meter)?, right) {
            (Some(Value::Object(left)), Value::Object(right)) => {
                Value::Object(merge_two(&left, &right, meter)?)
            }
            (Some(Value::Array(left)), Value::Array(right)) => Value::Array(chain(&left, &right, meter)?),
            (_, right) => right,
        };
        merged.insert(key, value);
    }
    merged.build(meter)
}

fn chain<'r>(left: &Array<'r>, right: &Array<'r>, meter: &mut Meter) -> Outcome<Array<'r>> {
    meter.steps((left.len() + right.len()) as u64)?;
    Array::build(left.iter().chain(right.iter()).collect(), meter)
}

fn objects<'r>(value: Option<&Value<'r>>, operator: &str, meter: &mut Meter) -> Outcome<Vec<Object<'r>>> {
    let refused = || Error::template(format!("{operator} value must evaluate to an array of objects"));
    let Some(Value::Array(array)) = value else { return Err(refused()) };
    meter.steps(array.len() as u64)?;
    array
        .iter()
        .map(|item| match item {
            Value::Object(object) => Ok(object),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Text(_)
            | Value::Array(_)
            | Value::Function(_) => Err(refused()),
        })
        .collect()
}
