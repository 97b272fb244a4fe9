//! The line between a running attempt and the engine.

use std::sync::{Arc, OnceLock};

use domain::job::{CancelRecipient, Release, Resubmit};
use domain::{Digest, Json, OperationId};
use tokio::sync::{mpsc, oneshot, watch};

/// The line between a running attempt and the engine.
#[derive(Clone, Debug)]
pub struct Link {
    progress: mpsc::Sender<Progress>,
    intents: mpsc::Sender<Asked>,
    stop: watch::Receiver<Stop>,
    cancel_sent: Arc<watch::Sender<Option<CancelRecipient>>>,
    left: Arc<OnceLock<Leftover>>,
}

/// What of an executor goes on when it has said how its attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftover {
    /// It goes on as it should, for other jobs.
    Persists,
    /// It was told to end, and nobody has waited for that.
    Ending,
}

/// The engine's end of the line.
pub struct AttemptControl {
    /// How it goes.
    pub told: mpsc::Receiver<Progress>,
    /// What it is about to do outside.
    pub(crate) intents: mpsc::Receiver<Asked>,
    /// Tells it to stop.
    pub stopper: watch::Sender<Stop>,
    /// Whether whoever does the work was sent a cancel.
    pub(crate) cancel_sent: watch::Receiver<Option<CancelRecipient>>,
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

/// A request to a service that is about to be made.
#[derive(Clone, Copy, Debug)]
pub struct Intent {
    /// The digest of the request; the request itself may hold secrets.
    pub request_sha256: Digest,
    /// Whether it may be made again when nobody knows what came of it.
    pub resubmit: Resubmit,
}

/// An intent that is written down: now the request may be made.
#[derive(Clone, Debug)]
pub struct Intended {
    /// The key to give to the service: a repeated request for the same work has the same one.
    pub key: OperationId,
    /// Whether an earlier attempt intended the same and nobody knows what came of it: look it up first, if that is possible.
    pub again: bool,
}

/// An intent that waits to be written down.
pub(crate) struct Asked {
    pub(crate) intent: Intent,
    pub(crate) answer: oneshot::Sender<Result<Intended, Stop>>,
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
    /// Its own doer has reported what came of it by other means: nothing of it is left to do.
    Reported,
    /// The lease went to another owner: nothing that it does counts any more.
    LeaseLost,
    /// The daemon stops.
    Shutdown,
}

impl Link {
    /// Both ends of a line.
    pub fn new(limit: usize) -> (Self, AttemptControl) {
        let (progress, told) = mpsc::channel(limit);
        let (intents, asked) = mpsc::channel(1);
        let (stopper, stop) = watch::channel(Stop::GoOn);
        let (sent, cancel_sent) = watch::channel(None);
        let link = Self { progress, intents, stop, cancel_sent: Arc::new(sent), left: Arc::default() };
        (link, AttemptControl { told, intents: asked, stopper, cancel_sent })
    }

    /// A line on which nobody listens, and what tells it to stop: to call a specialist outside of a job. Whatever it would leave with a
    /// service is refused, because nobody could write it down.
    pub fn unattended() -> (Self, watch::Sender<Stop>) {
        let (link, far_end) = Self::new(1);
        (link, far_end.stopper)
    }

    /// Tells how it goes. When too much is told at once, the rest is dropped: progress is a courtesy.
    pub fn tell(&self, progress: Progress) {
        let _ = self.progress.try_send(progress);
    }

    /// Writes down that work is about to be given to a service. Only then may it be: a crash before the answer is recorded finds the
    /// intent, and the next attempt asks under the same key or not at all.
    pub async fn intend(&self, intent: Intent) -> Result<Intended, Stop> {
        let (answer, answered) = oneshot::channel();
        // Nobody listens once the lease was lost.
        self.intents.send(Asked { intent, answer }).await.map_err(|_| Stop::LeaseLost)?;
        answered.await.unwrap_or(Err(Stop::LeaseLost))
    }

    /// Waits until the attempt must stop, and says why. The executor knows of a cancel then, and the record will say so.
    pub async fn stopped(&mut self) -> Stop {
        let stop = self.must_stop().await;
        if stop == Stop::Cancelled {
            self.sent_cancel_to(CancelRecipient::Executor);
        }
        stop
    }

    /// The same for whoever has begun nothing yet, or passes the word on: nobody has been sent a cancel by this.
    pub async fn must_stop(&mut self) -> Stop {
        match self.stop.wait_for(|stop| *stop != Stop::GoOn).await {
            Ok(stop) => *stop,
            Err(_) => Stop::Shutdown,
        }
    }

    /// A cancel went to whoever does the work.
    pub fn sent_cancel_to(&self, recipient: CancelRecipient) {
        self.cancel_sent.send_if_modified(|sent| {
            let first = sent.is_none();
            sent.get_or_insert(recipient);
            first
        });
    }

    /// Something of the executor goes on beyond this attempt. Said before the attempt's end.
    pub fn leave(&self, left: Leftover) {
        // The first word stays.
        let _ = self.left.set(left);
    }

    /// What became of an executor that has said how its attempt ended, as far as that was seen.
    pub(crate) fn release(&self) -> Option<Release> {
        match self.left.get() {
            None => Some(Release::Ended),
            Some(Leftover::Persists) => Some(Release::Persists),
            Some(Leftover::Ending) => None,
        }
    }
}
