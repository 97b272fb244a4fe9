//! Real SQLite on the in-memory disk: several connections, crashes at every operation, faults.

mod connections;
mod crashes;
mod failures;
mod faults;
mod notebook;
