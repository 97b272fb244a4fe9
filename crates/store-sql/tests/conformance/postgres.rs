//! What only the store on a server promises.

mod database;
mod ledger;
mod losses;
mod nodes;
mod opening;
mod proxy;
mod versions;
mod walks;
