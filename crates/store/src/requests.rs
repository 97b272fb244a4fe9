//! What is asked of a store, as data, and what comes back. The tables of `contract.rs` make the requests, answers and calls by the macros here.

use domain::{Fence, Lease, RecordId, RecordKind, Timestamp};

use crate::contract::{Reply, SideWrite};
use crate::error::too_large;
use crate::peers::{check_peer, check_sightings};
use crate::{StoreError, Take, Taken, Urgency};

/// A request about claims.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the call of this name says it")]
pub enum ClaimRequest {
    /// Take records that are due.
    TakeDue { kind: RecordKind, take: Take },
    /// Take jobs that are ready in a lane.
    TakeReady { lane: String, limit: Option<usize>, take: Take },
    /// Take one record.
    Take { id: RecordId, take: Take },
    /// Prolong a lease.
    Renew { id: RecordId, fence: Fence, now: Timestamp, lease: Lease },
    /// Give a record back.
    HandBack { id: RecordId, fence: Fence, now: Timestamp, due_at: Timestamp },
    /// End the leases of dead owners, whose ids begin so.
    EndLeases { owners: String, now: Timestamp },
}

/// What came of a request about claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimOutcome {
    /// These are held now: as many as there were for who takes several, one for who takes or renews one.
    Taken(Vec<Taken>),
    /// What was named is released.
    Released,
}

impl ClaimOutcome {
    /// What was taken.
    pub fn taken(self) -> Option<Vec<Taken>> {
        if let Self::Taken(taken) = self { Some(taken) } else { None }
    }

    /// The one that was taken.
    pub fn one(self) -> Option<Taken> {
        self.taken().and_then(|taken| taken.into_iter().next())
    }

    /// Whether it is an answer to who gives back.
    pub fn released(self) -> Option<()> {
        (self == Self::Released).then_some(())
    }
}

impl SideWrite {
    /// Refuses what is over its limits, before anything is queued.
    pub fn check(&self) -> Result<(), StoreError> {
        match self {
            Self::KeepToken { token } => token.check(),
            Self::KeepNode { node, .. } => node.check(),
            Self::KeepPeer { peer } => check_peer(peer),
            Self::NoteSightings { sightings } => check_sightings(sightings),
            Self::KeepAsk { ask, .. } => ask.check().map_err(|refusal| too_large(&refusal)),
            Self::CloseAsk { closing, .. } => closing.check().map_err(|refusal| too_large(&refusal)),
            Self::RevokeToken { .. }
            | Self::TellNode { .. }
            | Self::RemoveNode { .. }
            | Self::ForgetPeer { .. }
            | Self::KeepClock { .. }
            | Self::TimersMoved { .. } => Ok(()),
        }
    }

    /// Whether it may be refused first when too much waits.
    pub fn urgency(&self) -> Urgency {
        if matches!(self, Self::KeepAsk { .. }) { Urgency::NewWork } else { Urgency::Result }
    }
}

/// What a call asked for, out of what the store answers.
pub(crate) fn picked<'a, A: 'a, T: 'a>(reply: Reply<'a, A>, pick: fn(A) -> Option<T>) -> Reply<'a, T> {
    Box::pin(async move {
        pick(reply.await?).ok_or_else(|| StoreError::Broken("the answer belongs to another call".to_owned()))
    })
}

/// How a request holds what its call is only lent.
macro_rules! owned {
    (str) => {
        String
    };
    ($lent:ident) => {
        $lent
    };
    ($lent:ident: $argument:ident) => {
        $argument.to_owned()
    };
    (by value $given:ident: $argument:ident) => {
        $argument
    };
}

/// The requests and answers of `reads!`.
macro_rules! read_requests {
    ($($(#[$doc:meta])* $name:ident: $call:ident($($argument:ident: $(&$lent:ident)? $($given:ident$(<$of:ident>)?)?),*) -> $answer:ty;)*) => {
        /// What can be read: see the calls of [`Store`].
        #[derive(Clone, Debug)]
        #[allow(missing_docs, reason = "the call of this name says it")]
        pub enum ReadRequest {
            $($(#[$doc])* $name { $($argument: $(owned!($lent))? $($given$(<$of>)?)?),* },)*
        }

        /// What was read, by the name of the request.
        #[derive(Clone, Debug)]
        pub enum ReadAnswer {
            $($(#[$doc])* $name($answer),)*
        }
    };
}

/// The calls of `reads!`.
macro_rules! read_calls {
    ($($(#[$doc:meta])* $name:ident: $call:ident($($argument:ident: $(&$lent:ident)? $($given:ident$(<$of:ident>)?)?),*) -> $answer:ty;)*) => {
        $($(#[$doc])*
        fn $call(&self, $($argument: $(&$lent)? $($given$(<$of>)?)?),*) -> Reply<'_, $answer> {
            let request = ReadRequest::$name { $($argument: $(owned!($lent: $argument))? $(owned!(by value $given: $argument))?),* };
            picked(self.read(request), |answer| if let ReadAnswer::$name(found) = answer { Some(found) } else { None })
        })*
    };
}

/// The requests of `side_writes!`.
macro_rules! write_requests {
    ($($(#[$doc:meta])* $name:ident: $call:ident($($argument:ident: $(&$lent:ident)? $($given:ident$(<$of:ident>)?)?),*) -> $answer:tt;)*) => {
        /// What can be written beside the ledger: see the calls of [`Store`].
        #[derive(Clone, Debug)]
        #[allow(missing_docs, reason = "the call of this name says it")]
        pub enum SideWrite {
            $($(#[$doc])* $name { $($argument: $(owned!($lent))? $($given$(<$of>)?)?),* },)*
        }
    };
}

/// The calls of `side_writes!`.
macro_rules! write_calls {
    ($($(#[$doc:meta])* $name:ident: $call:ident($($argument:ident: $(&$lent:ident)? $($given:ident$(<$of:ident>)?)?),*) -> $answer:tt;)*) => {
        $($(#[$doc])*
        fn $call(&self, $($argument: $(&$lent)? $($given$(<$of>)?)?),*) -> Reply<'_, $answer> {
            let write = SideWrite::$name { $($argument: $(owned!($lent: $argument))? $(owned!(by value $given: $argument))?),* };
            effect!($answer: self.write(write))
        })*
    };
}

/// Whether a write had an effect, where its caller asks for that.
macro_rules! effect {
    (bool: $reply:expr) => {
        $reply
    };
    ((): $reply:expr) => {
        picked($reply, |_| Some(()))
    };
}

pub(crate) use {effect, owned, read_calls, read_requests, write_calls, write_requests};
