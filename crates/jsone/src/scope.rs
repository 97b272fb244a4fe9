//! Which value a name has: the innermost operator that binds it, else the context, else the host's functions,
//! else the language's own. Bindings end with their operator.

use serde_json::Value as Json;

use crate::builtins::Builtin;
use crate::context::Context;
use crate::functions::Functions;
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

    pub(crate) fn value(&self, name: &str) -> Option<Value<'r>> {
        for binding in self.bindings.iter().rev() {
            match binding {
                Binding::Variable(bound, value) if *bound == name => return Some(value.clone()),
                Binding::Variable(..) => {}
                Binding::Names(names) => {
                    if let Some(value) = names.get(name) {
                        return Some(value);
                    }
                }
            }
        }
        self.outermost(name)
    }

    /// The reference time of `$fromNow` and `fromNow`, if the name still stands for a string.
    pub(crate) fn now(&self) -> Option<Text<'r>> {
        match self.value("now")? {
            Value::Text(text) => Some(text),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_)
            | Value::Function(_) => None,
        }
    }

    fn outermost(&self, name: &str) -> Option<Value<'r>> {
        let given: Option<&'r Json> = self.context.get(name);
        if let Some(json) = given {
            return Some(Value::given(json));
        }
        if let Some(function) = self.functions.named(name) {
            return Some(Value::Function(Function::Host(function)));
        }
        if name == "now" {
            return Some(Value::Text(Text::Given(self.now.as_str())));
        }
        Builtin::named(name).map(|builtin| Value::Function(Function::Builtin(builtin)))
    }
}
