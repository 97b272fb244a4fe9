//! Whether this node may take work, and how long its attempts may count on their leases. The one file that decides it.
//!
//! A node that shares its store and has not heard the store's time for half a lease cannot know which leases are over, its own
//! least of all: it takes nothing. An attempt that could not renew stops while its lease still has time, so that whoever takes over
//! never works beside it. The fence in the store is the guarantee; this keeps the work itself from being done twice.

use std::sync::Arc;
use std::time::Duration;

use domain::{Lease, Timestamp};
use store::Taking;
use tokio::sync::watch;

use crate::SharedClock;

/// An attempt that could not renew begins to stop when its lease has so much time left: half of it to stop in, half of it in hand.
const MARGIN_SECONDS: u64 = 10;

/// How a node stands to its store.
pub struct Standing {
    /// The clock of a store that others have too.
    shared: Option<Arc<SharedClock>>,
    taking: watch::Sender<Taking>,
}

/// Whether a node may take work now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MayTake {
    /// It may.
    Yes,
    /// Not until it is told otherwise.
    NotDraining,
    /// Not until it has heard the store's time again.
    NotUnsure,
}

impl Standing {
    /// A node that has its store for itself.
    pub fn alone() -> Arc<Self> {
        Arc::new(Self { shared: None, taking: watch::Sender::default() })
    }

    /// A node that shares its store, and goes by its clock.
    pub fn shared(clock: Arc<SharedClock>) -> Arc<Self> {
        Arc::new(Self { shared: Some(clock), taking: watch::Sender::default() })
    }

    /// Whether new work may be taken.
    pub fn may_take(&self, lease: Lease) -> MayTake {
        match (self.is_sure(lease), *self.taking.borrow()) {
            (false, _) => MayTake::NotUnsure,
            (true, Taking::Drains) => MayTake::NotDraining,
            (true, Taking::Takes) => MayTake::Yes,
        }
    }

    /// Whether this node knows the store's time well enough to judge leases by it.
    pub fn is_sure(&self, lease: Lease) -> bool {
        self.shared.as_ref().is_none_or(|clock| clock.measured_ago() <= half_of(lease))
    }

    /// The clock that this node shares with others, if it does.
    pub(crate) const fn shared_clock(&self) -> Option<&Arc<SharedClock>> {
        self.shared.as_ref()
    }

    /// Whether other nodes have the store too.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// When an attempt whose lease was last renewed then stops by itself; never, if nobody could take it over.
    pub(crate) fn stops_at(&self, renewed_at: Timestamp, lease: Lease) -> Option<Timestamp> {
        let margin = i64::try_from(MARGIN_SECONDS * 1_000_000).unwrap_or(i64::MAX);
        self.is_shared().then(|| lease.expires_at(renewed_at).plus_micros(-margin))
    }

    /// How long work may take to stop before it is dropped.
    pub(crate) const STOPS_WITHIN_SECONDS: u64 = MARGIN_SECONDS / 2;

    /// Whether it takes work, as it was last told.
    pub fn taking(&self) -> Taking {
        *self.taking.borrow()
    }

    /// It was told to take work or not; whether that is news.
    pub(crate) fn told(&self, taking: Taking) -> bool {
        self.taking.send_if_modified(|current| std::mem::replace(current, taking) != taking)
    }
}

fn half_of(lease: Lease) -> Duration {
    let whole = lease.expires_at(Timestamp::default()).micros();
    Duration::from_micros(u64::try_from(whole / 2).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use store::StoreClock;

    use super::*;
    use crate::clock::{Measured, boot_clock};

    fn measured(seconds_ago: u64) -> Arc<SharedClock> {
        let ago = i64::try_from(seconds_ago * 1_000_000).expect("it is small");
        let measured = Measured {
            at: Timestamp::from_seconds(1_000),
            heard_at_boot: boot_clock() - ago,
            uncertainty: Duration::ZERO,
            correction_micros: 0,
            revision: 0,
        };
        Arc::new(SharedClock::new(Timestamp::default(), StoreClock::default(), 300, move || measured))
    }

    #[test]
    fn a_node_that_has_not_heard_the_time_for_half_a_lease_takes_nothing() {
        let lease = Lease::DEFAULT;
        assert_eq!(Standing::shared(measured(29)).may_take(lease), MayTake::Yes);
        assert_eq!(Standing::shared(measured(31)).may_take(lease), MayTake::NotUnsure);
        assert_eq!(Standing::alone().may_take(lease), MayTake::Yes);
    }

    #[test]
    fn a_node_that_drains_takes_nothing_until_it_is_told_otherwise() {
        let standing = Standing::shared(measured(0));
        assert!(standing.told(Taking::Drains) && !standing.told(Taking::Drains));
        assert_eq!(standing.may_take(Lease::DEFAULT), MayTake::NotDraining);
        assert!(standing.told(Taking::Takes));
        assert_eq!(standing.may_take(Lease::DEFAULT), MayTake::Yes);
    }

    #[test]
    fn an_attempt_stops_before_its_lease_ends_only_where_another_could_take_over() {
        let renewed_at = Timestamp::from_seconds(1_000);
        let stops_at = Standing::shared(measured(0)).stops_at(renewed_at, Lease::DEFAULT);
        assert_eq!(stops_at, Some(Timestamp::from_seconds(1_050)));
        assert_eq!(Standing::alone().stops_at(renewed_at, Lease::DEFAULT), None);
    }
}
