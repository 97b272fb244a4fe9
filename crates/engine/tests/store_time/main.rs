//! The time of a store that nodes share, on a real PostgreSQL whose clock the test sets: steps both ways, glitches, no majority, deaths.
//!
//! Nothing here waits for time to pass: the server's clock and the boot-time clock of each node are what the test says.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

mod deaths;
mod driven;
mod halves;
mod operators;
mod restarts;
mod steps;
