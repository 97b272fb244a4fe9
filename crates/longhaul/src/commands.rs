//! One file per verb.

pub mod export;
pub mod progress;
pub mod rebuild;
pub mod supervise;
pub mod verify;
