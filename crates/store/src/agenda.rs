//! The agenda: one plain row per record with its stream's head, its claim and its next due time.
//!
//! These are the rules of the row; every store applies them to the row that it has locked. `due_at` is the one time that
//! is indexed: while a record is held it is the end of the lease or the record's own limit, whichever is first.

use domain::attention::{Entry, Holding, Place};
use domain::planted::{Bug, planted};
use domain::timeline::Step;
use domain::{Claim, Fence, Lease, OwnerId, RecordId, Refusal, Timestamp, claim};

use crate::query::Head;

/// What the agenda knows of one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgendaRow {
    /// The end of the record's stream.
    pub head: Head,
    /// Who holds it or held it last.
    pub claim: Option<Claim>,
    /// Whether the claim counts.
    pub held: bool,
    /// Where it queues.
    pub place: Option<Place>,
    /// Whether it may be taken from there.
    pub ready: bool,
    /// When it needs someone.
    pub due_at: Option<Timestamp>,
    /// When anyone may take it although it is held.
    pub limit_at: Option<Timestamp>,
}

/// A record that was taken, with the fence that its taker shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The record.
    pub id: RecordId,
    /// The claim.
    pub claim: Claim,
    /// When whoever held it before was last heard of, if anyone did and the store knows.
    pub heard_at: Option<Timestamp>,
}

impl Taken {
    /// The claim of a record of which nobody asks who had it before.
    pub fn of(id: RecordId, claim: Claim) -> Self {
        Self { id, claim, heard_at: None }
    }
}

impl AgendaRow {
    /// The row of a new record.
    pub fn new(head: Head, entry: Entry, now: Timestamp, lease: Lease) -> Self {
        let mut row =
            Self { head, claim: None, held: false, place: None, ready: false, due_at: None, limit_at: None };
        row.commit(head, entry, now, lease);
        row
    }

    /// What a commit leaves: a lease-bound record stays with its holder, one that was never dispatched with whoever has claimed it from
    /// outside, any other is released.
    pub fn commit(&mut self, head: Head, entry: Entry, now: Timestamp, lease: Lease) {
        self.head = head;
        if planted(Bug::AgendaNotUpdated) && entry.holding == Holding::Free && self.held {
            return;
        }
        self.ready = entry.ready;
        self.place = entry.place;
        self.limit_at = entry.limit_at;
        match entry.holding {
            Holding::LeaseBound => {
                self.grant_if_released(now, lease);
                self.due_at = Some(self.limit_or_lease_end(now, lease));
            }
            Holding::Claimable if self.is_claimed_from_outside(now) => {
                self.ready = false;
                self.due_at = Some(self.limit_or_lease_end(now, lease));
            }
            Holding::Claimable | Holding::Free => {
                self.release(now);
                self.due_at = entry.due_at;
            }
        }
    }

    /// When its holder, or its last one, was last heard of.
    pub fn heard_at(&self) -> Option<Timestamp> {
        self.claim.as_ref().map(|claim| claim.heartbeat_at)
    }

    fn is_claimed_from_outside(&self, now: Timestamp) -> bool {
        let claim = self.claim.as_ref().filter(|_| self.held);
        claim.is_some_and(|claim| claim.is_live(now) && claim.owner.outside_name().is_some())
    }

    /// Whether a write under this fence may happen.
    pub fn admit(&self, fence: &Fence) -> Result<(), Refusal> {
        claim::admit(self.claim.as_ref(), fence)
    }

    /// Takes the row if nobody holds it, or if its own limit has passed.
    pub fn take(&mut self, owner: &OwnerId, now: Timestamp, lease: Lease) -> Result<Claim, Refusal> {
        let over = self.limit_at.is_some_and(|limit| limit <= now);
        let claim = match &self.claim {
            // What was given back is free also for whoever's clock is behind that of the giver.
            Some(last) if !self.held || over => claim::take_over(last, owner, now, lease),
            other => claim::acquire(other.as_ref(), owner, now, lease)?,
        };
        self.hold(claim.clone());
        // A limit that has passed is the taker's business now; only the end of the taker's lease is due.
        self.due_at = Some(match self.limit_at {
            Some(limit) if limit > now => limit.min(claim.lease_expires_at),
            Some(_) | None => claim.lease_expires_at,
        });
        Ok(claim)
    }

    /// Prolongs the lease of whoever shows the fence.
    pub fn renew(&mut self, fence: &Fence, now: Timestamp, lease: Lease) -> Result<Claim, Refusal> {
        let held = self.claim.as_ref().filter(|_| self.held).ok_or(Refusal::ClaimLost)?;
        let claim = claim::renew(held, fence, now, lease)?;
        self.hold(claim.clone());
        // A limit that has passed stays due: its owner does not push it away by staying alive.
        self.due_at = Some(self.limit_or_lease_end(now, lease));
        Ok(claim)
    }

