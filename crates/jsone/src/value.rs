//! What expressions and operators compute with: JSON, or a function.
//!
//! Values of the context and literals of the template are borrowed, not copied; what a render builds is counted
//! by references. So passing a value on costs the same for a number and for a large object. A value lives no
//! longer than its render.

mod array;
mod equality;
mod json_text;
pub(crate) mod number;
mod object;
mod output;
mod text;

use serde_json::Value as Json;

pub(crate) use array::Array;
pub(crate) use equality::equal;
pub(crate) use json_text::{json_text, push_quoted};
pub(crate) use object::{Object, ObjectBuilder};
pub(crate) use output::{Purpose, to_json};
pub(crate) use text::Text;

use crate::builtins::Builtin;
use crate::error::Outcome;
use crate::functions::HostFunction;
use crate::meter::Meter;
use crate::number::Number;

#[derive(Clone)]
pub(crate) enum Value<'r> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Text<'r>),
    Array(Array<'r>),
    Object(Object<'r>),
    Function(Function<'r>),
}

/// Something that can be called.
#[derive(Clone, Copy)]
pub(crate) enum Function<'r> {
    Builtin(&'static Builtin),
    Host(&'r HostFunction),
}

impl<'r> Value<'r> {
    /// Borrows one level; what is nested is borrowed when it is reached.
    pub(crate) fn given(json: &'r Json) -> Value<'r> {
        match json {
            Json::Null => Value::Null,
            Json::Bool(bool) => Value::Bool(*bool),
            Json::Number(number) => Value::Number(Number::from_json(number)),
            Json::String(text) => Value::Text(Text::Given(text)),
            Json::Array(items) => Value::Array(Array::Given(items)),
            Json::Object(entries) => Value::Object(Object::Given(entries)),
        }
    }

    /// Takes over a value that no one else holds. Its depth must have been checked: this recurses.
    pub(crate) fn adopted(json: Json, meter: &mut Meter) -> Outcome<Value<'r>> {
        meter.step()?;
        Ok(match json {
            Json::Null => Value::Null,
            Json::Bool(bool) => Value::Bool(bool),
            Json::Number(number) => Value::Number(Number::from_json(&number)),
            Json::String(text) => Value::Text(Text::build(&text, meter)?),
            Json::Array(items) => {
                let adopted = items.into_iter().map(|item| Value::adopted(item, meter));
                let adopted = adopted.collect::<Outcome<Vec<_>>>()?;
                Value::Array(Array::build(adopted, meter)?)
            }
            Json::Object(entries) => {
                let mut object = ObjectBuilder::default();
                for (key, value) in entries {
                    object.insert(Text::build(&key, meter)?, Value::adopted(value, meter)?);
                }
                Value::Object(object.build(meter)?)
            }
        })
    }

    pub(crate) fn is_truthy(&self) -> bool {
        match self {
            Value::Null => false,
            Value::Bool(bool) => *bool,
            Value::Number(number) => !number.is_zero(),
            Value::Text(text) => !text.is_empty(),
            Value::Array(array) => array.len() > 0,
            Value::Object(object) => object.len() > 0,
            Value::Function(_) => true,
        }
    }

    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::Text(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
            Value::Function(_) => "function",
        }
    }

    /// How many levels a render has put around what it was given.
    fn built_levels(&self) -> usize {
        match self {
            Value::Array(array) => array.built_levels(),
            Value::Object(object) => object.built_levels(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::Function(_) => 0,
        }
    }
}
