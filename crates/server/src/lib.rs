//! HTTP: thin, over one list of operations (`routes.rs`). The router, the authorisation and the API document are made from that list.
//!
//! A connection is taken in by `listen.rs`, within the bounds of `slots.rs`. A request passes `gate.rs` (who asks), `authorise.rs` (may they), `door.rs` (is the body fit to be kept), then one function per
//! operation, which gives an order to the engine or reads the store. Nothing here decides what may happen to a job.

mod answer;
mod asked;
mod asks;
mod attempt_alias;
mod attempt_token;
mod audit;
mod authorise;
mod callback;
mod capabilities;
mod claims;
mod clock;
mod clock_text;
mod cursor;
mod deferred;
mod door;
mod ductile;
mod events;
mod facts;
mod gate;
mod health;
mod host;
mod jobs;
mod keyed;
mod listen;
mod metrics;
mod nodes;
mod openapi;
mod operation;
mod orphans;
mod patient_stream;
mod peers;
mod pipelines;
mod problem;
mod pulled;
mod refused_report;
mod render;
mod routed;
mod routes;
mod runs;
mod secret;
mod sensorium;
mod serve;
mod slots;
mod tokens;
mod wait;
mod webhooks;

pub use attempt_alias::attempt_alias;
pub use authorise::{Access, Permission, allows};
pub use callback::{CallbackKey, CallbackTarget};
pub use openapi::document;
pub use operation::Operation;
pub use routes::{ROUTES, Route, Verb};
pub use secret::Secret;
pub use sensorium::OWN_PREFIX;
pub use serve::{Auth, Server, ServerSettings, serve};
pub use slots::ServerLimits;
pub use tokens::first_admin;
pub use webhooks::{Endpoint, SignedTime, Webhooks};
