//! The zoo of the slow service behind connectors, over the whole engine: every manner comes to its one written outcome, in time and
//! within the host's bounds.

mod canary;
mod flips;
mod garbage;
mod given;
mod hung;
mod kills;
mod manners;
mod restart;
mod variants;
