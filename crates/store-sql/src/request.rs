//! What a writer can be asked, who waits for the answer, and what it answers.

use domain::ask::{Ask, Closing};
use domain::peer::{Peer, Sighting};
use domain::timeline::{Anchor, Step};
use domain::{Fence, Lease, RecordId, RecordKind, Timestamp};
use store::{Committed, Footing, Node, StoreError, Take, Taken, Taking, Token};
use tokio::sync::oneshot;

use crate::prepare::Prepared;

/// What a writer can be asked.
pub(crate) enum Request {
    /// Write a commit.
    Commit(Prepared),
    /// Take, renew or hand back.
    Claim(ClaimRequest),
    /// Keep or revoke an access token.
    Token(TokenRequest),
    /// Keep, order about or remove a node.
    Node(NodeRequest),
    /// Keep, forget or sight peers.
    Peer(PeerRequest),
    /// Keep or close an ask.
    Ask(AskRequest),
    /// Keep where the time of the store stands.
    Clock(ClockRequest),
}

/// A request about claims.
pub(crate) enum ClaimRequest {
    TakeDue {
        kind: RecordKind,
        take: Take,
    },
    TakeReady {
        lane: String,
        limit: Option<usize>,
        take: Take,
    },
    Take {
        id: RecordId,
        take: Take,
    },
    Renew {
        id: RecordId,
        fence: Fence,
        now: Timestamp,
        lease: Lease,
    },
    HandBack {
        id: RecordId,
        fence: Fence,
        now: Timestamp,
        due_at: Timestamp,
    },
    /// Ends the leases of dead owners, whose ids begin so.
    EndLeases {
        owners: String,
        now: Timestamp,
    },
}

/// A request about tokens.
pub(crate) enum TokenRequest {
    Keep(Token),
    Revoke { id: String, at: Timestamp },
}

/// A request about nodes.
pub(crate) enum NodeRequest {
    Keep { node: Node, forget_before: Timestamp },
    Tell { id: String, taking: Taking },
    Remove { id: String },
}

/// A request about peers.
pub(crate) enum PeerRequest {
    Keep(Box<Peer>),
    Forget { id: String, version: u64 },
    Sight(Vec<Sighting>),
}

/// A request about asks.
pub(crate) enum AskRequest {
    Keep { ask: Box<Ask>, replied: Option<Closing> },
    Close { id: String, closing: Closing },
}

/// A request about the time of the store.
pub(crate) struct ClockRequest {
    pub(crate) anchor: Anchor,
    pub(crate) step: Option<Step>,
}

/// A request, and who waits for its answer.
pub(crate) struct Item {
    pub(crate) request: Request,
    pub(crate) reply: oneshot::Sender<Result<Answer, StoreError>>,
}

/// What a writer answers.
pub(crate) enum Answer {
    Committed(Committed),
    Taken(Vec<Taken>),
    /// Whether what was named is known.
    Known(bool),
    Done,
}

impl Item {
    pub(crate) fn new(request: Request, reply: oneshot::Sender<Result<Answer, StoreError>>) -> Self {
        Self { request, reply }
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
            Self::Claim(_)
            | Self::Token(_)
            | Self::Node(_)
            | Self::Peer(_)
            | Self::Ask(_)
            | Self::Clock(_) => false,
        }
    }

    /// Roughly how many bytes it holds in the queue.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Commit(prepared) => prepared.weight(),
            Self::Claim(_) => 0,
            Self::Token(TokenRequest::Keep(token)) => {
                token.name.len() + token.scopes.iter().map(String::len).sum::<usize>()
            }
            Self::Token(TokenRequest::Revoke { id, .. }) => id.len(),
            Self::Node(_) | Self::Clock(_) => 0,
            Self::Peer(PeerRequest::Keep(peer)) => {
                let words = peer.labels.iter().chain(&peer.capabilities);
                peer.metadata.as_str().len() + words.map(String::len).sum::<usize>()
            }
            Self::Peer(PeerRequest::Forget { id, .. }) => id.len(),
            Self::Peer(PeerRequest::Sight(sightings)) => sightings.len() * size_of::<Sighting>(),
            Self::Ask(AskRequest::Keep { ask, .. }) => ask.text.len(),
            Self::Ask(AskRequest::Close { closing, .. }) => closing.message.as_ref().map_or(0, String::len),
        }
    }
}

impl Answer {
    pub(crate) fn committed(self) -> Option<Committed> {
        if let Self::Committed(committed) = self { Some(committed) } else { None }
    }

    pub(crate) fn taken(self) -> Option<Vec<Taken>> {
        if let Self::Taken(taken) = self { Some(taken) } else { None }
    }

    pub(crate) fn one_taken(self) -> Option<Taken> {
        self.taken().and_then(|taken| taken.into_iter().next())
    }

    pub(crate) fn known(self) -> Option<bool> {
        if let Self::Known(known) = self { Some(known) } else { None }
    }

    pub(crate) fn done(self) -> Option<()> {
        matches!(self, Self::Done).then_some(())
    }

    /// Whether it means that a row was changed.
    pub(crate) fn has_written(answer: &Result<Self, StoreError>) -> bool {
        match answer {
            Ok(Self::Taken(taken)) => !taken.is_empty(),
            Ok(Self::Known(known)) => *known,
            Ok(Self::Done | Self::Committed(_)) => true,
            Err(_) => false,
        }
    }
}
