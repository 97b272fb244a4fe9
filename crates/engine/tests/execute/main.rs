//! `execute` and `attend`: what is decided together is written together, once, whatever the store answers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

mod attend;
mod checkpoints;
mod consequences;
mod dispatch;
mod operations;
mod outcomes;
mod plugin_state;
mod scripted;
mod world;
