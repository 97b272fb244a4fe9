//! What a file asks for that may not work here: programs and directories that are not there, lanes that look like a slip of
//! the pen, pipelines that cannot be used.
//!
//! Warnings and not mistakes: a file may be checked elsewhere than where it is used, and a program may come later.

use std::path::Path;

use config_file::{Mistake, hint};
use pipelines::{Routes, load};

use super::Config;
use super::executor::ExecutorConfig;
use crate::builtin;

impl Config {
    /// What may not work here, with its places in this file.
    pub fn doubts(&self, path: &Path) -> Vec<Mistake> {
        let mut doubts = Vec::new();
        let mut names: Vec<&str> = builtin::NAMES.to_vec();
        for executor in &self.executors {
            names.push(&executor.value.name);
            let told = executor.value.doubt();
            doubts.extend(told.map(|told| Mistake::at(path.display(), &executor.defined, told)));
        }
        for (name, lane) in &self.lanes {
            let near = hint(name, &names);
            if !names.contains(&name.as_str()) && !near.is_empty() {
                let told = format!("no executor is named like the lane {name:?}{near}");
                doubts.push(Mistake::at(path.display(), &lane.defined, told));
            }
        }
        doubts.extend(self.opened.iter().flat_map(|opened| opened.connector.doubts()).cloned());
        doubts.extend(self.loaded_plugins.told.iter().cloned());
        let loaded = load(&self.pipelines);
        doubts.extend(loaded.mistakes);
        doubts.extend(self.doubts_of(&Routes::new(loaded.pipelines)));
        doubts
    }

    /// What pipelines ask of executors that this file does not have.
    pub fn doubts_of(&self, routes: &Routes) -> Vec<Mistake> {
        let mut names: Vec<&str> = builtin::NAMES.to_vec();
        names.extend(self.executor_names());
        routes.doubts(|executor| names.contains(&executor))
    }

    /// The executors of this file, besides those that are built in.
    pub fn executor_names(&self) -> Vec<&str> {
        let plugins = self.loaded_plugins.plugins.list().filter(|plugin| plugin.is_enabled());
        let plugins = plugins.map(|plugin| plugin.name.as_str());
        self.names_and_circles().map(|(name, _)| name).chain(plugins).collect()
    }
}

impl ExecutorConfig {
    fn doubt(&self) -> Option<String> {
        let (name, settings) = (&self.name, self.settings());
        let cwd = &settings.working_directory;
        if !cwd.is_dir() {
            return Some(format!("cwd of {name:?} is not a directory: {}", cwd.display()));
        }
        let missing = settings.missing(self.program())?;
        Some(format!("argv of {name:?}: {missing}"))
    }
}
