//! The state of a run: where its walk has come to.

use serde::{Deserialize, Serialize};

use super::command::{NewRun, StepEnd};
use super::fact::RunEnd;
use super::shape::{Node, NodeIndex, NodeKind, OnError};
use crate::planted::{Bug, planted};
use crate::words::words;
use crate::{JobId, RunId, Timestamp};

/// The place of a visit among those of its run.
pub type VisitIndex = u16;

/// One pipeline at its work, folded from its facts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Its id.
    #[serde(skip)]
    pub id: RunId,
    /// What it began with.
    pub begun: NewRun,
    /// Where it has been, oldest first.
    pub visits: Vec<Visit>,
    /// The request to stop it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<RunCancel>,
    /// Why nothing new begins: something is wrong with the run as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condemned: Option<String>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<RunEnd>,
    /// When it began.
    pub started_at: Timestamp,
    /// When anything last happened to it.
    pub updated_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

/// The walk has come to a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visit {
    /// The node.
    pub node: NodeIndex,
    /// The visit of the group that it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<VisitIndex>,
    /// What brought the walk here.
    pub cause: Cause,
    /// Where it is.
    pub state: VisitState,
}

/// What brought the walk to a node, and so what the node is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The run began: its event.
    Start,
    /// The group that it is in was entered: what the group was given.
    Entered(VisitIndex),
    /// This visit is over: the event of it with this number.
    After(VisitIndex, u32),
    /// This visit has failed: what is to be said of that.
    Failure(VisitIndex),
}

/// Where a visit is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VisitState {
    /// Nobody has prepared yet what it is given.
    Waiting,
    /// A step, which is this job.
    Open(JobId),
    /// A group in which something goes on.
    Inside,
    /// It is over, and so it ended; the job, if there was one.
    Over {
        /// How.
        end: StepEnd,
        /// Its job.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        job_id: Option<JobId>,
    },
}

/// A request to stop a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCancel {
    /// When.
    pub requested_at: Timestamp,
    /// Who.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why.
    pub reason: String,
    /// The first visit whose job was not asked to stop yet; none if all were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<VisitIndex>,
}

/// What a job that is a step belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepLink {
    /// The run.
    pub run_id: RunId,
    /// The visit.
    pub visit: VisitIndex,
    /// The pipeline, for people.
    pub pipeline: String,
    /// The step, for people.
    pub step: String,
    /// The node that has the files it begins with, if no other can read them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// How many steps were begun before it in the same commit, and so at the same time.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub ordinal: u32,
}

words! {
    /// Where a run is, in a word.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum RunState {
        /// It goes on.
        Running = "running",
        /// It was asked to stop, and something has not stopped yet.
        Cancelling = "cancelling",
        /// Every branch came to its end.
        Completed = "completed",
        /// One did not.
        Failed = "failed",
        /// It was stopped.
        Cancelled = "cancelled",
    }
}

impl Run {
    /// Where it is.
    pub fn state(&self) -> RunState {
        match (self.end, &self.cancel) {
            (Some(RunEnd::Completed), _) => RunState::Completed,
            (Some(RunEnd::Failed), _) => RunState::Failed,
            (Some(RunEnd::Cancelled), _) => RunState::Cancelled,
            (None, Some(_)) => RunState::Cancelling,
            (None, None) => RunState::Running,
        }
    }

    /// The visit with this index.
    pub fn visit(&self, index: VisitIndex) -> Option<&Visit> {
        self.visits.get(usize::from(index))
    }

    /// The way from a visit back to the start of the run. It tells two visits apart that may come to have one index.
    pub fn origin(&self, index: VisitIndex) -> Vec<(NodeIndex, Cause)> {
        let before = |visit: &&Visit| match visit.cause {
            Cause::Start => None,
            Cause::Entered(at) | Cause::After(at, _) | Cause::Failure(at) => self.visit(at),
        };
        let way = std::iter::successors(self.visit(index), before).take(self.visits.len());
        way.map(|visit| (visit.node, visit.cause)).collect()
    }

    /// The node of a visit.
    pub fn node(&self, visit: &Visit) -> Option<&Node> {
        self.begun.shape.node(visit.node)
    }

    /// Whether it is the same work as another under its key: it goes on, or it was done within the window. What failed stands for nothing.
    pub fn stands_for_its_key(&self, window_seconds: u64, now: Timestamp) -> bool {
        match self.state() {
            RunState::Running | RunState::Cancelling => true,
            RunState::Completed => {
                self.ended_at.unwrap_or(self.started_at).plus_seconds(window_seconds) > now
            }
            RunState::Failed | RunState::Cancelled => false,
        }
    }

    /// Whether a visit is of a group.
    pub fn is_group(&self, at: VisitIndex) -> bool {
        let node = self.visit(at).and_then(|visit| self.node(visit));
        node.is_some_and(|node| matches!(node.kind, NodeKind::Group { .. }))
    }

