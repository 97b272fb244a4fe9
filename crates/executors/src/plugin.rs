//! Plugins in the manner of Ductile: a directory with a manifest and an entrypoint that is given one JSON object on its standard
//! input and answers with one on its standard output.
//!
//! `discover.rs` finds them, `trust.rs` says whether they may be started, `registry.rs` puts them together with what the operator says,
//! and `run.rs` runs one of them: `envelope.rs` is what it is asked, `response.rs` what it answers, `outcome.rs` what that comes to.

mod breaker;
mod discover;
mod envelope;
mod input;
mod manifest;
mod outcome;
mod registry;
mod response;
mod run;
mod settings;
mod trust;
mod workspace;

pub use discover::{Discovered, Found, look_at};
pub use input::{PluginEvent, PluginInput};
pub use manifest::{Effect, FactOutput, FactView, MANIFEST, Manifest, Places, PluginCommand, is_plugin_name};
pub use registry::{Misconfigured, Plugin, Plugins};
pub use run::PluginExecutor;
pub use settings::{Activity, PluginSettings, Strictness};
pub use trust::{Symlinks, cannot_start};

use engine::SERIAL;

/// The lane that jobs of a plugin queue in: one at a time on all nodes together, unless the operator says how many.
pub fn lane(name: &str, parallelism: Option<usize>) -> String {
    match parallelism {
        Some(2..) => format!("plugin:{name}"),
        Some(_) | None => format!("{SERIAL}plugin:{name}"),
    }
}
