//! Moments in UTC, and the one `now` of a render.

pub(crate) mod from_now;
pub(crate) mod instant;
pub(crate) mod now;
