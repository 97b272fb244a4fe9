//! What only the store on a server promises.

mod artifacts;
mod counts;
mod database;
mod drill;
mod ledger;
mod losses;
mod nodes;
mod opening;
mod plans;
mod proxy;
mod restarts;
mod versions;
mod walks;
