//! What a writer can be asked, who waits for the answer, and what it answers.

pub(crate) mod answer;
pub(crate) mod side_writes;

use domain::peer::Sighting;
use store::{
    ClaimOutcome, ClaimRequest, Commit, Committed, Footing, Reply, SideWrite, StoreError, Taken, Urgency,
};
use tokio::sync::oneshot;

use crate::prepare::Prepared;
use crate::queue::Queue;

/// What a writer can be asked.
pub(crate) enum Request {
    /// Write a commit.
    Commit(Prepared),
    /// Take, renew or hand back.
    Claim(ClaimRequest),
    /// Write beside the ledger.
    Write(SideWrite),
}

/// A request, and who waits for its answer.
pub(crate) struct Item {
    pub(crate) request: Request,
    pub(crate) reply: oneshot::Sender<Result<Answer, StoreError>>,
}

/// What a writer answers.
pub(crate) enum Answer {
    Committed(Committed),
    Claim(ClaimOutcome),
    /// Whether the write had an effect.
    Written(bool),
}

impl Queue<Item> {
    /// Queues a commit, encoded on the caller's thread.
    pub(crate) fn commit(&self, commit: Commit) -> Reply<'_, Committed> {
        let urgency = commit.urgency;
        self.ask(Prepared::new(commit).map(Request::Commit), urgency, |answer| {
            if let Answer::Committed(committed) = answer { Some(committed) } else { None }
        })
    }

    pub(crate) fn claim(&self, request: ClaimRequest) -> Reply<'_, ClaimOutcome> {
        self.ask(Ok(Request::Claim(request)), Urgency::Result, |answer| {
            if let Answer::Claim(outcome) = answer { Some(outcome) } else { None }
        })
    }

    pub(crate) fn write(&self, write: SideWrite) -> Reply<'_, bool> {
        let urgency = write.urgency();
        self.ask(write.check().map(|()| Request::Write(write)), urgency, |answer| {
            if let Answer::Written(had_effect) = answer { Some(had_effect) } else { None }
        })
    }

    /// Queues work for the writer at once; the answer comes after the sync.
    fn ask<T: Send + 'static>(
        &self,
        request: Result<Request, StoreError>,
        urgency: Urgency,
        pick: fn(Answer) -> Option<T>,
    ) -> Reply<'_, T> {
        let (reply, answer) = oneshot::channel();
        let queued = request.and_then(|request| {
            let weight = request.weight();
            self.push(Item { request, reply }, urgency, weight)
        });
        Box::pin(async move {
            queued?;
            // A writer that ended without an answer may have committed.
            let answer = answer.await.unwrap_or(Err(StoreError::OutcomeUnknown))?;
            Ok(pick(answer).expect("every request is answered in kind"))
        })
    }
}

impl Request {
    /// Whether what it writes need not be on stable storage before a later commit is.
    pub(crate) fn stands_on_next_commit(&self) -> bool {
        match self {
            Self::Claim(
                ClaimRequest::TakeDue { take, .. }
                | ClaimRequest::TakeReady { take, .. }
                | ClaimRequest::Take { take, .. },
            ) => take.footing == Footing::NextCommit,
            Self::Commit(prepared) => prepared.commit.tells_nothing(),
            Self::Claim(_) | Self::Write(_) => false,
        }
    }

    /// Roughly how many bytes it holds in the queue.
    fn weight(&self) -> usize {
        match self {
            Self::Commit(prepared) => prepared.weight(),
            Self::Claim(_) => 0,
            Self::Write(write) => weight_of(write),
        }
    }
}

fn weight_of(write: &SideWrite) -> usize {
    match write {
        SideWrite::KeepToken { token } => {
            token.name.len() + token.scopes.iter().map(String::len).sum::<usize>()
        }
        SideWrite::RevokeToken { id, .. } => id.len(),
        SideWrite::ForgetPeer { key, .. } => key.id.len(),
        SideWrite::KeepPeer { peer } => {
            let words = peer.labels.iter().chain(&peer.capabilities);
            peer.metadata.as_str().len() + words.map(String::len).sum::<usize>()
        }
        SideWrite::NoteSightings { sightings } => sightings.len() * size_of::<Sighting>(),
        SideWrite::KeepAsk { ask, .. } => ask.text.len(),
        SideWrite::CloseAsk { closing, .. } => closing.message.as_ref().map_or(0, String::len),
        SideWrite::KeepNode { .. }
        | SideWrite::TellNode { .. }
        | SideWrite::RemoveNode { .. }
        | SideWrite::KeepClock { .. }
        | SideWrite::TimersMoved { .. } => 0,
    }
}

impl Answer {
    /// These were taken.
    pub(crate) fn taken(taken: Vec<Taken>) -> Self {
        Self::Claim(ClaimOutcome::Taken(taken))
    }

    /// What was named is released.
    pub(crate) const RELEASED: Self = Self::Claim(ClaimOutcome::Released);

    /// Whether it means that a row was changed.
    pub(crate) fn has_written(answer: &Result<Self, StoreError>) -> bool {
        match answer {
            Ok(Self::Claim(ClaimOutcome::Taken(taken))) => !taken.is_empty(),
            Ok(Self::Written(had_effect)) => *had_effect,
            Ok(Self::Claim(ClaimOutcome::Released) | Self::Committed(_)) => true,
            Err(_) => false,
        }
    }
}
