//! Facts as text: what one release wrote, every later one reads, word for word.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

mod cancel_samples;
mod codec;
mod names;
mod releases;
mod routing_samples;
mod samples;
