//! What every store promises, shown on each of them, and what the stores on a file and on a server promise besides.
//!
//! A new store is one variant in `subject.rs`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

mod agenda;
mod asks;
mod bodies;
mod checkpoints;
mod clock;
mod commits;
mod fences;
mod given;
mod keys;
mod limits;
mod nodes;
mod operations;
mod peers;
mod plugin_state;
mod postgres;
mod reads;
mod records;
mod retirement;
mod sqlite;
mod subject;
mod tokens;
