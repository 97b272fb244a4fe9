//! One file per verb.

pub mod export;
pub mod rebuild;
pub mod verify;
