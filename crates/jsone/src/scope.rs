//! Which value a name has: the innermost operator that binds it, else the context, else the host's functions,
//! else the language's own. Bindings end with their operator. A name is paid for by what is searched for it.

use serde_json::Value as Json;

use crate::builtins::Builtin;
use crate::context::Context;
use crate::error::Outcome;
use crate::functions::Functions;
use crate::meter::Meter;
use crate::now::Now;
use crate::value::{Function, Object, Text, Value};

pub(crate) struct Scope<'r> {
    bindings: Vec<Binding<'r>>,
    context: &'r Context<'r>,
    functions: &'r Functions,
    now: &'r Now,
}

enum Binding<'r> {
    /// A variable of `each(..)` or `by(..)`.
    Variable(&'r str, Value<'r>),
    /// All names of a `$let`.
    Names(Object<'r>),
}

/// The state of a scope to return to.
#[derive(Clone, Copy)]
pub(crate) struct Mark(usize);

impl<'r> Scope<'r> {
    pub(crate) fn new(context: &'r Context<'r>, functions: &'r Functions, now: &'r Now) -> Scope<'r> {
        Scope { bindings: Vec::new(), context, functions, now }
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark(self.bindings.len())
    }

    /// Forgets every binding since the mark.
    pub(crate) fn leave(&mut self, mark: Mark) {
        self.bindings.truncate(mark.0);
    }

    pub(crate) fn bind(&mut self, name: &'r str, value: Value<'r>) {
        self.bindings.push(Binding::Variable(name, value));
    }

    pub(crate) fn bind_all(&mut self, names: Object<'r>) {
        self.bindings.push(Binding::Names(names));
    }

    pub(crate) fn value(&self, name: &str, meter: &mut Meter) -> Outcome<Option<Value<'r>>> {
        for binding in self.bindings.iter().rev() {
            let found = match binding {
                Binding::Variable(bound, value) => {
                    meter.search(1, name.len())?;
                    (*bound == name).then(|| value.clone())
                }
                Binding::Names(names) => names.get(name, meter)?,
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        self.outermost(name, meter)
    }

    /// The reference time of `$fromNow` and `fromNow`, if the name still stands for a string.
    pub(crate) fn now(&self, meter: &mut Meter) -> Outcome<Option<Text<'r>>> {
        let now = self.value("now", meter)?;
        Ok(if let Some(Value::Text(text)) = now { Some(text) } else { None })
    }

    fn outermost(&self, name: &str, meter: &mut Meter) -> Outcome<Option<Value<'r>>> {
        meter.search(self.context.len(), name.len())?;
        let given: Option<&'r Json> = self.context.get(name);
        if let Some(json) = given {
            return Ok(Some(Value::given(json)));
        }
        // The built-ins are few and short, and are found as if they were among the host's functions.
        meter.search(self.functions.len(), name.len())?;
        if let Some(function) = self.functions.named(name) {
            return Ok(Some(Value::Function(Function::Host(function))));
        }
        if name == "now" {
            return Ok(Some(Value::Text(Text::Given(self.now.as_str()))));
        }
        Ok(Builtin::named(name).map(|builtin| Value::Function(Function::Builtin(builtin))))
    }
}
