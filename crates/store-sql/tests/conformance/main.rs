//! What every store promises, shown on each of them, and what the store on a file promises besides.
//!
//! A new store is one line in `subject.rs`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

mod agenda;
mod bodies;
mod commits;
mod fences;
mod given;
mod keys;
mod limits;
mod operations;
mod reads;
mod retirement;
mod sqlite;
mod subject;
mod tokens;
