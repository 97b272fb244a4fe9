//! Claims: a live lease is taken by nobody, versions only rise, and a fence is looked at.

use std::collections::BTreeSet;

use domain::{Claim, Fence, OwnerId, RecordId, RecordKind, Timestamp};
use store::{Change, Tables, Take, Taken};

use super::{Checker, Stream, Violation, broken, must};
use crate::counters::{Counters, Sometimes};
use crate::faults::MAX_SKEW;
use crate::heap::SECOND;

/// What was asked of the store and what it gave.
pub struct Taking<'a> {
    /// What it gave.
    pub taken: &'a [Taken],
    /// Who asked, and when.
    pub take: &'a Take,
    /// For what.
    pub from: From<'a>,
}

/// Where records are taken from.
#[derive(Clone, Copy, Debug)]
pub enum From<'a> {
    /// What is due of a kind.
    Due(RecordKind),
    /// What is ready in a lane.
    Lane(&'a str),
    /// One record, by its name.
    Anywhere,
}

impl Checker {
    /// Records were taken; `owners` are those whose process lives.
    pub fn taken(
        &mut self,
        tables: &Tables,
        taking: &Taking<'_>,
        store_time: Timestamp,
        owners: &BTreeSet<OwnerId>,
        counters: &mut Counters,
    ) -> Result<(), Violation> {
        let Taking { taken, take, from } = *taking;
        self.oldest_first(taken, take, from)?;
        must(taken.len() <= take.limit, "I12", || format!("{} taken of {}", taken.len(), take.limit))?;
        for taken in taken {
            let Some(stream) = self.streams.get_mut(&taken.id) else {
                return broken("I6", || format!("{} was taken and has no facts", taken.id));
            };
            stream.may_be_taken(taken, store_time)?;
            if let Some(before) = &stream.claim
                && stream.held
                && before.owner != taken.claim.owner
                && owners.contains(&before.owner)
            {
                counters.saw(Sometimes::TakeOverWhileHolderLives);
            }
            stream.follow(tables, taken)?;
        }
        Ok(())
    }

    /// A lease was prolonged, or not.
    pub fn renewed(
        &mut self,
        tables: &Tables,
        id: &RecordId,
        fence: &Fence,
        taken: &Taken,
        store_time: Timestamp,
        counters: &mut Counters,
    ) -> Result<(), Violation> {
        let Some(stream) = self.streams.get_mut(id) else { return Ok(()) };
        must(stream.held, "I6", || format!("the claim on {id} was renewed after its release"))?;
        stream.admits(id, fence)?;
        if let Some(before) = &stream.claim {
            let left = before.lease_expires_at.micros() - store_time.micros();
            if (1..=SECOND).contains(&left) && stream.held {
                counters.saw(Sometimes::RenewedInLastSecond);
            }
        }
        stream.follow(tables, taken)
    }

    /// A record was given back.
    pub fn handed_back(&mut self, tables: &Tables, id: &RecordId, fence: &Fence) -> Result<(), Violation> {
        let (Some(stream), Some(row)) = (self.streams.get_mut(id), tables.agenda.get(id)) else {
            return Ok(());
        };
        stream.admits(id, fence)?;
        // What its holder had let go before is due when that said.
        must(row.due_at.is_some() || !stream.held, "agenda", || {
            format!("{id} was given back and is not due")
        })?;
        stream.copy_row(row);
        Ok(())
    }

    /// A commit under a fence happens only if its owner holds the claim.
    pub(super) fn check_fence(&self, change: &Change) -> Result<(), Violation> {
        let (Some(fence), Some(stream)) = (&change.fence, self.streams.get(&change.id)) else {
            return Ok(());
        };
        if stream.version != change.expected.version {
            // A repeat of a commit that is there already: its fence counted then.
            return Ok(());
        }
        stream.admits(&change.id, fence)
    }

