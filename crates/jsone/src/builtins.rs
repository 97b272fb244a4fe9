//! The functions that the language itself brings. Each is pure, and pays for its work before it does it.

mod numbers;
pub(crate) mod strings;

use crate::error::{Error, Outcome};
use crate::from_now::from_now;
use crate::meter::Meter;
use crate::number::Number;
use crate::scope::Scope;
use crate::value::{Array, Text, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    Abs,
    Ceil,
    Defined,
    Floor,
    FromNow,
    Join,
    Len,
    Lowercase,
    Lstrip,
    Max,
    Min,
    Number,
    Range,
    Rstrip,
    Split,
    Sqrt,
    Str,
    Strip,
    Typeof,
    Uppercase,
}

/// The names of all built-in functions.
pub const BUILTINS: [&str; 20] = [
    "abs",
    "ceil",
    "defined",
    "floor",
    "fromNow",
    "join",
    "len",
    "lowercase",
    "lstrip",
    "max",
    "min",
    "number",
    "range",
    "rstrip",
    "split",
    "sqrt",
    "str",
    "strip",
    "typeof",
    "uppercase",
];

impl Builtin {
    pub(crate) fn named(name: &str) -> Option<Builtin> {
        Some(match name {
            "abs" => Builtin::Abs,
            "ceil" => Builtin::Ceil,
            "defined" => Builtin::Defined,
            "floor" => Builtin::Floor,
            "fromNow" => Builtin::FromNow,
            "join" => Builtin::Join,
            "len" => Builtin::Len,
            "lowercase" => Builtin::Lowercase,
            "lstrip" => Builtin::Lstrip,
            "max" => Builtin::Max,
            "min" => Builtin::Min,
            "number" => Builtin::Number,
            "range" => Builtin::Range,
            "rstrip" => Builtin::Rstrip,
            "split" => Builtin::Split,
            "sqrt" => Builtin::Sqrt,
            "str" => Builtin::Str,
            "strip" => Builtin::Strip,
            "typeof" => Builtin::Typeof,
            "uppercase" => Builtin::Uppercase,
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        BUILTINS[self as usize]
    }

    pub(crate) fn call<'r>(
        self,
        arguments: &[Value<'r>],
        scope: &Scope<'r>,
        meter: &mut Meter,
    ) -> Outcome<Value<'r>> {
        self.check_count(arguments.len())?;
        let result = match self {
            Builtin::Abs => numbers::with_one(arguments, Number::absolute),
            Builtin::Ceil => numbers::with_one(arguments, Number::ceiling),
            Builtin::Floor => numbers::with_one(arguments, Number::floor),
            Builtin::Sqrt => numbers::with_one(arguments, Number::square_root),
            Builtin::Max => numbers::largest(arguments),
            Builtin::Min => numbers::smallest(arguments),
            Builtin::Range => numbers::range(arguments, meter)?,
            Builtin::Number => strings::number(arguments, meter)?,
            Builtin::Join => strings::join(arguments, meter)?,
            Builtin::Split => strings::split(arguments, meter)?,
            Builtin::Len => strings::len(arguments, meter)?,
            Builtin::Lowercase => strings::mapped(arguments, meter, str::to_lowercase)?,
            Builtin::Uppercase => strings::mapped(arguments, meter, str::to_uppercase)?,
            Builtin::Strip => strings::stripped(arguments, meter, str::trim)?,
            Builtin::Lstrip => strings::stripped(arguments, meter, str::trim_start)?,
            Builtin::Rstrip => strings::stripped(arguments, meter, str::trim_end)?,
            Builtin::Str => strings::str(arguments, meter)?,
            Builtin::Typeof => type_of(arguments),
            Builtin::Defined => defined(arguments, scope, meter)?,
            Builtin::FromNow => from_now_of(arguments, scope, meter)?,
        };
        result.ok_or_else(|| Error::arguments(self.name()))
    }

    fn check_count(self, count: usize) -> Outcome<()> {
        match self {
            Builtin::Max | Builtin::Min | Builtin::Number | Builtin::FromNow if count == 0 => {
                let name = self.name();
                Err(Error::builtin(format!(
                    "invalid arguments to builtin: {name}: expected at least 1 arguments"
                )))
            }
            Builtin::Max
            | Builtin::Min
            | Builtin::Abs
            | Builtin::Ceil
            | Builtin::Defined
            | Builtin::Floor
            | Builtin::FromNow
            | Builtin::Join
            | Builtin::Len
            | Builtin::Lowercase
            | Builtin::Lstrip
            | Builtin::Number
            | Builtin::Range
            | Builtin::Rstrip
            | Builtin::Split
            | Builtin::Sqrt
            | Builtin::Str
            | Builtin::Strip
            | Builtin::Typeof
            | Builtin::Uppercase => Ok(()),
        }
    }
}

// Each of the functions answers `None` for arguments that it does not take.

fn type_of<'r>(arguments: &[Value<'r>]) -> Option<Value<'r>> {
    let [value] = arguments else { return None };
    Some(Value::Text(Text::Given(value.type_name())))
}

fn defined<'r>(arguments: &[Value<'r>], scope: &Scope<'r>, meter: &mut Meter) -> Outcome<Option<Value<'r>>> {
    let [Value::Text(name)] = arguments else { return Ok(None) };
    Ok(Some(Value::Bool(scope.value(name, meter)?.is_some())))
}

fn from_now_of<'r>(
    arguments: &[Value<'r>],
    scope: &Scope<'r>,
    meter: &mut Meter,
) -> Outcome<Option<Value<'r>>> {
    let (offset, reference) = match arguments {
        [Value::Text(offset)] => (offset, None),
        // As in the other implementations, an empty reference is none.
        [Value::Text(offset), Value::Text(reference)] => {
            (offset, Some(reference).filter(|text| !text.is_empty()))
        }
        _ => return Ok(None),
    };
    let reference = match reference {
        Some(reference) => reference.clone(),
        None => scope.now(meter)?.ok_or_else(|| Error::template("context value `now` must be a string"))?,
    };
    meter.text(offset.len() + reference.len())?;
    Ok(Some(Value::Text(Text::build(&from_now(offset, &reference)?, meter)?)))
}

pub(crate) fn text_of<'r>(text: &str, meter: &mut Meter) -> Outcome<Option<Value<'r>>> {
    Ok(Some(Value::Text(Text::build(text, meter)?)))
}

pub(crate) fn array_of<'r>(items: Vec<Value<'r>>, meter: &mut Meter) -> Outcome<Option<Value<'r>>> {
    Ok(Some(Value::Array(Array::build(items, meter)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_finds_the_function_that_bears_it() {
        for name in BUILTINS {
            assert_eq!(Builtin::named(name).map(Builtin::name), Some(name));
        }
        assert_eq!(Builtin::named("eval"), None);
    }
}
