//! The files that plugins work with: a directory of its own for every attempt, and for runs what their steps have left.
//!
//! ```text
//! <dir>/open/<node>/<attempt>.<n>/           an attempt at its work; gone with it, and no other ever has this name
//! <dir>/ab/cd/<run>/<visit>-<attempt>/       what a step left, sealed; ab and cd are made from the run's id
//! ```
//!
//! An attempt never works in what another one left, but in a copy (`copy.rs`), and nothing that it does is seen before it was looked
//! through, synced and renamed (`seal.rs`). What counts is what the record names: an attempt that lost its lease and seals too late
//! leaves a tree that nobody asks for. Which trees a step begins with is the domain's word (`domain::run::Layer`).
//!
//! Trees go with their run: when it is retired, and what a dead daemon or another node left of that at the next look (`looks.rs`). A copy under way is an owner of its directory
//! like any other, so that whoever is dropped in the middle leaves nothing. The sandbox of
//! commands (`executors/process/sandbox.rs`) lets an attempt reach its own directory and no other.

mod copy;
mod files;
mod looks;
mod media;
mod removals;
mod remove;
mod seal;
#[cfg(test)]
mod tests;

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, lchown};
use std::path::{Path, PathBuf};

use domain::limit::NamedLimit;
use domain::run::{Layer, VisitIndex};
use domain::{AttemptId, RecordId, RunId};
use store::{Commit, Committed, Removal, sha256};
use tokio::sync::watch;

use crate::process::{RunAs, is_segment};
use engine::CommitWatch;
use looks::Looks;
use removals::Removals;

pub(crate) use files::{NewFile, new_files};
pub use looks::LOOK_AFTER_ATTEMPTS;
pub(crate) use media::media_type;

/// For us alone.
const DIRECTORY_MODE: u32 = 0o700;
/// Where attempts are at their work.
const OPEN: &str = "open";

/// How large a tree may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeLimits {
    /// All its files together.
    pub bytes: u64,
    /// Files and directories.
    pub entries: usize,
    /// Directories within each other.
    pub depth: usize,
}

impl Default for TreeLimits {
    fn default() -> Self {
        Self { bytes: 1_073_741_824, entries: 10_000, depth: 32 }
    }
}

/// From where what a step left can be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// By every node that there is: it is the only one, or the directory is the same for all of them.
    #[default]
    EveryNode,
    /// By the node of that step alone.
    ItsNode,
}

/// What the operator says of workspaces.
#[derive(Clone, Debug)]
pub struct WorkspaceSettings {
    /// How large one may be.
    pub limits: TreeLimits,
    /// From where what a step left can be read.
    pub reach: Reach,
    /// Directories that a job may name as its workspace, with what is below them.
    pub allowed: Vec<PathBuf>,
    /// How many attempts are opened between two looks for runs that another node has retired.
    pub look_after: usize,
}

impl Default for WorkspaceSettings {
    fn default() -> Self {
        let (limits, reach) = (TreeLimits::default(), Reach::default());
        Self { limits, reach, allowed: Vec::new(), look_after: LOOK_AFTER_ATTEMPTS }
    }
}

/// All workspaces of a node.
pub struct Workspaces {
    dir: PathBuf,
    open: PathBuf,
    settings: WorkspaceSettings,
    removals: Removals,
    looks: Looks,
}

/// What was there of a run when it was looked at.
#[derive(Clone, Debug)]
pub struct KeptRun {
    /// The run.
    pub run_id: RunId,
    path: PathBuf,
    trees: Vec<PathBuf>,
}

/// The directory of an attempt at its work. Dropped, it is gone with all that is in it.
pub(crate) struct OpenWorkspace {
    path: PathBuf,
    removals: Removals,
    limits: TreeLimits,
}

/// Why there is no workspace, or why what is in it is not kept.
#[derive(Debug)]
pub(crate) enum WorkspaceError {
    /// Something is in it that may not be; what, and what to do.
    Refused(String),
    /// It is larger than it may be.
    TooLarge {
        /// How.
        told: String,
        /// The limit.
        limit: Box<NamedLimit>,
    },
    /// What an earlier step left is not where it was.
    Lost(String),
    /// The file system does not do it now.
    Io(io::Error),
}

impl From<io::Error> for WorkspaceError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Workspaces {
    /// Those in this directory, which is made if it is not there. The name of the node keeps attempts of several nodes apart.
    pub fn in_dir(dir: impl AsRef<Path>, node: &str, settings: WorkspaceSettings) -> io::Result<Self> {
        let open = dir.as_ref().join(OPEN).join(segment(node)?);
        DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(&open)?;
        let dir = dir.as_ref().canonicalize()?;
        let open = open.canonicalize()?;
        let removals = Removals::through(open.clone())?;
        let looks = Looks::after(settings.look_after);
        Ok(Self { dir, open, settings, removals, looks })
    }

    /// What the operator says of them.
    pub fn settings(&self) -> &WorkspaceSettings {
        &self.settings
    }

