//! What the engine takes from the machine: time, randomness and tasks. Nothing else reads a clock or draws a number.

pub(crate) mod clock;
pub(crate) mod ids;
pub(crate) mod spawn;
pub(crate) mod timekeeper;
