//! Backup and restore with the real binary: taken under load, restored elsewhere, on either database, and compared.

#[path = "../cli/given.rs"]
#[allow(dead_code, reason = "the command line's tests use the rest")]
mod given;

#[path = "../support/disk.rs"]
mod disk;

mod artifacts;
mod home;
mod interrupted;
mod load;
mod refused;
mod replaced;
mod room;
mod under_load;
