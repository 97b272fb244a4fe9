//! What holds for every history, tried over random ones.
//!
//! `world.rs` decides commands with all that follows from them, as one step; `orders.rs` makes up commands. The
//! inputs are the same in every run; `LONGHAUL_CASES` (512 by default) tries more of them. A batch in which too
//! little happened fails: it would prove nothing.

mod clamps;
mod history;
mod orders;
mod together;
mod world;
