//! Pipelines: what follows which event, as people write it in YAML files.
//!
//! Everything here is pure or reads files: nothing runs, nothing is stored.

mod baggage;
mod path;
mod predicate;
mod template;
mod written;

pub use baggage::{Baggage, BaggageError, MAX_CONTEXT_BYTES};
pub use path::{Path, Roots};
pub use predicate::{Predicate, PredicateError};
pub use template::{TemplateError, With};
