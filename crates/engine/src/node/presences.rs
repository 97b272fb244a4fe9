//! Who is heard of on this node. Kept in memory alone: whoever waits in a long poll or was heard of within the grace is present,
//! and only that somebody has come or gone is written down, many at once (`workers/note_presence.rs`).
//!
//! A peer that waits, or comes again within the grace, costs no statement. What a dead node has heard counts no more.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use domain::Timestamp;
use domain::peer::{PRESENCE_GRACE_SECONDS, Presence, Sighting};
use store::MAX_SIGHTINGS;
use tokio::sync::Notify;

use crate::Clock;
use crate::locked::Locked;

/// Peers that one node hears of at the same time; more are served, and not counted as present.
pub const MAX_HEARD: usize = 65_536;
/// Sightings that wait to be written; the oldest give way.
const MAX_UNSAID: usize = 2 * MAX_HEARD;

/// Those who are heard of on this node.
pub struct Presences {
    node: Arc<str>,
    clock: Arc<dyn Clock>,
    heard: Mutex<Heard>,
    changed: Notify,
}

/// One peer in one circle.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    circle: Option<Box<str>>,
    id: Box<str>,
}

#[derive(Default)]
struct Heard {
    peers: BTreeMap<Arc<Name>, One>,
    /// When each of them is looked at next: one entry per peer.
    lapses: BTreeSet<(Timestamp, Arc<Name>)>,
    unsaid: VecDeque<Sighting>,
}

struct One {
    /// How many of its requests wait.
    waiting: u32,
    seen_at: Timestamp,
}

/// A peer waits, as long as this lives.
pub struct Waits {
    presences: Arc<Presences>,
    name: Arc<Name>,
}

impl Presences {
    /// Nobody yet, on this node.
    pub fn new(node: &str, clock: Arc<dyn Clock>) -> Self {
        Self { node: Arc::from(node), clock, heard: Mutex::default(), changed: Notify::new() }
    }

    /// A peer was heard of.
    pub fn heard(&self, circle: Option<&str>, id: &str) {
        self.note(circle, id, 0);
    }

    /// A peer waits for something, until this is dropped; none if too many are heard of.
    pub fn waits(self: &Arc<Self>, circle: Option<&str>, id: &str) -> Option<Waits> {
        let name = self.note(circle, id, 1)?;
        Some(Waits { presences: self.clone(), name })
    }

    /// When a peer was heard of here, if it is present.
    pub fn seen_at(&self, circle: Option<&str>, id: &str) -> Option<Timestamp> {
        let now = self.clock.now();
        let heard = self.heard.locked();
        let one = heard.peers.get(&Name::new(circle, id))?;
        match one.waiting {
            0 => (one.lapses_at() > now).then_some(one.seen_at),
            _ => Some(now),
        }
    }

    /// How many are heard of.
    pub fn count(&self) -> usize {
        self.heard.locked().peers.len()
    }

    fn note(&self, circle: Option<&str>, id: &str, waiting: u32) -> Option<Arc<Name>> {
        let now = self.clock.now();
        let name = Arc::new(Name::new(circle, id));
        let mut heard = self.heard.locked();
        let is_full = heard.peers.len() >= MAX_HEARD;
        let name = match heard.peers.entry(name) {
            Entry::Occupied(mut known) => {
                let one = known.get_mut();
                one.seen_at = one.seen_at.max(now);
                one.waiting = one.waiting.saturating_add(waiting);
                return Some(known.key().clone());
            }
            Entry::Vacant(_) if is_full => return None,
            Entry::Vacant(new) => {
                let name = new.key().clone();
                let lapses_at = new.insert(One { waiting, seen_at: now }).lapses_at();
                heard.lapses.insert((lapses_at, name.clone()));
                name
            }
        };
        heard.say(name.sighting(&self.node, Presence::Present, now));
        drop(heard);
        self.changed.notify_one();
        Some(name)
    }

    /// What is to be written now, at most a batch, and when to look again.
    pub(crate) fn to_write(&self, now: Timestamp) -> (Vec<Sighting>, Option<Timestamp>) {
        let mut heard = self.heard.locked();
        while let Some((at, name)) = heard.lapses.first().cloned().filter(|(at, _)| *at <= now) {
            heard.lapses.remove(&(at, name.clone()));
            let Some(one) = heard.peers.get(&name) else { continue };
            let lapses_at = match one.waiting {
                0 => one.lapses_at(),
                _ => now.plus_seconds(PRESENCE_GRACE_SECONDS),
            };
            if lapses_at > now {
                heard.lapses.insert((lapses_at, name));
            } else {
                let gone = name.sighting(&self.node, Presence::Absent, one.seen_at);
                heard.peers.remove(&name);
                heard.say(gone);
            }
        }
        let next = heard.lapses.first().map(|(at, _)| *at);
        let some = heard.unsaid.len().min(MAX_SIGHTINGS);
        (heard.unsaid.drain(..some).collect(), next)
    }

