//! One file per verb.

pub mod completions;
pub mod config;
pub mod connector;
pub mod demo;
pub mod export;
pub mod jobs;
pub mod orphans;
pub mod progress;
pub mod purge;
pub mod rebuild;
pub mod run;
pub mod serve;
pub mod supervise;
pub mod token;
pub mod verify;
