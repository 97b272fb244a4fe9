//! The expression language inside templates: text is tokenised and parsed once into a flat program for a stack
//! machine, and run as often as wanted.
//!
//! A flat program has no depth, so running it, comparing it and dropping it need no recursion; only the parser
//! recurses, once per nesting level, within the depth budget.

mod access;
mod machine;
mod operations;
mod parser;
mod precedence;
mod program;
mod token;

pub(crate) use machine::Machine;
pub(crate) use parser::{parse_all, parse_until_brace};
pub use precedence::INFIX;
pub(crate) use program::{Instruction, Program};
