//! What happens by itself. A worker takes no input, does one bounded round, is safe to repeat, and says when to come back.

mod attend;
mod dispatch;
mod due_times;
mod hand_out;
mod note_presence;
mod poll;
mod route;

use domain::Timestamp;
use futures::future::BoxFuture;

pub use attend::AttendJobs;
pub use dispatch::DispatchJobs;
pub use hand_out::HandOutJobs;
pub use note_presence::NotePresence;
pub use poll::PollOperations;
pub use route::RouteEvents;

use crate::{EngineError, MayTake};

/// How soon a node that does not know the store's time looks whether it does.
const UNSURE_SECONDS: u64 = 1;

/// A loop of ours that does one thing by itself.
pub trait Worker: Send + Sync {
    /// Its name: a verb phrase, for logs.
    fn name(&self) -> &'static str;

    /// What the log says of a round that failed; the next one comes all the same.
    fn failed_round(&self) -> &'static str {
        "round failed"
    }

    /// One bounded round.
    fn round(&self, now: Timestamp) -> BoxFuture<'_, Result<Next, EngineError>>;

    /// Ends when there may be something to do before the time that the last round named.
    fn woken(&self) -> BoxFuture<'_, ()>;
}

/// When a worker comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// At once: there is more.
    Now,
    /// At that time, or when woken.
    At(Timestamp),
    /// When woken.
    WhenWoken,
}

impl Next {
    /// When to come back if nothing may be taken now.
    fn if_nothing_is_taken(may_take: MayTake, now: Timestamp) -> Option<Self> {
        match may_take {
            MayTake::Yes => None,
            // Whoever is told to take again is woken.
            MayTake::NotDraining => Some(Self::WhenWoken),
            MayTake::NotUnsure => Some(Self::At(now.plus_seconds(UNSURE_SECONDS))),
        }
    }
}
