//! What only the store on a server promises.

mod anchors;
mod artifacts;
mod checkpoints;
mod counts;
mod database;
mod drill;
mod ledger;
mod losses;
mod nodes;
mod opening;
mod plans;
mod productions;
mod proxy;
mod restarts;
mod versions;
mod walks;
