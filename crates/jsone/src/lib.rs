//! A JSON-e evaluator that renders what strangers wrote, within budgets and without surprises.
//!
#![doc = include_str!("../README.md")]
//!
//! ## The code
//!
//! Read in this order: [`Template`] (`template.rs`), `compile.rs` (JSON to `node.rs`), `expression.rs` (text to a
//! flat program, and the machine that runs it), `render.rs` (nodes to `value.rs`), `budget/meter.rs` (the budgets).
//!
//! - A template is measured without recursion before anything else is done with it (`budget/measure.rs`).
//! - Mistakes do not stop compiling: they wait in the node where a render would meet them.
//! - Values borrow from the template and the context and share what is built, so passing one on is cheap; every
//!   operation that looks at all of a value pays a step for each part (`value/`).
//! - Nothing here does I/O, reads a clock or keeps state: `clippy.toml` beside this crate refuses it.

pub mod basic_helpers;
mod budget;
mod builtins;
mod compile;
mod context;
mod error;
mod expression;
mod functions;
mod identifier;
pub mod language;
mod node;
mod reads;
mod render;
mod scope;
mod template;
mod time;
mod value;
pub(crate) use budget::{json_length, limits, measure, meter};
pub(crate) use error::{excerpt, location};
pub(crate) use time::{from_now, instant, now};
pub(crate) use value::number;

pub use builtins::BUILTINS;
pub use compile::OPERATORS;
pub use context::Context;
pub use error::{Class, Error, Exceeded, Fault};
pub use expression::INFIX;
pub use functions::{Arity, Functions, Pure, RegisterError};
pub use limits::{BYTES_PER_STEP, Budget, DEPTH_CEILING, Limits};
pub use location::{Location, Segment};
pub use meter::Usage;
pub use now::Now;
pub use number::compare_numbers;
pub use template::Template;
