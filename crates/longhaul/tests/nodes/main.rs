//! Several nodes of the real binary on one PostgreSQL: any of them may die, pause or be cut off, and nothing is lost or done twice.
//!
//! Leases are as short as they may be, half a minute: that is how long a take-over takes.

#[path = "../cli/given.rs"]
#[allow(dead_code, reason = "the command line's tests use the rest")]
mod given;

mod clock;
mod cluster;
mod kills;
mod lanes;
mod lists;
mod losses;
mod proxy;
mod repeats;
mod routing;
mod together;
mod volatile;
mod workers;
mod workspaces;
