//! Functions that the host lends to templates.
//!
//! A host function is a plain `fn` over JSON: it captures nothing, so it can keep no state between calls and
//! read nothing but its arguments. What it returns is held to the same budgets as any built value. Its own work
//! is not counted: only the helpers of this crate pay for theirs.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value as Json;

use crate::builtins::Builtin;
use crate::error::{Error, Outcome};
use crate::excerpt::excerpt;
use crate::identifier::is_identifier;
use crate::limits::{Budget, Limits};
use crate::measure;
use crate::meter::Meter;
use crate::value::{Purpose, Value, to_json};

/// A pure function over JSON. The text of a refusal becomes the message of a `BuiltinError`.
///
/// Copying its arguments and taking over its answer is paid for in steps, what it does in between is not: it
/// should take time in proportion to both. A panic in it is not caught: it passes through the render to the
/// caller, so refuse what cannot be computed.
pub type Pure = fn(&[Json]) -> Result<Json, String>;

/// A pure function that pays for its own work, before it does it.
pub(crate) type Metered = fn(&[Json], &mut Meter) -> Result<Json, Refused>;

/// Why a metered function gave no answer.
pub(crate) enum Refused {
    /// What is wrong with its arguments.
    Reason(String),
    /// It could not pay.
    Exceeded(Error),
}

/// How many arguments a function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arity {
    /// The fewest.
    pub least: usize,
    /// The most.
    pub most: usize,
}

impl Arity {
    /// Just so many.
    pub const fn exactly(count: usize) -> Arity {
        Arity { least: count, most: count }
    }
}

/// The host functions that a render may call, by name.
#[derive(Clone, Debug, Default)]
pub struct Functions {
    by_name: BTreeMap<String, HostFunction>,
}

/// Why a function cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// No expression could name it.
    #[error("{0:?} is not an identifier: use letters, digits and underscores")]
    NotAnIdentifier(String),
    /// A built-in or an earlier function has that name.
    #[error("{0:?} is taken: choose another name")]
    Taken(String),
}

impl Functions {
    /// No functions beside the built-ins.
    pub fn none() -> Functions {
        Functions::default()
    }

    /// Adds a function. A context value of the same name hides it, as it would hide a built-in.
    pub fn register(&mut self, name: &str, arity: Arity, run: Pure) -> Result<(), RegisterError> {
        self.add(name, arity, Run::Pure(run))
    }

    pub(crate) fn add(&mut self, name: &str, arity: Arity, run: Run) -> Result<(), RegisterError> {
        if !is_identifier(name) {
            return Err(RegisterError::NotAnIdentifier(excerpt(name)));
        }
        if name == "now" || Builtin::named(name).is_some() || self.by_name.contains_key(name) {
            return Err(RegisterError::Taken(excerpt(name)));
        }
        self.by_name.insert(name.to_owned(), HostFunction { name: name.to_owned(), arity, run });
        Ok(())
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_name.len()
    }

    pub(crate) fn named(&self, name: &str) -> Option<&HostFunction> {
        self.by_name.get(name)
    }
}

#[derive(Clone)]
pub(crate) struct HostFunction {
    name: String,
    arity: Arity,
    run: Run,
}

#[derive(Clone, Copy)]
pub(crate) enum Run {
    Pure(Pure),
    Metered(Metered),
}

impl HostFunction {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn call<'r>(&self, arguments: &[Value<'r>], meter: &mut Meter) -> Outcome<Value<'r>> {
        if !(self.arity.least..=self.arity.most).contains(&arguments.len()) {
            return Err(Error::arguments(&self.name));
        }
        let arguments = arguments
            .iter()
            .map(|argument| to_json(argument, Purpose::Argument, meter))
            .collect::<Outcome<Vec<Json>>>()?;
        let refused = |reason: String| Error::builtin(format!("{}: {}", self.name, excerpt(&reason)));
        let returned = match self.run {
            Run::Pure(run) => run(&arguments).map_err(refused)?,
            Run::Metered(run) => run(&arguments, meter).map_err(|refusal| match refusal {
                Refused::Reason(reason) => refused(reason),
                Refused::Exceeded(error) => error,
            })?,
        };
        let limits = Limits { depth: meter.levels(), ..Limits::default() };
        // Only the depth is checked here: it must be known before recursing. Adopting it counts the rest.
        if let Err(error) = measure::check(&returned, &limits, usize::MAX, Budget::StringBytes) {
            measure::dismantle(returned);
            return Err(error);
        }
        Value::adopted(returned, meter)
    }
}

impl From<String> for Refused {
    fn from(reason: String) -> Refused {
        Refused::Reason(reason)
    }
}

impl From<&str> for Refused {
    fn from(reason: &str) -> Refused {
        Refused::Reason(reason.to_owned())
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused::Exceeded(error)
    }
}

impl fmt::Debug for HostFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({}..={})", self.name, self.arity.least, self.arity.most)
    }
}
