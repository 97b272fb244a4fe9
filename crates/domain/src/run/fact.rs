//! What has happened to a run. Which visits follow is not written down: it derives from the shape.

use serde::{Deserialize, Serialize};

use super::command::{NewRun, StepEnd};
use super::state::VisitIndex;
use crate::JobId;
use crate::kind::Removal;

/// One thing that happened to a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunFact {
    /// It began.
    Started(Box<NewRun>),
    /// A step became a job.
    StepStarted {
        /// The visit.
        visit: VisitIndex,
        /// Its job.
        job_id: JobId,
    },
    /// The condition of a group holds, and its branches began.
    GroupEntered {
        /// The visit.
        visit: VisitIndex,
    },
    /// A step or a group is over.
    StepEnded {
        /// The visit.
        visit: VisitIndex,
        /// How.
        end: StepEnd,
    },
    /// A step that had failed is done again.
    StepReopened {
        /// The visit.
        visit: VisitIndex,
        /// Its job.
        job_id: JobId,
    },
    /// Someone asked to stop it.
    CancelRequested {
        /// Who.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// Why.
        reason: String,
        /// The first visit whose job was not asked to stop in this commit; none if all were.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<VisitIndex>,
    },
    /// More of its jobs were asked to stop.
    CancelContinued {
        /// The first visit whose job was not asked yet; none if all were.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<VisitIndex>,
    },
    /// Something is wrong with it as a whole, and nothing new begins.
    Condemned {
        /// Why.
        reason: String,
    },
    /// Its last step is over.
    Ended(RunEnd),
    /// Store time jumped by a step of the clock; what measures passed time was moved with it.
    TimersMoved {
        /// By so many microseconds; negative if time went back.
        by_micros: i64,
    },
    /// It was kept long enough; the stream ends here and goes.
    Retired,
}

impl RunFact {
    /// How the names begin under which they are stored.
    pub(crate) const KIND_PREFIXES: &'static [&'static str] = &["run."];

    /// The name and version under which it is stored: never changed once it was released.
    pub(crate) const fn kind_name(&self) -> &'static str {
        match self {
            Self::Started(_) => "run.started/1",
            Self::StepStarted { .. } => "run.step_started/1",
            Self::GroupEntered { .. } => "run.group_entered/1",
            Self::StepEnded { .. } => "run.step_ended/1",
            Self::StepReopened { .. } => "run.step_reopened/1",
            Self::CancelRequested { .. } => "run.cancel_requested/1",
            Self::CancelContinued { .. } => "run.cancel_continued/1",
            Self::Condemned { .. } => "run.condemned/1",
            Self::Ended(_) => "run.ended/1",
            Self::TimersMoved { .. } => "run.timers_moved/1",
            Self::Retired => "run.retired/1",
        }
    }

    /// What it takes away.
    pub(crate) const fn removal(&self) -> Removal {
        if matches!(self, Self::Retired) { Removal::Record } else { Removal::Nothing }
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    /// Every branch came to its end.
    Completed,
    /// One did not.
    Failed,
    /// It was stopped.
    Cancelled,
}
