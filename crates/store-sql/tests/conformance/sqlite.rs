//! What only the store on a file promises.

mod corruption;
mod file;
mod ledger;
mod opening;
mod rebuilding;
mod verifying;
mod versions;
mod writer;
