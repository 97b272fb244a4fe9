//! What the operator says of the workspaces of plugins.

use std::path::PathBuf;

use config_file::Mistake;
use executors::{LOOK_AFTER_ATTEMPTS, Reach, TreeLimits, WorkspaceSettings};
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::bounded::Bounded;

/// One tebibyte.
const MAX_BYTES: u64 = 1 << 40;
const MAX_FILES: u64 = 1_000_000;
const MAX_ALLOWED: usize = 64;
const MAX_LOOK_AFTER: u64 = 1_000_000;

/// The settings; what is left out is as the daemon has it by itself.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkspacesConfig {
    max_bytes: Option<Bounded<4_096, MAX_BYTES>>,
    max_files: Option<Bounded<1, MAX_FILES>>,
    /// Whether `workspaces` of the data directories of all nodes is one shared directory.
    shared: bool,
    /// Attempts between two looks for runs that another node has retired.
    look_after_attempts: Option<Bounded<1, MAX_LOOK_AFTER>>,
    /// Directories that a job may name as its workspace.
    allowed_dirs: Vec<Spanned<PathBuf>>,
}

impl WorkspacesConfig {
    pub fn check(&self, path: &std::path::Path) -> Result<(), Mistake> {
        if self.allowed_dirs.len() > MAX_ALLOWED {
            let told = format!("workspaces: allowed_dirs has more than {MAX_ALLOWED}");
            return Err(Mistake::somewhere(path.display(), told));
        }
        match self.allowed_dirs.iter().find(|dir| !dir.value.is_absolute()) {
            None => Ok(()),
            Some(dir) => {
                let told = format!("{} must be a whole path: it begins with a slash", dir.value.display());
                Err(Mistake::at(path.display(), &dir.defined, told))
            }
        }
    }

    /// The settings of a node among several, or of the only one.
    pub fn settings(&self, among: Among) -> WorkspaceSettings {
        let usual = TreeLimits::default();
        let limits = TreeLimits {
            bytes: self.max_bytes.map_or(usual.bytes, Bounded::value),
            entries: self.max_files.map_or(usual.entries, Bounded::as_usize),
            ..usual
        };
        let reach = match (among, self.shared) {
            (Among::Alone, _) | (Among::Others, true) => Reach::EveryNode,
            (Among::Others, false) => Reach::ItsNode,
        };
        let allowed = self.allowed_dirs.iter().map(|dir| dir.value.clone()).collect();
        let look_after = self.look_after_attempts.map_or(LOOK_AFTER_ATTEMPTS, Bounded::as_usize);
        WorkspaceSettings { limits, reach, allowed, look_after }
    }
}

/// Whether other nodes may share the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Among {
    Alone,
    Others,
}
