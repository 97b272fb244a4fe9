//! Plugins in the manner of Ductile: a directory with a manifest and an entrypoint that is given one JSON object on its standard
//! input and answers with one on its standard output.
//!
//! `discover.rs` finds them, `trust.rs` says whether they may be started, `registry.rs` puts them together with what the operator says.

mod discover;
mod manifest;
mod registry;
mod settings;
mod trust;

pub use discover::{Discovered, Found, look_at};
pub use manifest::{Effect, FactOutput, FactView, MANIFEST, Manifest, PluginCommand, is_plugin_name};
pub use registry::{Misconfigured, Plugin, Plugins};
pub use settings::{Activity, PluginSettings, Strictness};
pub use trust::Symlinks;

use crate::SERIAL;

/// The lane that jobs of a plugin queue in: one at a time on all nodes together, unless the operator says how many.
pub fn lane(name: &str, parallelism: Option<usize>) -> String {
    match parallelism {
        Some(2..) => format!("plugin:{name}"),
        Some(_) | None => format!("{SERIAL}plugin:{name}"),
    }
}
