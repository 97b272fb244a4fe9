//! Ductile's own face of plugins, pipelines and jobs: its routes, its statuses, its errors. The jobs behind it are like all others.

mod job;
mod memory;
mod pipeline;
mod plugin;
mod skills;
mod status;
mod tree;

pub(crate) use job::read_job;
pub(crate) use memory::read_memory;
pub(crate) use pipeline::trigger_pipeline;
pub(crate) use plugin::{list_plugins, read_plugin, reset_breaker, trigger_plugin};
pub(crate) use skills::{list_skills, read_plugin_document};
pub(crate) use tree::read_tree;
