//! The judge: what was asked and answered, what the store says of it, and what should not be.

pub(crate) mod checks;
pub(crate) mod finding;
pub(crate) mod history;
pub(crate) mod inspect;
pub(crate) mod oracle;
