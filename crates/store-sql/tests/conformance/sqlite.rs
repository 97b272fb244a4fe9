//! What only the store on a file promises.

mod checkpoints;
mod clock;
mod corruption;
mod counts;
mod damage;
mod file;
mod ledger;
mod losses;
mod opening;
mod productions;
mod rebuilding;
mod verifying;
mod versions;
mod writer;
