//! A parsed template: one node per value of the template's JSON, operators recognised, expressions compiled.
//!
//! What is wrong with a part of a template only matters when a render comes to it, so a node may be a fault, or
//! hold one in place of the piece that could not be read.

use serde_json::Value as Json;

use crate::error::Error;
use crate::expression::Program;
use crate::render::Transform;

#[derive(Debug)]
pub(crate) enum Node {
    /// Needs no evaluation, and neither does anything in it.
    Literal(Json),
    /// A string with `${..}` in it.
    Interpolation(Interpolation),
    Array(Vec<Node>),
    /// A plain object, in the order of its keys.
    Object(Vec<Entry>),
    Operator(Box<Operator>),
    /// Cannot be rendered.
    Fault(Error),
}

#[derive(Debug)]
pub(crate) struct Entry {
    /// The key as it stands in the template.
    pub(crate) written: Box<str>,
    pub(crate) key: Key,
    pub(crate) value: Node,
}

#[derive(Debug)]
pub(crate) enum Key {
    Fixed(Box<str>),
    Interpolation(Interpolation),
    Fault(Error),
}

/// The pieces of a string, in order. A fault is always the last: nothing behind it is looked at.
#[derive(Debug)]
pub(crate) struct Interpolation {
    pub(crate) pieces: Vec<Piece>,
}

#[derive(Debug)]
pub(crate) enum Piece {
    Text(Box<str>),
    /// An expression, with its own text for messages.
    Expression {
        program: Program,
        source: Box<str>,
    },
    Fault(Error),
}

/// A compiled expression, or why there is none.
pub(crate) type Expression = Result<Program, Error>;

#[derive(Debug)]
pub(crate) enum Operator {
    Eval(Expression),
    If { condition: Expression, then: Option<Node>, otherwise: Option<Node> },
    Switch { cases: Vec<Case>, default: Option<Node> },
    Match(Vec<Case>),
    Let { names: Node, body: Option<Node> },
    Map { over: Node, each: Result<Each, Error> },
    Reduce { over: Node, reduction: Result<Reduction, Error> },
    Find { over: Node, each: Result<Condition, Error> },
    Sort { over: Node, by: Result<Option<Condition>, Error> },
    FromNow { offset: Node, from: Option<Node> },
    Apply(&'static Transform, Node),
}

/// A branch of `$switch` or `$match`.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) written: Box<str>,
    pub(crate) condition: Expression,
    pub(crate) value: Node,
}

/// `each(..)` with a template.
#[derive(Debug)]
pub(crate) struct Each {
    pub(crate) written: Box<str>,
    pub(crate) variables: Variables,
    pub(crate) body: Node,
}

/// `each(..)` of a `$reduce`, with the initial value, which is not a template.
#[derive(Debug)]
pub(crate) struct Reduction {
    pub(crate) initial: Json,
    pub(crate) accumulator: Box<str>,
    pub(crate) each: Each,
}

/// `each(..)` or `by(..)` with an expression.
#[derive(Debug)]
pub(crate) struct Condition {
    pub(crate) written: Box<str>,
    pub(crate) variables: Variables,
    pub(crate) expression: Expression,
}

/// The names that an element, and its index or key, go by.
#[derive(Debug)]
pub(crate) struct Variables {
    pub(crate) value: Box<str>,
    pub(crate) index: Option<Box<str>>,
}
