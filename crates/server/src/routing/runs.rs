//! `/runs`: pipelines at their work: where each is, and how it is stopped or goes on after a failure.

mod read;
mod shown;
mod steer;

pub(crate) use read::{list, read};
pub(crate) use shown::{Extent, run_of, shown};
pub(crate) use steer::{cancel, retry};
