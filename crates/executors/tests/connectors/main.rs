//! Connectors: the recipes against their recorded exchanges, and connectors over the whole engine against a service on a real socket.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cancels;
mod ends;
mod polls;
mod recipes;
mod secrets;
mod service;
mod submits;
mod world;
mod zoo;
