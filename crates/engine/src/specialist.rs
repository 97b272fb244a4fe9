//! The specialist: the one trait behind every executor.
//!
//! **The idempotence contract.** After a crash `produce` may be called again for the same job with another attempt, or after an
//! answer for the same attempt. Whatever it does outside must be keyed by the job's id or the attempt's id, so that a
//! repeated call finds the work that is there instead of starting it twice. A result is applied once in any case.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use domain::job::{Job, Retryable};
use domain::{AttemptId, Json};
use tokio::sync::{mpsc, watch};

/// What can do a job.
pub trait Specialist: Send + Sync {
    /// Does the work of one attempt, or says why not. Ends soon after `link` says stop.
    fn produce<'a>(
        &'a self,
        assignment: Assignment,
        link: Link,
    ) -> Pin<Box<dyn Future<Output = Produced> + Send + 'a>>;
}

/// One attempt of one job, and what it needs.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The job.
    pub job: Arc<Job>,
    /// The attempt: the fence of every report, and the key for whatever is done outside.
    pub attempt_id: AttemptId,
    /// 1 for the first.
    pub attempt_number: u32,
    /// The input, as JSON; `null` if the job has none.
    pub input: Vec<u8>,
    /// What it was answered so far, oldest first, when it is called again.
    pub answers: Vec<Vec<u8>>,
}

/// The line between a running attempt and the engine.
#[derive(Clone, Debug)]
pub struct Link {
    progress: mpsc::Sender<Progress>,
    stop: watch::Receiver<Stop>,
}

/// Word of a running attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The progress object.
    pub progress: Option<Json>,
    /// One line for people.
    pub note: Option<String>,
    /// A free label.
    pub phase: Option<String>,
}

/// Whether an attempt may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It may.
    GoOn,
    /// Someone asked to stop the job.
    Cancelled,
    /// Its time limit is over.
    TimeOver,
    /// The lease went to another owner: nothing that it does counts any more.
    LeaseLost,
    /// The daemon stops.
    Shutdown,
}

/// What came of an attempt.
#[derive(Clone, Debug)]
pub enum Produced {
    /// It is done.
    Completed(Output),
    /// It is not.
    Failed(Failure),
    /// What it needs is not there.
    Unavailable(Failure),
    /// Somebody else has it now and will report.
    Delivered,
    /// It needs an answer first.
    AwaitingInput {
        /// The question, as JSON.
        question: Vec<u8>,
    },
    /// It has stopped, as asked.
    Stopped,
    /// The same, with what there is to see of it.
    StoppedWith(Failure),
}

/// A result.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// For people.
    pub summary: Option<String>,
    /// The data, as JSON.
    pub data: Option<Vec<u8>>,
    /// The list of artifacts, as JSON.
    pub artifacts: Option<Vec<u8>>,
}

/// A failure.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Short and machine-readable.
    pub reason: String,
    /// For people.
    pub message: String,
    /// More of it for machines: a JSON object.
    pub details: Option<serde_json::Value>,
    /// Whether another attempt may help.
    pub retryable: Retryable,
    /// What there is to see of it: the list of artifacts, as JSON.
    pub artifacts: Option<Vec<u8>>,
}

impl Link {
    /// Both ends of a line.
    pub(crate) fn new(limit: usize) -> (Self, mpsc::Receiver<Progress>, watch::Sender<Stop>) {
        let (progress, told) = mpsc::channel(limit);
        let (stopper, stop) = watch::channel(Stop::GoOn);
        (Self { progress, stop }, told, stopper)
    }

    /// Tells how it goes. When too much is told at once, the rest is dropped: progress is a courtesy.
    pub fn tell(&self, progress: Progress) {
        let _ = self.progress.try_send(progress);
    }

    /// Waits until the attempt must stop, and says why.
    pub async fn stopped(&mut self) -> Stop {
        match self.stop.wait_for(|stop| *stop != Stop::GoOn).await {
            Ok(stop) => *stop,
            Err(_) => Stop::Shutdown,
        }
    }
}

impl Failure {
    /// A failure that another attempt may mend.
    pub fn transient(reason: &str, message: impl Into<String>) -> Self {
        Self {
            reason: reason.to_owned(),
            message: message.into(),
            details: None,
            retryable: Retryable::Yes,
            artifacts: None,
        }
    }

    /// A failure that no attempt will mend.
    pub fn permanent(reason: &str, message: impl Into<String>) -> Self {
        Self { retryable: Retryable::No, ..Self::transient(reason, message) }
    }
}
