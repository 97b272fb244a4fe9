//! A JSON-e evaluator that renders what strangers wrote, within budgets and without surprises.
//!
#![doc = include_str!("../README.md")]
//!
//! ## The code
//!
//! Read in this order: [`Template`] (`template.rs`), `compile.rs` (JSON to `node.rs`), `expression.rs` (text to a
//! flat program, and the machine that runs it), `render.rs` (nodes to `value.rs`), `meter.rs` (the budgets).
//!
//! - A template is measured without recursion before anything else is done with it (`measure.rs`).
//! - Mistakes do not stop compiling: they wait in the node where a render would meet them.
//! - Values borrow from the template and the context and share what is built, so passing one on is cheap; every
//!   operation that looks at all of a value pays a step for each part (`value/`).
//! - Nothing here does I/O, reads a clock or keeps state: `clippy.toml` beside this crate refuses it.

#[cfg(feature = "helpers")]
pub mod basic_helpers;
mod builtins;
mod compile;
mod context;
mod error;
mod excerpt;
mod expression;
mod from_now;
mod functions;
mod identifier;
mod instant;
mod json_length;
pub mod language;
mod limits;
mod location;
mod measure;
mod meter;
mod node;
mod now;
mod number;
mod reads;
mod render;
mod scope;
mod template;
mod value;

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
pub use template::Template;