    /// An empty one for an attempt, whatever it had before: that may still be copied to, or wait to be removed, under another name.
    pub(crate) fn open(&self, attempt_id: &AttemptId) -> Result<OpenWorkspace, WorkspaceError> {
        let create = |path: &Path| DirBuilder::new().mode(DIRECTORY_MODE).create(path);
        let path = self.removals.under_new_name(segment(attempt_id.as_str())?, create)?;
        match self.settings.reach {
            Reach::ItsNode => self.looks.count(),
            // Whoever retires a run removes what it left, because it is the only copy.
            Reach::EveryNode => {}
        }
        Ok(OpenWorkspace { path, removals: self.removals.clone(), limits: self.settings.limits })
    }

    /// Where what a step left is.
    pub(crate) fn left_at(&self, run_id: &RunId, layer: &Layer) -> io::Result<PathBuf> {
        self.place(run_id, layer.visit, &layer.left.attempt_id)
    }

    /// Where what an attempt leaves goes.
    pub(crate) fn place(
        &self,
        run_id: &RunId,
        visit: VisitIndex,
        attempt_id: &AttemptId,
    ) -> io::Result<PathBuf> {
        let name = format!("{visit}-{}", segment(attempt_id.as_str())?);
        Ok(self.of_run(run_id)?.join(name))
    }

    /// The directory of a run: two directories above it, so that none holds too many.
    fn of_run(&self, run_id: &RunId) -> io::Result<PathBuf> {
        let digest = sha256(run_id.as_str().as_bytes()).to_string();
        Ok(self.dir.join(&digest[..2]).join(&digest[2..4]).join(segment(run_id.as_str())?))
    }

    /// The runs that have any, and what. To be compared with the store afterwards: whatever a run leaves is left after the store knows it.
    pub fn runs(&self) -> io::Result<Vec<KeptRun>> {
        let mut runs = Vec::new();
        for first in shards(&self.dir)? {
            for second in shards(&first)? {
                for path in paths_in(&second)? {
                    if let Some(name) = path.file_name().and_then(|name| name.to_str())
                        && let Ok(RecordId::Run(run_id)) = RecordId::parse(name)
                    {
                        let trees = paths_in(&path)?;
                        runs.push(KeptRun { run_id, path, trees });
                    }
                }
            }
        }
        self.looks.found(runs.len());
        Ok(runs)
    }

    /// Changes when the runs should be compared with the store again, because so much was done here since.
    pub fn looks(&self) -> watch::Receiver<()> {
        self.looks.wanted()
    }

    /// Removes those of a run, soon.
    fn remove(&self, run_id: &RunId) {
        if let Ok(path) = self.of_run(run_id) {
            self.removals.away(&path);
        }
    }

    /// Removes what was found of a run, soon. A new run of the same id may have begun since: what it leaves stays.
    pub fn remove_kept(&self, kept: &KeptRun) {
        for tree in &kept.trees {
            self.removals.away(tree);
        }
        // Only if nothing else is in it.
        let _ = fs::remove_dir(&kept.path);
    }

    /// Removes what attempts of earlier daemons of this node left. To be called at the start, when nothing of theirs runs any more.
    pub fn sweep_open(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.open)? {
            self.removals.soon(entry?.path());
        }
        Ok(())
    }
}

impl CommitWatch for Workspaces {
    fn committed(&self, commit: &Commit, _: Committed) {
        for change in &commit.changes {
            let RecordId::Run(run_id) = &change.id else { continue };
            match change.removal {
                Removal::Bodies | Removal::Record => self.remove(run_id),
                Removal::Nothing | Removal::Errors | Removal::OlderFacts => {}
            }
        }
    }
}

impl OpenWorkspace {
    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes all that is in it another user's. For a thread that may wait.
    pub(crate) fn hand_to(&self, user: &RunAs) -> Result<(), WorkspaceError> {
        // Nobody else is in it yet, and copies hold no links.
        let mut waiting = vec![self.path.clone()];
        while let Some(path) = waiting.pop() {
            lchown(&path, Some(user.uid), Some(user.gid))?;
            if fs::symlink_metadata(&path)?.is_dir() {
                waiting.extend(paths_in(&path)?);
            }
        }
        Ok(())
    }

    /// Ends it at once if nothing was put into it.
    pub(crate) fn end_if_empty(self) -> Result<(), Self> {
        match fs::remove_dir(&self.path) {
            Ok(()) => Ok(()),
            Err(_) => Err(self),
        }
    }
}

impl Drop for OpenWorkspace {
    fn drop(&mut self) {
        match fs::remove_dir(&self.path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => self.removals.soon(self.path.clone()),
        }
    }
}

/// What is in a directory; one that has just gone has nothing.
fn paths_in(dir: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(dir) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}

/// The directories of one level of shards.
fn shards(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut shards = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_shard = name.len() == 2 && name.as_encoded_bytes().iter().all(u8::is_ascii_hexdigit);
        if is_shard && entry.file_type()?.is_dir() {
            shards.push(entry.path());
        }
    }
    Ok(shards)
}

/// A text that is one plain name.
fn segment(text: &str) -> io::Result<&str> {
    if is_segment(text) {
        return Ok(text);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{text:?} cannot be the name of a directory")))
}
