//! Executors that are invoked for a result or a handle, and work that goes on at services.

pub(crate) mod callback;
pub(crate) mod capabilities;
pub(crate) mod deferred;
pub(crate) mod orphans;
pub(crate) mod sensorium;
