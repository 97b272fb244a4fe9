//! The event heap: the only thing that moves time. Events of one instant pop in the order in which they were pushed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::faults::Fault;
use crate::slab::Key;

/// A second, in the unit of all simulated times.
pub const SECOND: i64 = 1_000_000;

/// Something that happens at its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// A call reaches the store.
    Arrive(Key),
    /// The store's answer reaches the caller.
    Answer(Key),
    /// The caller stops waiting; the call may still be on its way.
    GiveUp(Key),
    /// A wait is over.
    Wake(Key),
    /// A task was woken by another.
    Poll(Key),
    /// A message reaches a node.
    Deliver(Key),
    /// Something goes wrong, or right again.
    Fault(Fault),
    /// The run looks whether it is over.
    Look,
}

/// Events by time.
#[derive(Debug, Default)]
pub struct Heap {
    entries: BinaryHeap<Reverse<(i64, u64, Event)>>,
    now: i64,
    pushed: u64,
}

impl Heap {
    /// Microseconds since the start of the run.
    pub fn now(&self) -> i64 {
        self.now
    }

    /// Adds an event that many microseconds from now.
    pub fn after(&mut self, micros: i64, event: Event) {
        self.at(self.now + micros.max(0), event);
    }

    /// Adds an event at a time, now at the earliest.
    pub fn at(&mut self, time: i64, event: Event) {
        self.pushed += 1;
        self.entries.push(Reverse((time.max(self.now), self.pushed, event)));
    }

    /// Takes the next event and moves to its time.
    pub fn pop(&mut self) -> Option<Event> {
        let Reverse((time, _, event)) = self.entries.pop()?;
        self.now = time;
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_pop_by_time_and_within_an_instant_as_they_were_pushed() {
        let mut heap = Heap::default();
        heap.after(2, Event::Fault(Fault::Calm));
        heap.after(1, Event::Fault(Fault::Pause));
        heap.after(1, Event::Fault(Fault::Cut));
        let order: Vec<_> = std::iter::from_fn(|| heap.pop().map(|event| (heap.now(), event))).collect();
        let expected = [(1, Fault::Pause), (1, Fault::Cut), (2, Fault::Calm)];
        assert_eq!(order, expected.map(|(time, fault)| (time, Event::Fault(fault))));
    }

    #[test]
    fn time_never_goes_back() {
        let mut heap = Heap::default();
        heap.after(5, Event::Look);
        heap.pop();
        heap.at(1, Event::Look);
        heap.pop();
        assert_eq!(heap.now(), 5);
    }
}
