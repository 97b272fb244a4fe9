//! What the engine takes from the machine: time, randomness, tasks and locks. Nothing else reads a clock or draws a number.

pub(crate) mod clock;
pub(crate) mod ids;
pub(crate) mod locked;
pub(crate) mod spawn;
pub(crate) mod timekeeper;
