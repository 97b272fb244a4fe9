//! What moves a run: the heap of events, the clock that follows it, and the one source of chance.

pub(crate) mod clock;
pub(crate) mod heap;
pub(crate) mod rng;
pub(crate) mod slab;