    /// A commit that was refused leaves the claim as it was: nothing is given back before its write is done.
    pub(super) fn is_untouched(&self, tables: &Tables, id: &RecordId) -> Result<(), Violation> {
        let before = self.streams.get(id).map(|stream| (&stream.claim, stream.held, stream.due_at));
        let after = tables.agenda.get(id).map(|row| (&row.claim, row.held, row.due_at));
        must(before == after, "I6", || format!("a refused commit changed the claim on {id} to {after:?}"))
    }

    /// Of what is there and free, the oldest is taken first.
    fn oldest_first(&self, taken: &[Taken], take: &Take, from: From<'_>) -> Result<(), Violation> {
        let turn = |id: &RecordId, stream: &Stream| match from {
            From::Due(kind) => stream.due_at.filter(|_| id.kind() == kind).map(|due_at| (0, due_at.micros())),
            From::Lane(lane) => {
                let place = stream.place.as_ref().filter(|place| stream.ready && *place.lane == *lane)?;
                Some((-place.priority, place.sequence))
            }
            From::Anywhere => Some((0, 0)),
        };
        let mut last = None;
        for taken in taken {
            let turn = self.streams.get(&taken.id).and_then(|stream| turn(&taken.id, stream));
            must(turn.is_some(), "oldest first", || format!("{} was not to be taken by {from:?}", taken.id))?;
            last = last.max(turn);
        }
        for (id, stream) in &self.streams {
            let earlier = turn(id, stream).is_some_and(|turn| Some(turn) < last);
            if earlier && stream.is_free(take.now) && !taken.iter().any(|taken| taken.id == *id) {
                return broken("oldest first", || {
                    format!("the turn of {id} was before others that were taken")
                });
            }
        }
        Ok(())
    }
}

impl Stream {
    fn is_free(&self, now: Timestamp) -> bool {
        !self.claim.as_ref().is_some_and(|claim| claim.is_live(now))
    }

    fn may_be_taken(&self, taken: &Taken, store_time: Timestamp) -> Result<(), Violation> {
        let latest = store_time.plus_micros(MAX_SKEW);
        let over = self.limit_at.is_some_and(|limit| limit <= latest);
        let next = match &self.claim {
            None => 0,
            Some(before) => {
                let live = self.held && before.is_live(latest);
                must(!live || over || before.owner == taken.claim.owner, "I6", || {
                    format!("{} took {} from {before:?} at {store_time:?}", taken.claim.owner, taken.id)
                })?;
                before.claim_version + 1
            }
        };
        must(taken.claim.claim_version == next, "I6", || {
            format!("{} was taken as claim {}, not {next}", taken.id, taken.claim.claim_version)
        })
    }

    fn admits(&self, id: &RecordId, fence: &Fence) -> Result<(), Violation> {
        let holds = |claim: &Claim| claim.owner == fence.owner && claim.claim_version == fence.claim_version;
        must(self.claim.as_ref().is_some_and(holds), "fence", || {
            format!("{id} was written under {fence:?}, but its claim is {:?}", self.claim)
        })
    }

    /// Takes over the claim that the store now has.
    fn follow(&mut self, tables: &Tables, taken: &Taken) -> Result<(), Violation> {
        let Some(row) = tables.agenda.get(&taken.id) else {
            return broken("I6", || format!("{} has no agenda row", taken.id));
        };
        let before = self.claim.as_ref().map(|claim| claim.claim_version);
        must(Some(taken.claim.claim_version) > before, "I6", || {
            format!("the claim of {} went from {before:?} to {}", taken.id, taken.claim.claim_version)
        })?;
        let limit = row.limit_at.filter(|limit| *limit > taken.claim.heartbeat_at);
        let latest =
            limit.map_or(taken.claim.lease_expires_at, |limit| limit.min(taken.claim.lease_expires_at));
        let due = row.due_at.is_some_and(|due_at| due_at <= latest);
        must(row.held && !row.ready && due && row.claim.as_ref() == Some(&taken.claim), "agenda", || {
            format!("{} is held as {:?}, its agenda is {row:?}", taken.id, taken.claim)
        })?;
        self.copy_row(row);
        Ok(())
    }
}
