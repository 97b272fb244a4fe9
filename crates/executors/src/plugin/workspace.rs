//! The workspace of one attempt of a plugin, from its making to its end.
//!
//! A step of a run begins with copies of what the steps before it left, and the first one of a run that a turn of an agent asked for with
//! those of that turn; any other job begins with nothing. What it has left is looked through
//! before anything of it counts: then its artifacts are kept, and the tree for the steps that follow. A failure leaves nothing.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::event::Origin;
use domain::event::is_between_turns;
use domain::job::Job;
use domain::run::{Layer, Run};
use domain::{OwnerId, RunId};
use serde_json::Value;
use store::{ArtifactName, Store, StoreError};

use super::super::http::Mask;
use super::super::process::{Artifacts, KeptFile, RunAs, is_name};
use crate::workspaces::{NewFile, OpenWorkspace, WorkspaceError, media_type, new_files};
use crate::{Reach, Workspaces};
use engine::{Assignment, Failure};

/// Artifacts of one attempt.
const MAX_ARTIFACTS: usize = 64;
/// The largest of them.
const MAX_ARTIFACT_BYTES: u64 = 64 * 1_048_576;
/// All of them together.
const MAX_ARTIFACTS_BYTES: u64 = 256 * 1_048_576;
/// What is left out is told of this many one by one.
const MAX_TOLD: usize = 8;
/// What the host itself keeps of an attempt is called so.
const OURS: [&str; 2] = ["stdout", "stderr"];
const CHUNK_BYTES: usize = 1_048_576;

/// Where a plugin works.
pub(super) enum Workspace {
    /// In a directory of its own; what it began with, and where that lies in it.
    Own { open: OpenWorkspace, began_with: Vec<(PathBuf, String)> },
    /// Where the job says, and the operator allows it: nobody looks into it.
    Named(PathBuf),
}

/// What an attempt that went well has left.
#[derive(Default)]
pub(super) struct Leavings {
    pub(super) left_files: bool,
    pub(super) artifacts: Vec<Value>,
    pub(super) warnings: Vec<String>,
}

/// A file that was kept, under its name.
type Kept = (String, KeptFile);

impl Workspace {
    pub(super) async fn of(
        workspaces: &Workspaces,
        store: &dyn Store,
        assignment: &Assignment,
        named: Option<&str>,
        run_as: Option<&RunAs>,
    ) -> Result<Self, Failure> {
        if let Some(named) = named {
            return allowed(named, workspaces).map(Self::Named);
        }
        let began_with = began_with(workspaces, store, &assignment.job).await?;
        let open = workspaces.open(&assignment.attempt_id).map_err(failure)?;
        if began_with.is_empty() {
            if let Some(user) = run_as {
                open.hand_to(user).map_err(failure)?;
            }
            return Ok(Self::Own { open, began_with });
        }
        let run_as = run_as.cloned();
        // Whoever is dropped meanwhile leaves the copy to its own end.
        let filled = tokio::task::spawn_blocking(move || {
            open.fill(&began_with)?;
            run_as.iter().try_for_each(|user| open.hand_to(user))?;
            Ok::<_, WorkspaceError>(Self::Own { open, began_with })
        });
        filled.await.map_err(|error| failure(io::Error::other(error).into()))?.map_err(failure)
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Own { open, .. } => open.path(),
            Self::Named(path) => path,
        }
    }

    /// Keeps what is to be kept of an attempt that went well.
    pub(super) async fn end(
        self,
        workspaces: &Workspaces,
        artifacts: &Arc<Artifacts>,
        assignment: &Assignment,
        mask: &Mask,
    ) -> Result<Leavings, Failure> {
        let Self::Own { open, began_with } = self else { return Ok(Leavings::default()) };
        let open = if began_with.is_empty() {
            match open.end_if_empty() {
                Ok(()) => return Ok(Leavings::default()),
                Err(open) => open,
            }
        } else {
            open
        };
        let (job_id, attempt_id) = (assignment.job.id.clone(), assignment.attempt_id.clone());
        let place = match &assignment.job.spec.step {
            Some(step) => {
                let place = workspaces.place(&step.run_id, step.visit, &attempt_id);
                Some(place.map_err(|error| failure(error.into()))?)
            }
            None => None,
        };
        let keeper = Keeper { artifacts: artifacts.clone(), mask: mask.clone() };
        let ids = (job_id.clone(), attempt_id.clone());
        let ended = tokio::task::spawn_blocking(move || -> Result<_, WorkspaceError> {
            let tree = open.look_through()?;
            let before = began_with.first().filter(|(_, under)| under.is_empty());
            let new = new_files(&tree, open.path(), before.map(|(path, _)| path.as_path()))?;
            let (kept, warnings) = keeper.keep((&ids.0, &ids.1), new)?;
            // What was emptied is left empty, and not as it was before.
            let left_files = place.is_some() && !(tree.is_empty() && began_with.is_empty());
            if let Some(place) = place.filter(|_| left_files) {
                open.seal(&tree, &place)?;
            }
            Ok((kept, warnings, left_files))
        });
        let ended = ended.await.map_err(|error| failure(io::Error::other(error).into()))?;
        let (kept, warnings, left_files) = ended.map_err(failure)?;
        let mut leavings = Leavings { left_files, artifacts: Vec::new(), warnings };
        for (name, file) in kept {
            let artifact = ArtifactName { job_id: &job_id, attempt_id: &attempt_id, name: &name };
            artifacts.share(artifact, &artifacts.dir().join(&file.path), file.bytes).await;
            let mut listed = file.listed(&name);
            listed["media_type"] = media_type(&name).into();
            leavings.artifacts.push(listed);
        }
        Ok(leavings)
    }
}