    /// What could not be written is written next.
    pub(crate) fn not_written(&self, sightings: Vec<Sighting>) {
        let mut heard = self.heard.locked();
        for sighting in sightings.into_iter().rev() {
            heard.unsaid.push_front(sighting);
        }
        heard.unsaid.truncate(MAX_UNSAID);
    }

    /// Ends when there is something to write.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }
}

impl Heard {
    fn say(&mut self, sighting: Sighting) {
        if self.unsaid.len() >= MAX_UNSAID {
            self.unsaid.pop_front();
        }
        self.unsaid.push_back(sighting);
    }
}

impl One {
    fn lapses_at(&self) -> Timestamp {
        self.seen_at.plus_seconds(PRESENCE_GRACE_SECONDS)
    }
}

impl Name {
    fn new(circle: Option<&str>, id: &str) -> Self {
        Self { circle: circle.map(Box::from), id: Box::from(id) }
    }

    fn sighting(&self, node: &str, presence: Presence, seen_at: Timestamp) -> Sighting {
        Sighting {
            id: self.id.to_string(),
            circle: self.circle.as_ref().map(ToString::to_string),
            node: node.to_owned(),
            presence,
            seen_at,
        }
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        let now = self.presences.clock.now();
        if let Some(one) = self.presences.heard.locked().peers.get_mut(&self.name) {
            one.waiting = one.waiting.saturating_sub(1);
            one.seen_at = one.seen_at.max(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ManualClock;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_seconds(1_000).plus_seconds(seconds)
    }

    fn given() -> (Arc<ManualClock>, Arc<Presences>) {
        let clock = Arc::new(ManualClock::at(at(0)));
        (clock.clone(), Arc::new(Presences::new("node-a", clock)))
    }

    fn written(presences: &Presences, now: Timestamp) -> Vec<(String, Presence, Timestamp)> {
        let (sightings, _) = presences.to_write(now);
        sightings.into_iter().map(|one| (one.id, one.presence, one.seen_at)).collect()
    }

    #[test]
    fn only_coming_and_going_is_written() {
        let (clock, presences) = given();
        presences.heard(Some("press"), "joan");
        assert_eq!(written(&presences, at(0)), [("joan".to_owned(), Presence::Present, at(0))]);
        for seconds in [60, 120, 180] {
            clock.set(at(seconds));
            drop(presences.waits(Some("press"), "joan"));
            assert_eq!(written(&presences, at(seconds)), []);
        }
        assert_eq!(presences.to_write(at(180)).1, Some(at(210)), "looked at once per grace");
        assert_eq!(written(&presences, at(269)), []);
        assert_eq!(written(&presences, at(270)), [("joan".to_owned(), Presence::Absent, at(180))]);
        assert_eq!(
            (presences.count(), presences.to_write(at(900)).1),
            (0, None),
            "idle, nothing is looked at"
        );
    }

    #[test]
    fn whoever_waits_is_present_however_long() {
        let (clock, presences) = given();
        let waits = presences.waits(None, "joan").unwrap();
        assert_eq!(written(&presences, at(0)).len(), 1);
        for seconds in (0..10_000).step_by(30) {
            clock.set(at(seconds));
            assert_eq!(written(&presences, at(seconds)), []);
            assert_eq!(presences.seen_at(None, "joan"), Some(at(seconds)));
            assert_eq!(presences.seen_at(Some("press"), "joan"), None, "a peer of another circle is another");
        }
        drop(waits);
        clock.set(at(20_000));
        assert_eq!(presences.seen_at(None, "joan"), None);
    }

    #[test]
    fn what_could_not_be_written_is_written_next_in_the_same_order() {
        let (_, presences) = given();
        presences.heard(None, "a");
        presences.heard(None, "b");
        let (some, _) = presences.to_write(at(0));
        presences.heard(None, "c");
        presences.not_written(some);
        let ids: Vec<String> = written(&presences, at(0)).into_iter().map(|(id, ..)| id).collect();
        assert_eq!(ids, ["a", "b", "c"]);
    }
}
