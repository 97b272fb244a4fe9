//! The checker's own picture of a run: which step may begin when, and how a run whose steps ended so ends. Written down anew here, by
//! name; the walk of the domain is itself under test.

use std::collections::BTreeMap;

use domain::run::{RunEnd, StepEnd, VisitIndex};
use domain::{RecordId, Timestamp};

use super::{Violation, must};

/// The checker's own small fold of a run.
pub(super) struct Walk {
    pub(super) pipeline: String,
    pub(super) key: Option<String>,
    pub(super) visits: BTreeMap<VisitIndex, Seen>,
    pub(super) is_cancelled: bool,
    pub(super) was_reopened: bool,
    pub(super) end: Option<(RunEnd, Timestamp)>,
}

/// A step as the checker has seen it.
pub(super) struct Seen {
    pub(super) name: String,
    pub(super) job: RecordId,
    pub(super) end: Option<StepEnd>,
}

/// A step of a pipeline of `routed`, and what must have come before it.
pub(super) struct Rule {
    pub(super) pipeline: &'static str,
    pub(super) step: &'static str,
    pub(super) after: After,
    /// Whether something is made of its failure.
    failure: Handled,
}

pub(super) enum After {
    /// The event.
    Start,
    /// All of these, done.
    Done(&'static [&'static str]),
    /// This one, done or failed.
    Over(&'static str),
    /// This one, failed.
    Failed(&'static str),
}

#[derive(PartialEq, Eq)]
enum Handled {
    Yes,
    No,
}

pub(super) const RULES: [Rule; 10] = [
    Rule { pipeline: "survey", step: "measure", after: After::Start, failure: Handled::No },
    Rule { pipeline: "survey", step: "left", after: After::Done(&["measure"]), failure: Handled::No },
    Rule { pipeline: "survey", step: "right", after: After::Done(&["measure"]), failure: Handled::No },
    Rule { pipeline: "survey", step: "sum", after: After::Done(&["left", "right"]), failure: Handled::Yes },
    Rule { pipeline: "survey", step: "mend", after: After::Failed("sum"), failure: Handled::No },
    Rule { pipeline: "watch", step: "look", after: After::Start, failure: Handled::Yes },
    Rule { pipeline: "watch", step: "tell", after: After::Over("look"), failure: Handled::No },
    Rule { pipeline: "alarm", step: "ring", after: After::Start, failure: Handled::No },
    Rule { pipeline: "inquest", step: "ask", after: After::Start, failure: Handled::Yes },
    Rule { pipeline: "inquest", step: "shrug", after: After::Failed("ask"), failure: Handled::No },
];

impl Walk {
    pub(super) fn rule(&self, step: &str) -> Option<&'static Rule> {
        RULES.iter().find(|rule| rule.pipeline == self.pipeline && rule.step == step)
    }

    fn named<'a>(&'a self, step: &'a str) -> impl Iterator<Item = &'a Seen> {
        self.visits.values().filter(move |seen| seen.name == step)
    }

    /// How often a step began.
    pub(super) fn count(&self, step: &str) -> usize {
        self.named(step).count()
    }

    /// How often a step was done: as often as it emitted events, or once.
    fn done(&self, step: &str) -> usize {
        let times = |seen: &Seen| match seen.end {
            Some(StepEnd::Completed { emitted, .. }) => emitted.max(1) as usize,
            Some(StepEnd::Skipped | StepEnd::Failed { .. } | StepEnd::Cancelled) | None => 0,
        };
        self.named(step).map(times).sum()
    }

    fn failed(&self, step: &str) -> usize {
        self.named(step).filter(|seen| matches!(seen.end, Some(StepEnd::Failed { .. }))).count()
    }

    /// How often a step may have begun by now.
    pub(super) fn may_begin(&self, rule: &Rule) -> usize {
        match rule.after {
            After::Start => 1,
            After::Done(steps) => steps.iter().map(|step| self.done(step)).min().unwrap_or(0),
            After::Over(step) => self.done(step) + self.failed(step),
            After::Failed(step) => self.failed(step),
        }
    }

    /// Whether a step went wrong and nothing is made of it.
    fn is_unhandled(&self, seen: &Seen) -> bool {
        match seen.end {
            Some(StepEnd::Cancelled) => true,
            Some(StepEnd::Failed { .. }) => {
                self.rule(&seen.name).is_none_or(|rule| rule.failure == Handled::No)
            }
            Some(StepEnd::Completed { .. } | StepEnd::Skipped) | None => false,
        }
    }

    pub(super) fn expected_end(&self) -> RunEnd {
        if self.is_cancelled {
            RunEnd::Cancelled
        } else if self.visits.values().any(|seen| self.is_unhandled(seen)) {
            RunEnd::Failed
        } else {
            RunEnd::Completed
        }
    }

    /// A step is done again only where the walk still stands because of it.
    pub(super) fn reopen(&mut self, id: &RecordId, visit: VisitIndex) -> Result<(), Violation> {
        let stands = self.visits.get(&visit).is_some_and(|seen| self.is_unhandled(seen));
        must(stands && !self.is_cancelled, "I16", || {
            format!("visit {visit} of {id} is done again, and the run has moved on")
        })?;
        if let Some(seen) = self.visits.get_mut(&visit) {
            seen.end = None;
        }
        (self.end, self.was_reopened) = (None, true);
        Ok(())
    }
}
