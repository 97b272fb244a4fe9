//! What comes of attempts and of work outside, and what of it is written down.

pub(crate) mod echoed_code;
pub(crate) mod echoed_text;
pub(crate) mod hint_text;
pub(crate) mod kept;
pub(crate) mod lost;
pub(crate) mod plugin_state;
pub(crate) mod produced;
pub(crate) mod stale_reports;