    /// Ends the lease of whoever shows the fence, if it has not ended yet; the record is due when the giver says, but no later
    /// than its own limit.
    pub fn hand_back(&mut self, fence: &Fence, now: Timestamp, due_at: Timestamp) -> Result<(), Refusal> {
        let claim = self.claim.as_ref().ok_or(Refusal::ClaimLost)?;
        let released = claim::release(claim, fence, now)?;
        // What a commit has released, or its owner has handed back before, is due when that said.
        if !self.held {
            return Ok(());
        }
        self.claim = Some(released);
        self.held = false;
        self.due_at = Some(self.limit_at.map_or(due_at, |limit| limit.min(due_at)).max(now));
        Ok(())
    }

    /// Ends the lease of a holder that is known to be dead; the record is due at once.
    pub fn end_lease(&mut self, now: Timestamp) {
        if self.held {
            self.release(now);
            self.due_at = Some(now);
        }
    }

    /// Store time jumps: what is held is held for as long as before. Its limit moves along until the record itself, which knows what of it
    /// is a time of day, is written again.
    pub fn move_lease(&mut self, step: Step) {
        if !self.held {
            return;
        }
        let by = step.by_micros();
        let moved = |at: Timestamp| if at > step.from { at.plus_micros(by) } else { at };
        if let Some(claim) = &mut self.claim {
            claim.lease_expires_at = moved(claim.lease_expires_at);
        }
        self.limit_at = self.limit_at.map(moved);
        self.due_at = self.due_at.map(moved);
    }

    fn hold(&mut self, claim: Claim) {
        self.claim = Some(claim);
        self.held = true;
        self.ready = false;
    }

    fn release(&mut self, now: Timestamp) {
        self.held = false;
        if let Some(claim) = &mut self.claim {
            claim.lease_expires_at = claim.lease_expires_at.min(now);
        }
    }

    /// Work that goes on after a pause, or that nobody took, has the time of a lease to show that it is alive.
    fn grant_if_released(&mut self, now: Timestamp, lease: Lease) {
        if self.held {
            return;
        }
        self.held = true;
        if let Some(claim) = &mut self.claim {
            claim.lease_expires_at = lease.expires_at(now);
        }
    }

    fn limit_or_lease_end(&self, now: Timestamp, lease: Lease) -> Timestamp {
        let lease_ends =
            self.claim.as_ref().map_or_else(|| lease.expires_at(now), |claim| claim.lease_expires_at);
        self.limit_at.map_or(lease_ends, |limit| limit.min(lease_ends))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_goes_on_after_a_pause_has_the_lease_of_whoever_commits() {
        let at = Timestamp::from_seconds;
        let entry = |holding| Entry { holding, place: None, ready: false, due_at: None, limit_at: None };
        let lease = Lease::new(120, 40).expect("that is within the bounds");
        let mut row = AgendaRow::new(Head::default(), entry(Holding::Free), at(0), lease);
        row.take(&OwnerId::new("node-1"), at(0), lease).expect("it is free");
        row.commit(Head::default(), entry(Holding::Free), at(10), lease);
        row.commit(Head::default(), entry(Holding::LeaseBound), at(50), lease);
        assert_eq!(row.due_at, Some(at(170)));
        assert_eq!(row.claim.map(|claim| claim.lease_expires_at), Some(at(170)));
    }

    #[test]
    fn what_was_given_back_is_free_also_for_whoever_looks_at_an_earlier_time() {
        let at = Timestamp::from_seconds;
        let free = Entry { holding: Holding::Free, place: None, ready: true, due_at: None, limit_at: None };
        let mut row = AgendaRow::new(Head::default(), free.clone(), at(0), Lease::DEFAULT);
        let first = row.take(&OwnerId::new("node-1"), at(10), Lease::DEFAULT).expect("it is free");
        let held = row.take(&OwnerId::new("node-2"), at(11), Lease::DEFAULT);
        assert_eq!(held, Err(Refusal::ClaimHeld));
        row.commit(Head::default(), free, at(20), Lease::DEFAULT);
        let second = row.take(&OwnerId::new("node-2"), at(19), Lease::DEFAULT).expect("it is free");
        assert_eq!(second.claim_version, first.claim_version + 1);
        assert_eq!(row.admit(&first.fence()), Err(Refusal::ClaimLost));
    }

    #[test]
    fn claim_from_outside_outlives_what_is_said_of_work_that_was_never_dispatched() {
        let at = Timestamp::from_seconds;
        let entry = |holding| Entry { holding, place: None, ready: true, due_at: None, limit_at: None };
        let lease = Lease::new(60, 20).expect("that is within the bounds");
        for (owner, holding, said_at, kept) in [
            (OwnerId::outside("runner"), Holding::Claimable, 10, true),
            (OwnerId::outside("runner"), Holding::Claimable, 60, false),
            (OwnerId::outside("runner"), Holding::Free, 10, false),
            (OwnerId::new("node-1"), Holding::Claimable, 10, false),
        ] {
            let mut row = AgendaRow::new(Head::default(), entry(Holding::Claimable), at(0), lease);
            row.take(&owner, at(0), lease).expect("it is free");
            row.commit(Head::default(), entry(holding), at(said_at), lease);
            assert_eq!((row.held, row.ready), (kept, !kept), "{owner:?} {holding:?} {said_at}");
            assert_eq!(row.due_at, kept.then_some(at(60)));
        }
    }
}
