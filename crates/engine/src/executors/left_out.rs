//! An executor that the operator has and that cannot be used now: a plugin whose manifest is broken, that is disabled, or that lacks
//! something.
//!
//! Its jobs wait where they are: nobody is let in, no try is used up, and whoever asks is told why. They go on when a daemon is
//! started that can use it. New ones are refused with the same words.

use std::borrow::Cow;

use domain::job::JobSpec;
use domain::{RetryPolicy, Timestamp};
use futures::future::BoxFuture;

use crate::{
    Admission, Assignment, Executor, ExecutorTraits, Failure, Link, Modes, Produced, Specialist, Unfit,
};

/// How long nobody looks at its jobs: nothing changes before the daemon is started anew.
const LOOKED_AT_EVERY_SECONDS: u64 = 3_600;
/// The word for it, on jobs and in answers.
const LEFT_OUT: &str = "executor_left_out";

/// An executor that is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// What jobs call it.
    pub name: String,
    /// Why, with the file where that is to be mended.
    pub why: String,
    /// The lane that its jobs queue in.
    pub lane: String,
    /// How its jobs are tried once it can be used.
    pub retry: RetryPolicy,
    /// Whether its jobs may wait for the node of an earlier step.
    pub needs_its_node: bool,
}

impl LeftOut {
    /// As an entry among the executors.
    pub fn executor(self) -> Executor {
        let retry = self.retry;
        Executor { specialist: std::sync::Arc::new(self), concurrency: 1, retry, modes: Modes::default() }
    }

    fn told(&self) -> String {
        format!("{:?} is left out: {}; mend it and start the daemon again", self.name, self.why)
    }
}

impl Specialist for LeftOut {
    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.name)
    }

    /// Only whoever asks for a run by hand comes here.
    fn produce(&self, _: Assignment, _: Link) -> BoxFuture<'_, Produced> {
        Box::pin(async { Produced::Unavailable(Failure::permanent(LEFT_OUT, self.told())) })
    }

    fn lane(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(&self.lane))
    }

    fn let_in(&self, now: Timestamp) -> Result<Admission, Timestamp> {
        Err(now.plus_seconds(LOOKED_AT_EVERY_SECONDS))
    }

    fn left_alone_until(&self, now: Timestamp) -> Option<Timestamp> {
        Some(now.plus_seconds(LOOKED_AT_EVERY_SECONDS))
    }

    fn left_out_because(&self) -> Option<&str> {
        Some(&self.why)
    }

    fn traits(&self) -> ExecutorTraits {
        let needs_its_node = self.needs_its_node;
        ExecutorTraits { takes_events: true, needs_its_node, ..ExecutorTraits::default() }
    }

    fn unfit(&self, _: &JobSpec) -> Option<Unfit> {
        Some(Unfit { field: "executor", code: LEFT_OUT, told: self.told() })
    }
}
