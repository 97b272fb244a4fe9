//! The operators of expressions: what each takes, and the official words for what it does not.

use std::cmp::Ordering;

use super::program::{Binary, Unary};
use crate::error::{Error, Outcome};
use crate::meter::Meter;
use crate::number::Number;
use crate::value::{Text, Value, equal};

pub(super) fn unary<'r>(operation: Unary, operand: &Value<'r>) -> Outcome<Value<'r>> {
    match (operation, operand) {
        (Unary::Not, operand) => Ok(Value::Bool(!operand.is_truthy())),
        (Unary::Plus, Value::Number(number)) => Ok(Value::Number(*number)),
        (Unary::Minus, Value::Number(number)) => finite("unary -", number.negate()),
        (Unary::Plus, _) => Err(Error::interpreter("unary + expects number")),
        (Unary::Minus, _) => Err(Error::interpreter("unary - expects number")),
    }
}

pub(super) fn binary<'r>(
    operation: Binary,
    left: &Value<'r>,
    right: &Value<'r>,
    meter: &mut Meter,
) -> Outcome<Value<'r>> {
    match operation {
        Binary::Add => match (left, right) {
            (Value::Number(left), Value::Number(right)) => finite("+", left.plus(*right)),
            (Value::Text(left), Value::Text(right)) => Ok(Value::Text(Text::joined(left, right, meter)?)),
            _ => Err(expects("+", "numbers/strings")),
        },
        Binary::Subtract => arithmetic("-", left, right, Number::minus),
        Binary::Multiply => arithmetic("*", left, right, Number::times),
        Binary::Divide => divide(left, right),
        Binary::Power => arithmetic("**", left, right, Number::to_the_power_of),
        Binary::Less => ordered("<", left, right, meter, Ordering::is_lt),
        Binary::LessEqual => ordered("<=", left, right, meter, Ordering::is_le),
        Binary::Greater => ordered(">", left, right, meter, Ordering::is_gt),
        Binary::GreaterEqual => ordered(">=", left, right, meter, Ordering::is_ge),
        Binary::Equal => Ok(Value::Bool(equal(left, right, meter)?)),
        Binary::NotEqual => Ok(Value::Bool(!equal(left, right, meter)?)),
        Binary::In => contained(left, right, meter).map(Value::Bool),
    }
}

fn arithmetic<'r>(
    symbol: &str,
    left: &Value<'r>,
    right: &Value<'r>,
    compute: fn(Number, Number) -> Option<Number>,
) -> Outcome<Value<'r>> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => finite(symbol, compute(*left, *right)),
        _ => Err(expects(symbol, "number")),
    }
}

fn divide<'r>(left: &Value<'r>, right: &Value<'r>) -> Outcome<Value<'r>> {
    match (left, right) {
        (Value::Number(_), Value::Number(divisor)) if divisor.is_zero() => {
            Err(Error::interpreter("division by zero"))
        }
        _ => arithmetic("/", left, right, Number::divided_by),
    }
}

fn ordered<'r>(
    symbol: &str,
    left: &Value<'r>,
    right: &Value<'r>,
    meter: &mut Meter,
    holds: fn(Ordering) -> bool,
) -> Outcome<Value<'r>> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => Ok(Value::Bool(holds(left.compare(*right)))),
        (Value::Text(left), Value::Text(right)) => {
            meter.text(left.len().min(right.len()))?;
            Ok(Value::Bool(holds((**left).cmp(&**right))))
        }
        _ => Err(expects(symbol, "numbers/strings")),
    }
}

fn contained(left: &Value<'_>, right: &Value<'_>, meter: &mut Meter) -> Outcome<bool> {
    match (left, right) {
        (Value::Text(part), Value::Text(whole)) => {
            meter.text(part.len() + whole.len())?;
            Ok(whole.contains(&**part))
        }
        (Value::Text(key), Value::Object(object)) => Ok(object.get(key, meter)?.is_some()),
        (value, Value::Array(array)) => {
            for item in array.iter() {
                if equal(value, &item, meter)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        (_, Value::Object(_)) => Err(expects("in-object", "string on left side")),
        (_, Value::Text(_)) => Err(expects("in-string", "string on left side")),
        (_, Value::Null | Value::Bool(_) | Value::Number(_) | Value::Function(_)) => {
            Err(expects("in", "Array, string, or object on right side"))
        }
    }
}

/// JSON has no infinity, and neither has a result.
fn finite<'r>(symbol: &str, number: Option<Number>) -> Outcome<Value<'r>> {
    match number {
        Some(number) => Ok(Value::Number(number)),
        None => Err(Error::interpreter(format!("the result of {symbol} is not a finite number"))),
    }
}

fn expects(symbol: &str, expected: &str) -> Error {
    Error::interpreter(format!("infix: {symbol} expects {expected} {symbol} {expected}"))
}
