//! What a render may cost, and what it has cost so far.

pub(crate) mod json_length;
pub(crate) mod limits;
pub(crate) mod measure;
pub(crate) mod meter;
