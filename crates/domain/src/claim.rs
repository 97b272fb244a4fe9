//! Claims: a lease on a record with an owner, an end and a fencing version (Azolla's claim record).
//!
//! One claim per record, never deleted while the record exists, so that `claim_version` only rises and an old
//! owner's compare-and-swap can never succeed again. A lease is an optimisation; the fence is the guarantee.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::planted::{Bug, planted};
use crate::{OwnerId, Refusal, Timestamp};

/// Who holds a record, until when, and the token that proves it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Unique per process and boot.
    pub owner: OwnerId,
    /// The end of the lease; equality counts as ended.
    pub lease_expires_at: Timestamp,
    /// The last successful acquisition or renewal.
    pub heartbeat_at: Timestamp,
    /// Rises with every acquisition and renewal.
    pub claim_version: u64,
}

/// What an owner shows to have its write accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    /// Who writes.
    pub owner: OwnerId,
    /// The version that the owner was given.
    pub claim_version: u64,
}

/// How long leases are and how often they are renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    seconds: u32,
    renew_every_seconds: u32,
}

impl Lease {
    /// 60 s, renewed every 20 s.
    pub const DEFAULT: Self = Self { seconds: 60, renew_every_seconds: 20 };
    /// The shortest and the longest lease.
    pub const BOUNDS_SECONDS: (u32, u32) = (30, 120);

    /// Refuses a lease outside the bounds, and a renewal too rare to be missed once.
    pub fn new(seconds: u32, renew_every_seconds: u32) -> Result<Self, Refusal> {
        let (shortest, longest) = Self::BOUNDS_SECONDS;
        if !(shortest..=longest).contains(&seconds) {
            return Err(Refusal::InvalidPolicy { field: "lease_seconds" });
        }
        if renew_every_seconds == 0 || renew_every_seconds > seconds / 2 {
            return Err(Refusal::InvalidPolicy { field: "renew_every_seconds" });
        }
        Ok(Self { seconds, renew_every_seconds })
    }

    /// How often its owner renews it.
    pub const fn renew_every_seconds(self) -> u64 {
        self.renew_every_seconds as u64
    }

    /// When a lease that starts now ends.
    pub fn expires_at(self, now: Timestamp) -> Timestamp {
        now.plus_seconds(u64::from(self.seconds))
    }

    /// When its owner renews it.
    pub fn renew_at(self, now: Timestamp) -> Timestamp {
        now.plus_seconds(u64::from(self.renew_every_seconds))
    }
}

/// Takes a free or ended claim; a live one is refused, and the caller goes on with the next record.
pub fn acquire(
    claim: Option<&Claim>,
    owner: &OwnerId,
    now: Timestamp,
    lease: Lease,
) -> Result<Claim, Refusal> {
    match claim {
        Some(claim) if claim.is_live(now) && !planted(Bug::LiveLeaseTaken) => Err(Refusal::ClaimHeld),
        Some(claim) => Ok(take_over(claim, owner, now, lease)),
        None => Ok(held(owner, 0, now, lease)),
    }
}

/// Takes a claim whatever its lease says: for a record that its owner has given back, or whose own time limit has passed, which ends the
/// work that the owner does.
pub fn take_over(claim: &Claim, owner: &OwnerId, now: Timestamp, lease: Lease) -> Claim {
    let rises = !planted(Bug::ClaimVersionReused);
    held(owner, claim.claim_version + u64::from(rises), now, lease)
}

/// Prolongs a lease by compare-and-swap on the version.
pub fn renew(claim: &Claim, fence: &Fence, now: Timestamp, lease: Lease) -> Result<Claim, Refusal> {
    admit(Some(claim), fence)?;
    Ok(held(&claim.owner, claim.claim_version + 1, now, lease))
}

/// Ends a lease now. The version stays: it never falls.
pub fn release(claim: &Claim, fence: &Fence, now: Timestamp) -> Result<Claim, Refusal> {
    admit(Some(claim), fence)?;
    Ok(Claim { lease_expires_at: claim.lease_expires_at.min(now), ..claim.clone() })
}

/// Whether a write under this fence may happen. Checked in the write's own transaction.
pub fn admit(claim: Option<&Claim>, fence: &Fence) -> Result<(), Refusal> {
    let holds =
        claim.is_some_and(|claim| claim.owner == fence.owner && claim.claim_version == fence.claim_version);
    if holds || planted(Bug::FenceNotChecked) { Ok(()) } else { Err(Refusal::ClaimLost) }
}

impl Claim {
    /// Whether the lease still runs.
    pub fn is_live(&self, now: Timestamp) -> bool {
        now < self.lease_expires_at
    }

    /// The fence of whoever holds this claim.
    pub fn fence(&self) -> Fence {
        Fence { owner: self.owner.clone(), claim_version: self.claim_version }
    }
}

fn held(owner: &OwnerId, claim_version: u64, now: Timestamp, lease: Lease) -> Claim {
    Claim { owner: owner.clone(), lease_expires_at: lease.expires_at(now), heartbeat_at: now, claim_version }
}

/// How the owners of claims from outside begin: never like a node, whose leases may be ended when it starts again.
const OUTSIDE: &str = "worker:";

impl OwnerId {
    /// Someone outside who does work: what it goes by there.
    pub fn outside(name: &str) -> Self {
        Self::new(format!("{OUTSIDE}{name}"))
    }

    /// The node of a process, the same for all that ever run there: its name without what is new with every start.
    pub fn node(&self) -> &str {
        self.as_str().rsplit_once('-').map_or(self.as_str(), |(node, _)| node)
    }

    /// What it goes by outside; none if it is a node.
    pub fn outside_name(&self) -> Option<&str> {
        self.as_str().strip_prefix(OUTSIDE)
    }
}
