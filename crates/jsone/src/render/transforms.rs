//! Operators that only transform their value: `$flatten`, `$flattenDeep`, `$json`, `$merge`, `$mergeDeep` and
//! `$reverse`.

use crate::error::{Error, Outcome};
use crate::meter::Meter;
use crate::value::{Array, Object, ObjectBuilder, Value, json_text};

/// An operator that only transforms its value; `None` is one that vanished.
#[derive(Debug)]
pub(crate) struct Transform {
    /// The operator's key.
    pub(crate) written: &'static str,
    pub(super) apply: for<'r> fn(Option<&Value<'r>>, &mut Meter) -> Outcome<Value<'r>>,
}

/// All of them.
pub(crate) const TRANSFORMS: &[Transform] = &[
    Transform { written: "$flatten", apply: flatten },
    Transform { written: "$flattenDeep", apply: flatten_deep },
    Transform { written: "$json", apply: as_json },
    Transform { written: "$merge", apply: merge },
    Transform { written: "$mergeDeep", apply: merge_deep },
    Transform { written: "$reverse", apply: reverse },
];

fn as_json<'r>(value: Option<&Value<'r>>, meter: &mut Meter) -> Outcome<Value<'r>> {
    Ok(Value::Text(json_text(value.unwrap_or(&Value::Null), meter)?))
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
        .map(|item| if let Value::Object(object) = item { Ok(object) } else { Err(refused()) })
        .collect()
}
