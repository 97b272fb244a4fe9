//! All of JSON-e, each part with an example that `tests/language.rs` runs. Holds no code.
//!
#![doc = include_str!("../LANGUAGE.md")]