/// A directory that the operator allows jobs to name.
fn allowed(named: &str, workspaces: &Workspaces) -> Result<PathBuf, Failure> {
    let told = || {
        format!(
            "workspace_dir: {named:?} is not among workspaces.allowed_dirs of the config; leave it out: \
             the host gives every attempt a workspace of its own"
        )
    };
    let refused = || Failure::permanent("invalid_input", told());
    // Links are followed first: what counts is where it leads.
    let path = Path::new(named).canonicalize().map_err(|_| refused())?;
    let is_below = |allowed: &PathBuf| allowed.canonicalize().is_ok_and(|allowed| path.starts_with(allowed));
    let fits = path.is_dir() && Path::new(named).is_absolute();
    if fits && workspaces.settings().allowed.iter().any(is_below) { Ok(path) } else { Err(refused()) }
}

/// What the steps before this one left, where it is, and where it goes.
async fn began_with(
    workspaces: &Workspaces,
    store: &dyn Store,
    job: &Job,
) -> Result<Vec<(PathBuf, String)>, Failure> {
    let Some(step) = &job.spec.step else { return Ok(Vec::new()) };
    let unavailable = |error: StoreError| Failure::transient("workspace_unavailable", error.to_string());
    let loaded = store.load(&step.run_id.clone().into()).await.map_err(unavailable)?;
    let Some(run) = loaded.as_ref().and_then(|loaded| loaded.record.as_run()) else {
        let told = format!("{} is not known any more, and with it what its steps left", step.run_id);
        return Err(Failure::permanent("workspace_lost", told));
    };
    let own = run.files_for(step.visit);
    let (run_id, layers) = if own.is_empty() {
        left_by_turn_before(store, run).await.map_err(unavailable)?
    } else {
        (step.run_id.clone(), own)
    };
    if let (Reach::ItsNode, Some(attempt)) = (workspaces.settings().reach, job.last_attempt()) {
        is_here(&layers, &attempt.owner)?;
    }
    let place = |layer: Layer| Ok((workspaces.left_at(&run_id, &layer)?, layer.under));
    let places: io::Result<Vec<(PathBuf, String)>> = layers.into_iter().map(place).collect();
    places.map_err(|error| failure(error.into()))
}

/// What the turn of an agent left that asked for this run, and in which run; nothing if no turn did, or its run is not kept any more.
async fn left_by_turn_before(store: &dyn Store, run: &Run) -> Result<(RunId, Vec<Layer>), StoreError> {
    let nothing = || (run.id.clone(), Vec::new());
    let event = store.load(&run.begun.event_id.clone().into()).await?;
    let event = event.as_ref().and_then(|loaded| loaded.record.as_event());
    let event = event.filter(|event| is_between_turns(&event.said.kind));
    let Some(Origin::Emitted { job_id, .. }) = event.map(|event| &event.said.origin) else {
        return Ok(nothing());
    };
    let job = store.load(&job_id.clone().into()).await?;
    let job = job.as_ref().and_then(|loaded| loaded.record.as_job());
    let Some(step) = job.and_then(|job| job.spec.step.as_ref()) else { return Ok(nothing()) };
    let before = store.load(&step.run_id.clone().into()).await?;
    let Some(before) = before.as_ref().and_then(|loaded| loaded.record.as_run()) else {
        return Ok(nothing());
    };
    Ok((before.id.clone(), before.files_after(step.visit)))
}

