//! Records as the wire shows them: typed structs over raw text, no tree of values in between.

mod bodies;
pub(crate) mod clock_text;
mod execution;
pub(crate) mod limit;
mod outside;
mod provenance;
mod raw_object;
mod status;

pub(crate) use bodies::{Bodies, OF_STATUS};
pub(crate) use execution::DEFAULT_EXECUTION;
pub(crate) use outside::{awaited, outside, with_words};
pub(crate) use provenance::{end_provenance, released};
pub(crate) use raw_object::{RawObject, json_or_text, raw};
pub(crate) use status::{Extent, status, summary};
