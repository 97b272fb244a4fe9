//! Messages to the nodes: each may come late, twice, or to a node that is down and never answers.

use crate::api::{Ask, Say};
use crate::counters::Struck;
use crate::heap::{Event, SECOND};
use crate::slab::Key;
use crate::world::World;

/// A message on its way to a node.
pub struct Message {
    /// The node.
    pub to: usize,
    /// What is asked.
    pub ask: Ask,
    /// Where the answer goes.
    pub reply: Option<Key>,
    /// Whether it is a copy of another message.
    pub is_copy: bool,
}

impl World {
    /// Sends a message to some node; it may come late, and twice.
    pub fn send(&mut self, ask: Ask, reply: Option<Key>) {
        let mut late = self.rng.within(1_000, 200_000);
        if self.rng.chance(self.faults.message) {
            self.counters.struck(Struck::Message);
            let copy_after = self.rng.within(0, 120 * SECOND);
            self.post(Message { to: 0, ask: ask.clone(), reply: None, is_copy: true }, copy_after);
            if self.rng.chance(300) {
                late = self.rng.within(0, 60 * SECOND);
            }
        }
        self.post(Message { to: 0, ask, reply, is_copy: false }, late);
    }

    /// Sends a message once, to some node, so that it comes after that time.
    pub fn send_later(&mut self, ask: Ask, after: i64) {
        self.post(Message { to: 0, ask, reply: None, is_copy: false }, after);
    }

    fn post(&mut self, message: Message, after: i64) {
        let to = self.rng.index(self.nodes.len());
        let message = self.messages.insert(Message { to, ..message });
        self.heap.after(after, Event::Deliver(message));
    }

    /// Answers a message.
    pub fn reply(&mut self, slot: Key, say: Say) {
        let after = self.rng.within(1_000, 200_000);
        if let Some(waiting) = self.slots.get_mut(slot) {
            waiting.said = Some(say);
            self.heap.after(after, Event::Wake(slot));
        }
    }
}