    /// Every visit with its index.
    pub fn numbered(&self) -> impl DoubleEndedIterator<Item = (VisitIndex, &Visit)> {
        self.visits.iter().enumerate().map(|(at, visit)| (index(at), visit))
    }

    /// The visits that wait to be prepared.
    pub fn waiting(&self) -> impl Iterator<Item = VisitIndex> {
        self.numbered().filter(|(_, visit)| visit.state == VisitState::Waiting).map(|(at, _)| at)
    }

    /// The jobs of the steps that go on.
    pub fn open_jobs(&self) -> impl Iterator<Item = (VisitIndex, &JobId)> {
        self.numbered().filter_map(|(at, visit)| match &visit.state {
            VisitState::Open(job_id) => Some((at, job_id)),
            VisitState::Waiting | VisitState::Inside | VisitState::Over { .. } => None,
        })
    }

    /// The jobs that a request to stop the run has not reached yet.
    pub fn not_yet_cancelled(&self) -> impl Iterator<Item = (VisitIndex, &JobId)> {
        let next = self.cancel.as_ref().and_then(|cancel| cancel.next);
        self.open_jobs().filter(move |(at, _)| next.is_some_and(|next| *at >= next))
    }

    /// Whether something follows a group that a visit is in, and is given what the visit left.
    pub fn joins_later(&self, mut at: VisitIndex) -> bool {
        while let Some(group) = self.visit(at).and_then(|visit| visit.within) {
            let node = self.visit(group).and_then(|visit| self.node(visit));
            if node.is_some_and(|node| node.next.is_some()) {
                return true;
            }
            at = group;
        }
        false
    }

    /// How many branches a group has, whatever became of them; none if it is no group.
    pub fn branches_of(&self, group: VisitIndex) -> usize {
        let node = self.visit(group).and_then(|visit| self.node(visit));
        node.map_or(0, |node| match &node.kind {
            NodeKind::Group { branches } => branches.len(),
            NodeKind::Step => 0,
        })
    }

    /// Where the branches of a group came to a good end.
    pub fn good_ends_in(&self, group: VisitIndex) -> impl Iterator<Item = VisitIndex> {
        let is_followed = move |at: VisitIndex| {
            self.visits.iter().any(|other| match other.cause {
                Cause::After(before, _) | Cause::Failure(before) => {
                    before == at && other.within == Some(group)
                }
                Cause::Start | Cause::Entered(_) => false,
            })
        };
        self.numbered()
            .filter(move |(at, visit)| {
                let went_well = matches!(visit.end(), Some(StepEnd::Completed { .. } | StepEnd::Skipped));
                visit.within == Some(group) && went_well && !is_followed(*at)
            })
            .map(|(at, _)| at)
    }

    /// The name of the branch in which a visit is: that of its first step.
    pub fn branch_of(&self, mut at: VisitIndex) -> &str {
        while let Some(visit) = self.visit(at) {
            match visit.cause {
                Cause::After(before, _) | Cause::Failure(before) => at = before,
                Cause::Start | Cause::Entered(_) => {
                    return self.node(visit).map_or("", |node| node.id.as_str());
                }
            }
        }
        ""
    }

    /// Whether something goes on directly in a group, or in the run itself.
    pub(super) fn goes_on_in(&self, within: Option<VisitIndex>) -> bool {
        self.visits.iter().any(|visit| visit.within == within && !visit.is_over())
    }

    /// Whether something went wrong directly in a group, or in the run itself, and nothing was made of it.
    pub(super) fn went_wrong_in(&self, within: Option<VisitIndex>) -> bool {
        self.visits.iter().any(|visit| visit.within == within && self.is_unhandled(visit))
    }

    /// Whether a visit went wrong and its branch ended there.
    pub fn is_unhandled(&self, visit: &Visit) -> bool {
        match visit.end() {
            Some(StepEnd::Cancelled) => true,
            Some(StepEnd::Failed { .. }) if planted(Bug::FailureOverlooked) => false,
            Some(StepEnd::Failed { .. }) => {
                self.node(visit).is_none_or(|node| node.on_error == OnError::Stop)
            }
            Some(StepEnd::Completed { .. } | StepEnd::Skipped) | None => false,
        }
    }
}

impl Visit {
    /// How it ended, if it has.
    pub const fn end(&self) -> Option<&StepEnd> {
        match &self.state {
            VisitState::Over { end, .. } => Some(end),
            VisitState::Waiting | VisitState::Open(_) | VisitState::Inside => None,
        }
    }

    /// Whether it is over.
    pub const fn is_over(&self) -> bool {
        self.end().is_some()
    }

    /// Its job, if it has or had one.
    pub const fn job_id(&self) -> Option<&JobId> {
        match &self.state {
            VisitState::Open(job_id) => Some(job_id),
            VisitState::Over { job_id, .. } => job_id.as_ref(),
            VisitState::Waiting | VisitState::Inside => None,
        }
    }
}

/// The index of a visit: their number is bounded far below it.
pub(super) fn index(at: usize) -> VisitIndex {
    VisitIndex::try_from(at).unwrap_or(VisitIndex::MAX)
}
