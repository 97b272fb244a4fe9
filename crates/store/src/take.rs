//! Taking: who takes, from where, for how long, and what the take stands on.

use domain::{Lease, OwnerId, Timestamp};

/// A lane, and its limit.
#[derive(Clone, Copy, Debug)]
pub struct Lane<'a> {
    /// Its name.
    pub name: &'a str,
    /// How many of its jobs may be held at the same time, whoever holds them; none if only their takers know. Those of all lanes that
    /// are the same but for the node that they are pinned to count together.
    pub limit: Option<usize>,
}

impl<'a> From<&'a str> for Lane<'a> {
    /// A lane without a limit.
    fn from(name: &'a str) -> Self {
        Self { name, limit: None }
    }
}

/// Who takes, when, for how long, and how many at most.
#[derive(Clone, Debug)]
pub struct Take {
    /// Who takes; of several the first.
    pub owner: OwnerId,
    /// Who else takes: one record each, in this order. Empty if the first takes all.
    pub others: Vec<OwnerId>,
    /// The time of taking.
    pub now: Timestamp,
    /// The lease that the taker gets.
    pub lease: Lease,
    /// The most records.
    pub limit: usize,
    /// What it stands on once it is answered.
    pub footing: Footing,
}

/// What a take stands on once it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Footing {
    /// Stable storage: its taker may be told, wherever that is.
    Stable,
    /// The first commit after it: a power loss before that undoes the take, and if its taker outlives the store's machine, the fence refuses
    /// its commit. For whoever commits before doing anything that must not be done twice.
    NextCommit,
}

impl Take {
    /// By one taker.
    pub fn by(owner: OwnerId, now: Timestamp, lease: Lease, limit: usize) -> Self {
        Self { owner, others: Vec::new(), now, lease, limit, footing: Footing::Stable }
    }

    /// The same for a worker that commits before it does anything that must not be done twice: no sync is waited for.
    #[must_use]
    pub fn until_next_commit(self) -> Self {
        Self { footing: Footing::NextCommit, ..self }
    }

    /// One record for each of these, at most; none if there are none.
    pub fn one_each(owners: impl IntoIterator<Item = OwnerId>, now: Timestamp, lease: Lease) -> Option<Self> {
        let mut owners = owners.into_iter();
        let owner = owners.next()?;
        let others: Vec<OwnerId> = owners.collect();
        let limit = others.len() + 1;
        Some(Self { owner, others, now, lease, limit, footing: Footing::Stable })
    }

    /// Who takes the record that so many were taken before.
    pub fn owner_after(&self, taken: usize) -> &OwnerId {
        taken.checked_sub(1).and_then(|nth| self.others.get(nth)).unwrap_or(&self.owner)
    }
}
