//! The functions that the language itself brings. Each is pure, and pays for its work before it does it.

mod numbers;
pub(crate) mod strings;

use std::cmp::Ordering;

use crate::error::{Error, Outcome};
use crate::from_now::from_now;
use crate::meter::Meter;
use crate::number::Number;
use crate::scope::Scope;
use crate::value::{Array, Text, Value};

/// One of the functions: what it is called and what it does. It answers `None` for arguments that it does not take.
pub(crate) struct Builtin {
    pub(crate) name: &'static str,
    run: Run,
}

type Run = for<'r> fn(&[Value<'r>], &Scope<'r>, &mut Meter) -> Outcome<Option<Value<'r>>>;

const FUNCTIONS: &[Builtin] = &[
    Builtin { name: "abs", run: |given, _, _| Ok(numbers::with_one(given, Number::absolute)) },
    Builtin { name: "ceil", run: |given, _, _| Ok(numbers::with_one(given, Number::ceiling)) },
    Builtin { name: "defined", run: defined },
    Builtin { name: "floor", run: |given, _, _| Ok(numbers::with_one(given, Number::floor)) },
    Builtin { name: "fromNow", run: from_now_of },
    Builtin { name: "join", run: |given, _, meter| strings::join(given, meter) },
    Builtin { name: "len", run: |given, _, meter| strings::len(given, meter) },
    Builtin { name: "lowercase", run: |given, _, meter| strings::mapped(given, meter, str::to_lowercase) },
    Builtin { name: "lstrip", run: |given, _, meter| strings::stripped(given, meter, str::trim_start) },
    Builtin { name: "max", run: |given, _, _| Ok(numbers::extreme(given, Ordering::Greater)) },
    Builtin { name: "min", run: |given, _, _| Ok(numbers::extreme(given, Ordering::Less)) },
    Builtin { name: "number", run: |given, _, meter| strings::number(given, meter) },
    Builtin { name: "range", run: |given, _, meter| numbers::range(given, meter) },
    Builtin { name: "rstrip", run: |given, _, meter| strings::stripped(given, meter, str::trim_end) },
    Builtin { name: "split", run: |given, _, meter| strings::split(given, meter) },
    Builtin { name: "sqrt", run: |given, _, _| Ok(numbers::with_one(given, Number::square_root)) },
    Builtin { name: "str", run: |given, _, meter| strings::str(given, meter) },
    Builtin { name: "strip", run: |given, _, meter| strings::stripped(given, meter, str::trim) },
    Builtin { name: "typeof", run: |given, _, _| Ok(type_of(given)) },
    Builtin { name: "uppercase", run: |given, _, meter| strings::mapped(given, meter, str::to_uppercase) },
];

/// Those that say so themselves where they are given nothing.
const NEED_AN_ARGUMENT: [&str; 4] = ["fromNow", "max", "min", "number"];

/// The names of all built-in functions.
pub const BUILTINS: [&str; FUNCTIONS.len()] = {
    let mut names = [""; FUNCTIONS.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = FUNCTIONS[index].name;
        index += 1;
    }
    names
};

impl Builtin {
    pub(crate) fn named(name: &str) -> Option<&'static Builtin> {
        FUNCTIONS.iter().find(|function| function.name == name)
    }

    pub(crate) fn call<'r>(
        &self,
        arguments: &[Value<'r>],
        scope: &Scope<'r>,
        meter: &mut Meter,
    ) -> Outcome<Value<'r>> {
        let name = self.name;
        if arguments.is_empty() && NEED_AN_ARGUMENT.contains(&name) {
            let told = format!("invalid arguments to builtin: {name}: expected at least 1 arguments");
            return Err(Error::builtin(told));
        }
        (self.run)(arguments, scope, meter)?.ok_or_else(|| Error::arguments(name))
    }
}

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
            assert_eq!(Builtin::named(name).map(|function| function.name), Some(name));
        }
        assert!(Builtin::named("eval").is_none());
    }
}
