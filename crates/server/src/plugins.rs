//! Plugins as Ductile's clients ask for them, and signed webhooks.

pub(crate) mod ductile;
pub(crate) mod webhooks;
