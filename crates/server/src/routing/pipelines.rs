//! `/pipelines`: what follows which event here; started by name, and read anew from their files.

mod read;
mod reload;
mod start;

pub(crate) use read::{list, read};
pub(crate) use reload::{Reload, reload};
pub(crate) use start::start;
