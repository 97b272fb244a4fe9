//! The statements of each table, and its rows as values.

pub(crate) mod agenda;
pub(crate) mod asks;
pub(crate) mod clock;
pub(crate) mod floor;
pub(crate) mod keys;
pub(crate) mod lists;
pub(crate) mod nodes;
pub(crate) mod operations;
pub(crate) mod peers;
pub(crate) mod plugin_state;
pub(crate) mod records;
pub(crate) mod tallies;
pub(crate) mod tokens;
pub(crate) mod views;
