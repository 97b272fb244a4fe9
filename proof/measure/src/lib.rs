//! The measures of `longhaul bench`: what durable work costs, beside the raw database doing the same rows in the same run.
//!
//! `bench.rs` decides what is measured, with how much time, and what it is held to. The deep benches in `proof/bench/` use the same pieces.
//!
//! | file | what it is |
//! | --- | --- |
//! | `bench.rs`, `level.rs` | a whole run, and the levels that it has |
//! | `levels/` | one file per level |
//! | `work.rs`, `line.rs` | what is measured of one kind of work; a figure and the bound that it must keep |
//! | `site.rs`, `books.rs`, `fill.rs` | a store of our own, what stands in it, and finished jobs to fill it with |
//! | `cycle.rs` | jobs through `execute`, in this process |
//! | `process.rs`, `connection.rs`, `load.rs`, `host.rs`, `service.rs` | the real daemon, load over HTTP, and a service for it to ask |
//! | `raw.rs`, `raw/` | the raw database: the rows of one unit of work, written again and again |
//! | `log.rs`, `transactions.rs` | how many facts a durable transaction holds |
//! | `disk.rs` | the bare disk |
//! | `report.rs`, `report/` | tables, JSON, a page with plots |

mod bench;
pub mod books;
pub mod connection;
pub mod cycle;
pub mod disk;
pub mod fill;
mod host;
mod level;
mod levels;
pub mod line;
pub mod load;
pub mod log;
pub mod process;
pub mod raw;
mod report;
mod service;
pub mod site;
mod transactions;
mod work;

pub use bench::{Outcome, Setting, run};
pub use level::Level;
pub use service::serve;
