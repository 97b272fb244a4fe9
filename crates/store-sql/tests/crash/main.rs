//! Crashes: what was acknowledged is there after a kill, a power loss, a failed sync and a full disk.
//!
//! `LONGHAUL_IMAGES` says how many power losses are looked at, `LONGHAUL_KILLS` how many processes are killed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

mod checkpoints;
mod child;
mod full_disk;
#[cfg(target_os = "linux")]
mod idle;
mod images;
mod kills;
mod life;
mod on_disk;
mod promises;
mod syncs;
mod upgrades;
mod watermark;
mod workshop;
