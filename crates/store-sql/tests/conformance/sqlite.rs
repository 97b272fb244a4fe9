//! What only the store on a file promises.

mod corruption;
mod counts;
mod damage;
mod file;
mod ledger;
mod opening;
mod rebuilding;
mod verifying;
mod versions;
mod writer;
