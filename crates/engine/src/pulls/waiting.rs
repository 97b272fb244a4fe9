//! Those who wait, by lane, first come first served; and the lanes that are known to be empty.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use domain::job::{differ_in_circle, is_pulled};
use domain::{OwnerId, Timestamp};
use store::Taken;
use tokio::sync::oneshot;

use super::PulledLane;
use crate::locked::Locked;

/// Lanes that are known to be empty; when there are more, they are asked again.
const MAX_KNOWN: usize = 65_536;

/// Someone who waits.
pub(crate) struct Waiter {
    owner: OwnerId,
    told: Mutex<Option<oneshot::Sender<Taken>>>,
}

/// Everyone who waits on this node.
#[derive(Default)]
pub(crate) struct Waiting {
    count: usize,
    by_lane: BTreeMap<Arc<str>, Queue>,
    /// Lanes that somebody waits for and that may have something.
    to_ask: BTreeSet<Arc<str>>,
    /// Lanes that had nothing when they were asked last, and of which nothing was heard since.
    empty: BTreeSet<Arc<str>>,
    /// Whether the store must be asked which lanes have something.
    look: bool,
    /// When work of a lane was asked for last.
    asked: BTreeMap<Arc<str>, Timestamp>,
}

#[derive(Default)]
struct Queue {
    limit: Option<usize>,
    waiters: VecDeque<Arc<Waiter>>,
}

impl Waiter {
    pub(super) fn new(owner: OwnerId, told: oneshot::Sender<Taken>) -> Self {
        Self { owner, told: Mutex::new(Some(told)) }
    }

    /// Gives what was taken; it comes back if nobody waits for it any more.
    pub(super) fn tell(&self, taken: Taken) -> Option<Taken> {
        match self.told.locked().take() {
            Some(told) => told.send(taken).err(),
            None => Some(taken),
        }
    }

    fn is_waiting(&self) -> bool {
        self.told.locked().as_ref().is_some_and(|told| !told.is_closed())
    }
}

impl Waiting {
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// How many wait for the work of a lane in other circles.
    pub(super) fn elsewhere(&self, lane: &str) -> usize {
        let others = self.by_lane.iter().filter(|(other, _)| differ_in_circle(lane, other));
        others.map(|(_, queue)| queue.waiters.iter().filter(|waiter| waiter.is_waiting()).count()).sum()
    }

    /// Whether somebody waits for work of a lane, or has asked for it within these seconds.
    pub(super) fn is_asked(&self, lane: &str, within_seconds: u64, now: Timestamp) -> bool {
        let recently = |at: &Timestamp| now < at.plus_seconds(within_seconds);
        self.by_lane.contains_key(lane) || self.asked.get(lane).is_some_and(recently)
    }

    /// Somebody asks for work of these lanes.
    pub(super) fn note_asked(&mut self, lanes: &[PulledLane], now: Timestamp) {
        if self.asked.len() + lanes.len() > MAX_KNOWN {
            self.asked.clear();
        }
        for lane in lanes {
            self.asked.insert(lane.name.clone(), now);
        }
    }

    /// Whether a lane is known to have nothing.
    pub(super) fn is_empty(&self, lane: &str) -> bool {
        self.empty.contains(lane)
    }

    /// Someone waits from now on. Whether a lane should be asked for it.
    pub(super) fn add(&mut self, waiter: &Arc<Waiter>, lanes: &[PulledLane]) -> bool {
        self.count += 1;
        let mut asked = false;
        for lane in lanes {
            let queue = self.by_lane.entry(lane.name.clone()).or_default();
            queue.limit = lane.limit;
            queue.waiters.push_back(waiter.clone());
            if !self.empty.contains(&lane.name) {
                asked |= self.to_ask.insert(lane.name.clone());
            }
        }
        asked
    }

    /// Someone waits no more.
    pub(super) fn remove(&mut self, waiter: &Arc<Waiter>, lanes: &[PulledLane]) {
        self.count -= 1;
        for lane in lanes {
            let Some(queue) = self.by_lane.get_mut(&lane.name) else { continue };
            queue.waiters.retain(|other| !Arc::ptr_eq(other, waiter));
            if queue.waiters.is_empty() {
                self.by_lane.remove(&lane.name);
                self.to_ask.remove(&lane.name);
            }
        }
    }

    /// The one of this name who waits in a lane.
    pub(super) fn remove_owner(&mut self, lane: &str, owner: &OwnerId) -> Option<Arc<Waiter>> {
        let queue = self.by_lane.get_mut(lane)?;
        let nth = queue.waiters.iter().position(|waiter| waiter.owner == *owner && waiter.is_waiting())?;
        queue.waiters.remove(nth)
    }

    /// Something may be ready in a lane. Whether it should be asked.
    pub(super) fn may_be_ready(&mut self, lane: &Arc<str>) -> bool {
        if !is_pulled(lane) {
            return false;
        }
        self.empty.remove(lane);
        self.by_lane.contains_key(lane) && self.to_ask.insert(lane.clone())
    }

    /// Nothing is known any more. Whether anybody cares.
    pub(super) fn look_again(&mut self) -> bool {
        self.empty.clear();
        self.look = self.count > 0;
        self.look
    }

    /// Whether the store must be asked which lanes have something; it is asked once.
    pub(crate) fn take_look(&mut self) -> bool {
        std::mem::take(&mut self.look)
    }

    /// The lanes to ask, most particular first: what is meant for one peer goes before what is for anyone.
    pub(crate) fn take_to_ask(&mut self) -> Vec<Arc<str>> {
        std::mem::take(&mut self.to_ask).into_iter().rev().collect()
    }

    /// A lane is to be asked, if anyone waits for it.
    pub(crate) fn ask(&mut self, lane: Arc<str>) {
        if self.by_lane.contains_key(&lane) {
            self.to_ask.insert(lane);
        }
    }

    /// A lane, and those who wait in it, the first that came first.
    pub(crate) fn in_lane(&self, lane: &Arc<str>, limit: usize) -> (PulledLane, Vec<OwnerId>) {
        let queue = self.by_lane.get(lane);
        let waiters = queue.into_iter().flat_map(|queue| &queue.waiters);
        let owners = waiters.filter(|waiter| waiter.is_waiting()).take(limit);
        let owners = owners.map(|waiter| waiter.owner.clone()).collect();
        (PulledLane { name: lane.clone(), limit: queue.and_then(|queue| queue.limit) }, owners)
    }

    /// A lane had nothing more when it was asked. What has come since names it again; one with a limit may only be full.
    pub(crate) fn was_empty(&mut self, lane: &PulledLane) {
        if self.to_ask.contains(&lane.name) || lane.limit.is_some() {
            return;
        }
        if self.empty.len() >= MAX_KNOWN {
            self.empty.clear();
        }
        self.empty.insert(lane.name.clone());
    }
}
