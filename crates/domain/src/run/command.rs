//! What may be ordered of a run.

use serde::{Deserialize, Serialize};

use super::files::Left;
use super::shape::{NodeIndex, Shape};
use super::state::{Cause, VisitIndex};
use crate::body::{BodyName, BodyRef};
use crate::event::{MAX_CORRELATION_BYTES, MAX_DEDUPE_KEY_BYTES};
use crate::job::NewJob;
use crate::limits::{MAX_LABEL_BYTES, check_indexed, check_optional, check_optional_bytes, check_text};
use crate::{EventId, JobId, Json, Refusal, RunId};

/// An order to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunCommand {
    /// Begin.
    Start(Box<NewRun>),
    /// Go on with what waits: what each visit is given to work with was prepared.
    Advance(Vec<Prepared>),
    /// The job of a step is over.
    EndStep {
        /// The visit.
        visit: VisitIndex,
        /// The job.
        job_id: JobId,
        /// How it ended.
        end: StepEnd,
    },
    /// The job of a step that had failed is done again.
    ReopenStep {
        /// The visit.
        visit: VisitIndex,
        /// The job.
        job_id: JobId,
    },
    /// Stop it, with everything that it has begun.
    RequestCancel {
        /// Who asks.
        by: Option<String>,
        /// Why.
        reason: String,
    },
    /// Stop the next of its jobs: a request to stop it reaches a few in each commit.
    ContinueCancel,
    /// Something is wrong with the run as a whole: nothing new begins, and it fails.
    Condemn {
        /// Why, short and machine-readable.
        reason: String,
    },
    /// Move what measures passed time: store time has jumped by a step of the clock.
    MoveTimers {
        /// By so many microseconds; negative if time went back.
        by_micros: i64,
    },
    /// It was kept long enough.
    Retire,
}

/// A new run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewRun {
    /// The pipeline.
    pub pipeline: String,
    /// Which version of it.
    pub version: String,
    /// What follows what.
    pub shape: Shape,
    /// What each step does.
    pub plan: BodyRef,
    /// The event that started it, as the first steps see it.
    pub input: BodyRef,
    /// The same, by its id.
    pub event_id: EventId,
    /// The run whose job emitted that event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<RunId>,
    /// Who may see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circle: Option<String>,
    /// How many events led to it.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub depth: u32,
    /// How deep its chain may go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<u32>,
    /// What names the same work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedupe_key: Option<String>,
    /// What is carried with everything that follows from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation: Option<Json>,
}

/// What a visit that waits is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// The visit.
    pub visit: VisitIndex,
    /// How the walk came there when it was prepared ([`Run::origin`](super::Run::origin)): as the run goes on, another visit may come to
    /// have this index.
    pub origin: Vec<(NodeIndex, Cause)>,
    /// What it is ready for.
    pub readiness: Readiness,
}

/// What a visit is ready for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// A step: this job.
    Job {
        /// Its id, made from the run, its event and the visit: done again, it is the same job.
        job_id: JobId,
        /// What it is asked to do.
        job: Box<NewJob>,
    },
    /// A group whose condition holds.
    Enter,
    /// Its condition does not hold: what follows it goes on with what it was given.
    Skip,
    /// It cannot be given anything; why.
    Fail {
        /// Short and machine-readable.
        code: String,
    },
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepEnd {
    /// With a result, and so many events.
    Completed {
        /// Events that it emitted.
        #[serde(default, skip_serializing_if = "crate::is_default")]
        emitted: u32,
        /// The files that it left for what follows it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        left: Option<Left>,
    },
    /// It was not to be done.
    Skipped,
    /// Without a result.
    Failed {
        /// Why, short and machine-readable.
        code: String,
    },
    /// It was stopped.
    Cancelled,
}

impl NewRun {
    /// Refuses what is over a limit.
    pub fn check(&self) -> Result<(), Refusal> {
        check_text("pipeline", &self.pipeline, MAX_LABEL_BYTES)?;
        check_text("version", &self.version, MAX_LABEL_BYTES)?;
        check_optional("circle", self.circle.as_deref(), MAX_LABEL_BYTES)?;
        check_indexed("dedupe_key", self.dedupe_key.as_deref(), MAX_DEDUPE_KEY_BYTES)?;
        let correlation = self.correlation.as_ref().map(Json::as_str);
        check_optional_bytes("correlation", correlation, MAX_CORRELATION_BYTES)?;
        self.plan.check_named(BodyName::Plan)?;
        self.input.check_named(BodyName::Input)?;
        self.shape.check()
    }
}
