//! A JSON-e evaluator for templates that strangers wrote.

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
pub use functions::{Arity, Functions, Pure, RegisterError};
pub use limits::{BYTES_PER_STEP, Budget, DEPTH_CEILING, Limits};
pub use location::{Location, Segment};
pub use meter::Usage;
pub use now::Now;
pub use template::Template;
