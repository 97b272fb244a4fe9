//! The line between a running attempt and the engine.

use domain::Json;
use tokio::sync::{mpsc, watch};

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
