//! Which files a step of a run begins with: what the steps before it in the walk have left. Pure derivation, like the walk itself.
//!
//! A step begins with what the nearest one before it left. All branches of a group begin with what was there when the group was entered;
//! what follows a group begins with that, and with what each branch left beside it under `branches/`. A failure leaves nothing: whatever
//! follows one, or does it again, begins where it began. The files themselves are not looked at here.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::command::StepEnd;
use super::state::{Cause, Run, VisitIndex};
use crate::job::{Attempt, Job};
use crate::limits::cut;
use crate::{AttemptId, OwnerId};

/// Where what branches left comes together.
const BRANCHES: &str = "branches";
/// The longest name of a directory.
const MAX_NAME_BYTES: usize = 255;

/// Files that an attempt left, under its name: what another attempt of the same step may leave too late is never taken for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// The attempt.
    pub attempt_id: AttemptId,
    /// Who made it: the files are at its node.
    pub owner: OwnerId,
}

/// Files that a step begins with, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// The directory in the new tree; empty for the tree itself.
    pub under: String,
    /// The visit that left them.
    pub visit: VisitIndex,
    /// By which attempt.
    pub left: Left,
}

impl Left {
    /// What the attempt that completed a job left.
    pub fn by(job: &Job) -> Option<Self> {
        job.last_attempt().filter(|_| job.result.left_files).map(Self::of)
    }

    /// What an attempt left.
    pub fn of(attempt: &Attempt) -> Self {
        Self { attempt_id: attempt.id.clone(), owner: attempt.owner.clone() }
    }
}

impl Run {
    /// What a visit begins with, in the order in which it is put together.
    pub fn files_for(&self, at: VisitIndex) -> Vec<Layer> {
        Walk { run: self, known: BTreeMap::new() }.given(at)
    }

    /// What would follow a visit begins with: what it left, or what it began with if it left nothing.
    pub fn files_after(&self, at: VisitIndex) -> Vec<Layer> {
        Walk { run: self, known: BTreeMap::new() }.left(at)
    }
}

struct Walk<'a> {
    run: &'a Run,
    /// What groups were given. Without it, groups after groups would be walked again and again.
    known: BTreeMap<VisitIndex, Vec<Layer>>,
}

impl Walk<'_> {
    fn given(&mut self, at: VisitIndex) -> Vec<Layer> {
        if let Some(known) = self.known.get(&at) {
            return known.clone();
        }
        let given = match self.run.visit(at).map(|visit| visit.cause) {
            None | Some(Cause::Start) => Vec::new(),
            Some(Cause::Entered(group)) => self.given(group),
            Some(Cause::After(before, _) | Cause::Failure(before)) => self.left(before),
        };
        self.known.insert(at, given.clone());
        given
    }

    fn left(&mut self, at: VisitIndex) -> Vec<Layer> {
        let end = self.run.visit(at).and_then(|visit| visit.end());
        match end {
            Some(StepEnd::Completed { left: Some(left), .. }) => {
                vec![Layer { under: String::new(), visit: at, left: left.clone() }]
            }
            Some(StepEnd::Completed { left: None, .. } | StepEnd::Failed { .. }) if self.run.is_group(at) => {
                self.joined(at)
            }
            Some(
                StepEnd::Completed { left: None, .. }
                | StepEnd::Failed { .. }
                | StepEnd::Skipped
                | StepEnd::Cancelled,
            )
            | None => self.given(at),
        }
    }

    fn joined(&mut self, group: VisitIndex) -> Vec<Layer> {
        let before = self.given(group);
        let ends: Vec<VisitIndex> = self.run.good_ends_in(group).collect();
        if let ([only], 0..=1) = (&ends[..], self.run.branches_of(group)) {
            return self.left(*only);
        }
        let mut layers = before.clone();
        let mut of_branch: BTreeMap<&str, usize> = BTreeMap::new();
        for end in &ends {
            let branch = self.run.branch_of(*end);
            let ends_of_it = ends.iter().filter(|other| self.run.branch_of(**other) == branch).count();
            let number = of_branch.entry(branch).or_default();
            *number += 1;
            let name = directory(branch);
            let place = match ends_of_it {
                0 | 1 => format!("{BRANCHES}/{name}"),
                _ => format!("{BRANCHES}/{name}/{number}"),
            };
            let left = self.left(*end);
            // A branch that left nothing of its own shows what was there before it.
            if left == before {
                continue;
            }
            layers.extend(left.into_iter().map(|layer| {
                let below = if layer.under.is_empty() { "" } else { "/" };
                Layer { under: format!("{place}{below}{}", layer.under), ..layer }
            }));
        }
        layers
    }
}

/// The name of a branch as that of a directory. Steps of what is called have the caller's name before a slash, the same for all of them.
fn directory(branch: &str) -> String {
    let name = branch.rsplit('/').next().unwrap_or_default();
    let name = cut(name, MAX_NAME_BYTES);
    if name.starts_with('.') || name.is_empty() {
        format!("_{}", cut(name, MAX_NAME_BYTES - 1))
    } else {
        name.to_owned()
    }
}