/// Whether all of it is on the node of this attempt.
fn is_here(layers: &[Layer], owner: &OwnerId) -> Result<(), Failure> {
    let mut nodes: Vec<&str> = layers.iter().map(|layer| layer.left.owner.node()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    if nodes.iter().all(|node| *node == owner.node()) {
        return Ok(());
    }
    let told = format!(
        "what earlier steps of the run left is on {}, and this attempt is on {}: make workspaces of their data directories \
         one shared directory and say workspaces: {{ shared: true }} in their configs",
        nodes.join(" and "),
        owner.node()
    );
    // The node that has all of it may come to do it.
    Err(match nodes[..] {
        [_] => Failure::transient("workspace_elsewhere", told),
        _ => Failure::permanent("workspace_elsewhere", told),
    })
}

fn failure(error: WorkspaceError) -> Failure {
    match error {
        WorkspaceError::Refused(told) => {
            Failure::permanent("workspace_refused", format!("in the workspace, {told}"))
        }
        WorkspaceError::TooLarge { told, limit } => {
            let told = format!("the workspace is too large: {told}");
            Failure::permanent("workspace_too_large", told).limited_by(*limit)
        }
        WorkspaceError::Lost(told) => Failure::permanent("workspace_lost", told),
        WorkspaceError::Io(error) => {
            Failure::transient("workspace_unavailable", format!("the workspace cannot be used: {error}"))
        }
    }
}

/// Keeps files as artifacts.
struct Keeper {
    artifacts: Arc<Artifacts>,
    mask: Mask,
}

impl Keeper {
    /// Keeps what may be kept, and tells what was left out.
    fn keep(
        &self,
        (job_id, attempt_id): (&domain::JobId, &domain::AttemptId),
        files: Vec<NewFile>,
    ) -> io::Result<(Vec<Kept>, Vec<String>)> {
        let (mut kept, mut left_out) = (Vec::new(), Vec::new());
        let mut all_bytes = 0;
        for file in files {
            let bytes = file.path.metadata()?.len();
            match self.name_of(&file, bytes, kept.len(), all_bytes)? {
                Ok(name) => {
                    all_bytes += bytes;
                    let kept_file = self.artifacts.keep_file((job_id, attempt_id), name, &file.path)?;
                    kept.push((name.to_owned(), kept_file));
                }
                Err(why) => {
                    let shown = file.below.to_string_lossy();
                    left_out.push(format!("{shown:?} below artifacts/ is not kept: {why}"));
                }
            }
        }
        let more = left_out.len().saturating_sub(MAX_TOLD);
        left_out.truncate(MAX_TOLD);
        if more > 0 {
            left_out.push(format!("and {more} more files below artifacts/ are not kept"));
        }
        Ok((kept, left_out))
    }

    /// The name that a file is kept under besides this many others, or why it is not.
    fn name_of<'f>(
        &self,
        file: &'f NewFile,
        bytes: u64,
        others: usize,
        others_bytes: u64,
    ) -> io::Result<Result<&'f str, &'static str>> {
        let Some(name) = file.below.to_str().filter(|name| is_name(name)) else {
            return Ok(Err("its name is too long, or has characters that do not print"));
        };
        Ok(if is_ours(name) {
            Err("the host's own artifacts are called so")
        } else if others >= MAX_ARTIFACTS {
            Err("there are more than 64")
        } else if bytes > MAX_ARTIFACT_BYTES {
            Err("it has more than 64 MiB")
        } else if others_bytes + bytes > MAX_ARTIFACTS_BYTES {
            Err("all together have more than 256 MiB")
        } else if self.shows_a_secret(&file.path)? {
            Err("a secret of the plugin stands in it")
        } else {
            Ok(name)
        })
    }

    /// Whether a secret stands in a file, also across two pieces of it.
    fn shows_a_secret(&self, path: &Path) -> io::Result<bool> {
        if self.mask.is_empty() {
            return Ok(false);
        }
        let mut file = File::open(path)?;
        let (mut piece, overlap) = (Vec::new(), self.mask.longest());
        loop {
            let before = piece.len();
            (&mut file).take(CHUNK_BYTES as u64).read_to_end(&mut piece)?;
            if piece.len() == before {
                return Ok(false);
            }
            if self.mask.shows_in(&piece) {
                return Ok(true);
            }
            piece.drain(..piece.len().saturating_sub(overlap));
        }
    }
}

fn is_ours(name: &str) -> bool {
    let first = name.split('/').next().unwrap_or_default();
    OURS.contains(&first)
}
