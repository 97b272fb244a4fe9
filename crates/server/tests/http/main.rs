//! The server as its callers see it: a real listener, a real file, the real engine. One file per topic.

mod given;

mod answer;
mod asks;
mod auth;
mod authorisation;
mod bad_input;
mod batch;
mod callbacks;
mod cancel;
mod claims;
mod create;
mod crowd;
mod deferred;
mod ductile;
mod facts_stream;
mod idempotency;
mod invoke;
mod limits;
mod list;
mod metrics;
mod not_yours;
mod openapi;
mod orphans;
mod peers;
mod pulled;
mod pulled_again;
mod purge;
mod result;
mod run_retry;
mod sensorium;
mod serving;
mod status;
mod update;
mod webhooks;
mod why;
