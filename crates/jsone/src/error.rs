//! What can go wrong, in two kinds: the template is at fault, or it asked for more than its budget.
//! Both say where. Neither carries a value of the context beyond a short excerpt in the message.

pub(crate) mod excerpt;
pub(crate) mod location;

use std::fmt;

use crate::excerpt::excerpt;
use crate::limits::Budget;
use crate::location::{Location, Segment};

/// Why a template was refused or could not be rendered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The template, or what it was given, breaks a rule of the language.
    #[error("{0}")]
    Fault(Box<Fault>),
    /// A limit was reached. The same input reaches it on every machine.
    #[error("{0}")]
    Budget(Box<Exceeded>),
}

/// The official classes of mistakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// An expression cannot be read.
    Syntax,
    /// An expression cannot be evaluated.
    Interpreter,
    /// An operator or the template around it is wrong.
    Template,
    /// A function was given what it does not take.
    Builtin,
}

/// A mistake against the language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Its official class.
    pub class: Class,
    /// What is wrong, in the words of the official suite where that has words for it.
    pub message: String,
    /// Where.
    pub location: Location,
}

/// A budget that did not suffice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exceeded {
    /// Which one.
    pub which: Budget,
    /// What it allowed.
    pub limit: u64,
    /// Where it ran out.
    pub location: Location,
}

pub(crate) type Outcome<T> = Result<T, Error>;

impl Error {
    /// Where in the template it happened.
    pub fn location(&self) -> &Location {
        match self {
            Error::Fault(fault) => &fault.location,
            Error::Budget(exceeded) => &exceeded.location,
        }
    }

    /// The official class, when the template is at fault.
    pub fn class(&self) -> Option<Class> {
        match self {
            Error::Fault(fault) => Some(fault.class),
            Error::Budget(_) => None,
        }
    }

    /// The budget, when one was exceeded.
    pub fn budget(&self) -> Option<Budget> {
        match self {
            Error::Fault(_) => None,
            Error::Budget(exceeded) => Some(exceeded.which),
        }
    }

    pub(crate) fn syntax(message: impl Into<String>) -> Error {
        Error::fault(Class::Syntax, message.into())
    }

    pub(crate) fn interpreter(message: impl Into<String>) -> Error {
        Error::fault(Class::Interpreter, message.into())
    }

    pub(crate) fn template(message: impl Into<String>) -> Error {
        Error::fault(Class::Template, message.into())
    }

    pub(crate) fn builtin(message: impl Into<String>) -> Error {
        Error::fault(Class::Builtin, message.into())
    }

    /// The message that every function gives for arguments that it does not take.
    pub(crate) fn arguments(name: &str) -> Error {
        Error::builtin(format!("invalid arguments to builtin: {}", excerpt(name)))
    }

    pub(crate) fn exceeded(which: Budget, limit: u64) -> Error {
        Error::Budget(Box::new(Exceeded { which, limit, location: Location::default() }))
    }

    /// How much text it holds.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Error::Fault(fault) => fault.message.len() + fault.location.bytes(),
            Error::Budget(exceeded) => exceeded.location.bytes(),
        }
    }

    pub(crate) fn within(mut self, segment: Segment) -> Error {
        self.location_mut().enclose(segment);
        self
    }

    pub(crate) fn within_all(mut self, inwards: &[Segment]) -> Error {
        self.location_mut().enclose_all(inwards);
        self
    }

    pub(crate) fn at(mut self, offset: usize) -> Error {
        self.location_mut().offset_or(offset);
        self
    }

    fn fault(class: Class, message: String) -> Error {
        Error::Fault(Box::new(Fault { class, message, location: Location::default() }))
    }

    fn location_mut(&mut self) -> &mut Location {
        match self {
            Error::Fault(fault) => &mut fault.location,
            Error::Budget(exceeded) => &mut exceeded.location,
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Class::Syntax => "SyntaxError",
            Class::Interpreter => "InterpreterError",
            Class::Template => "TemplateError",
            Class::Builtin => "BuiltinError",
        })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}: {}", self.class, At(&self.location), self.message)
    }
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BudgetError{}: more than {} {}", At(&self.location), self.limit, self.which)
    }
}

struct At<'a>(&'a Location);

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.0.official();
        if path.is_empty() { Ok(()) } else { write!(f, " at {path}") }
    }
}
