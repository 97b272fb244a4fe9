//! What is kept beside the records and is no part of the ledger: plain tables, and what may be asked of them.

pub(crate) mod asks;
pub(crate) mod keys;
pub(crate) mod nodes;
pub(crate) mod peers;
pub(crate) mod plugin_state;
pub(crate) mod tokens;
