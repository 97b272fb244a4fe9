//! HTTP: thin, over one table of operations (`operations.rs`). The router, the authorisation and the API document are made from that table.
//!
//! A connection is taken in by `http/listen.rs`, within the bounds of `http/slots.rs`. A request passes `access/authenticate.rs` (who asks), `access/authorise.rs` (may they), `http/json_body.rs` (is the body fit to be kept), then one function per
//! operation, which gives an order to the engine or reads the store. Nothing here decides what may happen to a job.

mod access;
mod cursor;
mod daemon;
mod external;
mod facts;
mod http;
mod jobs;
mod keyed;
mod openapi;
mod operations;
mod peers;
mod plugins;
mod problem;
mod pulled;
mod render;
mod reply;
mod request_context;
mod routing;
mod server;
mod wait;

pub use access::attempt_alias::attempt_alias;
pub use access::authorise::{Access, Permission, allows};
pub use access::secret::Secret;
pub use daemon::tokens::first_admin;
pub use external::callback::{CallbackKey, CallbackTarget};
pub use external::sensorium::OWN_PREFIX;
pub use http::serve::serve;
pub use http::slots::ServerLimits;
pub use openapi::document;
pub use operations::{Body, Dialect, Operation, Route, SlotClass, Verb, operations, routes};
pub use plugins::webhooks::{Endpoint, SignedTime, Webhooks};
pub(crate) use render::clock_text;
pub(crate) use reply::Reply;
pub(crate) use request_context::RequestContext;
pub use server::{Auth, HostWarning, Server, ServerSettings};

/// What a request comes to, or the problem that its caller is told.
pub(crate) type Result<T, E = api::Problem> = std::result::Result<T, E>;
