//! Jobs as other systems ask for them: deferred work, Sensorium's directives and Ductile's endpoints.

pub mod deferred;
pub mod ductile;
pub mod sensorium;
