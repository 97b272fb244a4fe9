//! How a run goes on: which visits follow the end of one. Pure derivation from the shape; nothing is judged here.

use super::MAX_VISITS;
use super::command::{NewRun, StepEnd};
use super::fact::RunEnd;
use super::shape::{NodeIndex, NodeKind, OnError};
use super::state::{Cause, Run, Visit, VisitIndex, VisitState, index};
use crate::planted::{Bug, planted};
use crate::{JobId, RunId, Timestamp};

/// Why a run that came to more nodes than it may is condemned.
pub const TOO_MANY_STEPS: &str = "too_many_steps";

impl Run {
    /// The run right after it began.
    pub fn new(id: RunId, begun: &NewRun, at: Timestamp) -> Self {
        let mut run = Self {
            id,
            begun: begun.clone(),
            visits: Vec::new(),
            cancel: None,
            condemned: None,
            end: None,
            started_at: at,
            updated_at: at,
            ended_at: None,
        };
        run.come_to(0, None, Cause::Start);
        run
    }

    /// How it ends now, if nothing goes on.
    pub(super) fn comes_to_an_end(&self) -> Option<RunEnd> {
        if self.end.is_some() || self.goes_on_in(None) {
            return None;
        }
        Some(match (&self.cancel, self.condemned.is_some() || self.went_wrong_in(None)) {
            (Some(_), _) => RunEnd::Cancelled,
            (None, true) => RunEnd::Failed,
            (None, false) => RunEnd::Completed,
        })
    }

    /// The branches of a group begin.
    pub(super) fn enter(&mut self, at: VisitIndex) {
        let Some(visit) = self.visits.get_mut(usize::from(at)) else { return };
        visit.state = VisitState::Inside;
        let Some(NodeKind::Group { branches }) =
            self.begun.shape.node(visit.node).map(|node| node.kind.clone())
        else {
            return;
        };
        for first in branches {
            self.come_to(first, Some(at), Cause::Entered(at));
        }
        self.close(at);
    }

    /// A visit is over: what follows it begins, and the group that it was in may be over too.
    pub(super) fn end_visit(&mut self, at: VisitIndex, end: &StepEnd) {
        let Some(visit) = self.visits.get_mut(usize::from(at)) else { return };
        let job_id = visit.job_id().cloned();
        visit.state = VisitState::Over { end: end.clone(), job_id };
        let (within, node) = (visit.within, visit.node);
        let Some(node) = self.begun.shape.node(node) else { return };
        let (next, on_error) = (node.next, node.on_error);
        match (end, on_error) {
            (StepEnd::Completed { emitted, .. }, _) => {
                for ordinal in 0..(*emitted).max(1) {
                    self.follow(next, within, Cause::After(at, ordinal));
                }
            }
            (StepEnd::Skipped, _) => self.follow(next, within, Cause::After(at, 0)),
            (StepEnd::Failed { .. }, OnError::Continue) => self.follow(next, within, Cause::Failure(at)),
            (StepEnd::Failed { .. }, OnError::Go(handler)) => {
                self.follow(Some(handler), within, Cause::Failure(at));
            }
            (StepEnd::Failed { .. }, OnError::Stop) | (StepEnd::Cancelled, _) => {}
        }
        if let Some(group) = within {
            self.close(group);
        }
    }

    /// A step that had failed is done again: what was over because of it goes on.
    pub(super) fn reopen(&mut self, at: VisitIndex, job_id: &JobId) {
        let mut within = None;
        if let Some(visit) = self.visits.get_mut(usize::from(at)) {
            visit.state = VisitState::Open(job_id.clone());
            within = visit.within;
        }
        while let Some(group) = within.and_then(|group| self.visits.get_mut(usize::from(group))) {
            group.state = VisitState::Inside;
            within = group.within;
        }
        (self.end, self.ended_at) = (None, None);
    }

    /// Nothing that waits begins any more.
    pub(super) fn give_up_waiting(&mut self) {
        let waiting: Vec<VisitIndex> = self.waiting().collect();
        for at in waiting {
            self.end_visit(at, &StepEnd::Cancelled);
        }
    }

    fn follow(&mut self, next: Option<NodeIndex>, within: Option<VisitIndex>, cause: Cause) {
        if let Some(next) = next {
            self.come_to(next, within, cause);
        }
    }

    fn come_to(&mut self, node: NodeIndex, within: Option<VisitIndex>, cause: Cause) {
        if (self.cancel.is_some() || self.condemned.is_some()) && !planted(Bug::StepBegunAfterCancel) {
            return;
        }
        if self.visits.len() >= MAX_VISITS {
            self.condemned = Some(TOO_MANY_STEPS.to_owned());
            return;
        }
        let at = index(self.visits.len());
        self.visits.push(Visit { node, within, cause, state: VisitState::Waiting });
        let opens = self
            .begun
            .shape
            .node(node)
            .is_some_and(|node| !node.conditional && matches!(node.kind, NodeKind::Group { .. }));
        if opens {
            self.enter(at);
        }
    }

    /// A group in which nothing goes on is over.
    fn close(&mut self, group: VisitIndex) {
        let goes_on = self.goes_on_in(Some(group)) && !planted(Bug::JoinDoesNotWait);
        if goes_on || self.visit(group).is_none_or(Visit::is_over) {
            return;
        }
        let end = if self.went_wrong_in(Some(group)) {
            StepEnd::Failed { code: "branch_failed".to_owned() }
        } else {
            StepEnd::Completed { emitted: 1, left: None }
        };
        self.end_visit(group, &end);
    }
}
