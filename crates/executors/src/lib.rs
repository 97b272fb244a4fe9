//! The executors of the product: commands, plugins, backends and services over HTTP, with the files and the network around them.
//!
//! Each is a [`Specialist`](engine::Specialist) of the engine. The engine knows none of them, so that whoever embeds it with
//! executors of his own compiles no HTTP client, no TLS and no sandbox.

pub mod backend;
pub mod http;
pub mod mac;
mod mount_points;
pub mod outbound;
pub mod plugin;
pub mod process;
mod schema;
mod webhook;
mod workspaces;

pub use schema::Schema;
pub use webhook::{verify_webhook, webhook_key};
pub use workspaces::{KeptRun, LOOK_AFTER_ATTEMPTS, Reach, TreeLimits, WorkspaceSettings, Workspaces};
