//! Calls on their way to the store and back: each is an event when it arrives and another when it is answered.
//!
//! Between the two, anything else may happen. A call may be refused before it has an effect, have its effect and lose
//! its answer, or arrive after its caller has given up or died.

use domain::Fact;
use domain::event::EventFact;
use store::{ClaimOutcome, ClaimRequest, Commit, Committed, NewFact, ReadAnswer, ReadRequest, StoreError};

use crate::apply::{describe, outcome};
use crate::counters::{Sometimes, Struck};
use crate::faults::MAX_SLOW;
use crate::heap::{Event, SECOND};
use crate::orders::OrderKind;
use crate::slab::Key;
use crate::world::{Filled, Sim, World};

/// What a node asks of the store.
pub enum Request {
    /// Write.
    Commit(Commit),
    /// Take, renew or give back.
    Claim(ClaimRequest),
    /// Read.
    Read(ReadRequest),
}

/// What the store answers.
#[allow(clippy::large_enum_variant, reason = "few live at once, and boxed they could not be matched")]
pub enum Answer {
    /// Written.
    Committed(Committed),
    /// What came of a claim.
    Claim(ClaimOutcome),
    /// What was read.
    Read(ReadAnswer),
}

/// A call under way.
pub struct Call {
    request: Option<Request>,
    slot: Key,
    node: usize,
    order: Option<Key>,
    fate: Fate,
    sent_at: i64,
    is_commit: bool,
    answer: Option<Result<Answer, StoreError>>,
}

/// What becomes of a call, drawn when it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    Answered,
    AnswerLost,
    Refused(StoreError),
    /// Its sender died, and it never left.
    Dropped,
}

impl Sim {
    /// Calls the store from a node and waits for what comes of it.
    pub async fn call(&self, node: usize, request: Request) -> Result<Answer, StoreError> {
        let slot = self.with(|world| world.call(node, request));
        match self.wait(slot).await {
            Filled::Answer(answer) => answer,
            Filled::Time | Filled::Said(_) => {
                Err(StoreError::Broken("a call is answered by the store".into()))
            }
        }
    }
}

impl World {
    fn call(&mut self, node: usize, request: Request) -> Key {
        let slot = self.open_slot();
        let order = self.polled.and_then(|polled| polled.order);
        let is_commit = matches!(request, Request::Commit(_));
        let fate = self.draw_fate(order, is_commit);
        let there = self.draw_latency();
        let sent_at = self.heap.now();
        let call = Call { request: Some(request), slot, node, order, fate, sent_at, is_commit, answer: None };
        let call = self.calls.insert(call);
        self.heap.after(there, Event::Arrive(call));
        if there > 5 * SECOND && !self.setting.is_in_process() && self.rng.chance(500) {
            let patience = self.rng.within(SECOND, there);
            self.heap.after(patience, Event::GiveUp(call));
        }
        slot
    }

    fn draw_fate(&mut self, order: Option<Key>, is_commit: bool) -> Fate {
        if self.rng.chance(self.faults.refused) {
            self.counters.struck(Struck::Refused);
            return Fate::Refused(StoreError::Unavailable("refused".to_owned()));
        }
        if self.rng.chance(self.faults.answer_lost) {
            return Fate::AnswerLost;
        }
        // After an unknown outcome a conflict must be true: an earlier copy of the commit may be on its way.
        let unknown = order.and_then(|order| self.orders.get_mut(order)).is_some_and(|order| order.unknown);
        if is_commit && !unknown && self.rng.chance(self.faults.conflict) {
            self.counters.struck(Struck::SpuriousConflict);
            return Fate::Refused(StoreError::Conflict);
        }
        if self.rng.chance(self.faults.busy) {
            self.counters.struck(Struck::Busy);
            return Fate::Refused(StoreError::Busy);
        }
        Fate::Answered
    }

    fn draw_latency(&mut self) -> i64 {
        if self.rng.chance(self.faults.slow) {
            self.counters.struck(Struck::Slow);
            return self.rng.within(0, MAX_SLOW);
        }
        let most = self.setting.latency;
        if self.rng.chance(900) { self.rng.within(200, most) } else { self.rng.within(most, 5 * most) }
    }

    /// A call reaches the store.
    pub fn arrive(&mut self, key: Key) {
        let Some(call) = self.calls.get_mut(key) else { return };
        let (node, order, slot, is_commit) = (call.node, call.order, call.slot, call.is_commit);
        let fate = call.fate.clone();
        let request = call.request.take().expect("a call arrives once");
        if fate == Fate::Dropped {
            self.calls.remove(key);
            return;
        }
        let answer = if self.nodes[node].cut_until > self.heap.now() {
            Err(StoreError::Unavailable("cut off".to_owned()))
        } else if let Fate::Refused(error) = fate {
            Err(error)
        } else {
            let answer = self.apply(&request, node, order);
            self.tell(|_| format!("node {node} {} -> {}", describe(&request), outcome(&answer)));
            if fate == Fate::AnswerLost {
                self.count_lost(&request, &answer);
                self.lose(answer, order, is_commit)
            } else {
                answer
            }
        };
        if self.slots.get_mut(slot).is_none() {
            self.calls.remove(key);
            return;
        }
        let back = self.draw_latency();
        let call = self.calls.get_mut(key).expect("it was there above");
        call.answer = Some(answer);
        self.heap.after(back, Event::Answer(key));
    }

    fn count_lost(&mut self, request: &Request, answer: &Result<Answer, StoreError>) {
        if let (Request::Commit(commit), Ok(_)) = (request, answer)
            && commit.changes.iter().flat_map(|change| &change.facts).any(settles)
        {
            self.counters.saw(Sometimes::AmbiguousSettle);
        }
    }

    /// The store's answer reaches the caller, who is polled then.
    pub fn answer(&mut self, key: Key) -> Option<Key> {
        let slot = self.calls.get_mut(key)?.slot;
        if let Some(until) = self.paused_until(slot) {
            self.heap.at(until, Event::Answer(key));
            return None;
        }
        let call = self.calls.remove(key)?;
        let mut answer = call.answer.expect("a call is answered after it arrived");
        if self.nodes[call.node].cut_until > self.heap.now() {
            answer = self.lose(answer, call.order, call.is_commit);
        }
        if self.heap.now() - call.sent_at > self.setting.lease_micros {
            self.counters.saw(Sometimes::StoreSlowerThanLease);
        }
        self.note_answer(call.order, &answer);
        self.fill(call.slot, Filled::Answer(answer))
    }

    /// The caller stops waiting; the call goes on without it.
    pub fn give_up(&mut self, key: Key) -> Option<Key> {
        let call = self.calls.get_mut(key)?;
        // Once it has arrived, its answer is on its way.
        call.request.as_ref()?;
        let (slot, order, is_commit) = (call.slot, call.order, call.is_commit);
        if let Some(until) = self.paused_until(slot) {
            self.heap.at(until, Event::GiveUp(key));
            return None;
        }
        let answer = Err(lost(is_commit));
        self.note_answer(order, &answer);
        self.fill(slot, Filled::Answer(answer))
    }

    /// A node died: what it had sent may be under way or not.
    pub fn drop_calls(&mut self, node: usize) {
        let Self { calls, rng, setting, .. } = self;
        for (_, call) in calls.iter_mut() {
            if call.node == node && (setting.is_in_process() || rng.chance(500)) {
                call.fate = Fate::Dropped;
            }
        }
    }

    fn lose(
        &mut self,
        answer: Result<Answer, StoreError>,
        order: Option<Key>,
        is_commit: bool,
    ) -> Result<Answer, StoreError> {
        self.counters.struck(Struck::AnswerLost);
        if let (Ok(Answer::Committed(_)), Some(order)) = (&answer, order)
            && let Some(order) = self.orders.get_mut(order)
        {
            match order.kind {
                OrderKind::Create => self.counters.saw(Sometimes::AmbiguousCreate),
                OrderKind::Dispatch => self.counters.saw(Sometimes::AmbiguousDispatch),
                OrderKind::Complete | OrderKind::Finish => self.counters.saw(Sometimes::AmbiguousFinish),
                OrderKind::Other => {}
            }
        }
        Err(lost(is_commit))
    }

    fn note_answer(&mut self, order: Option<Key>, answer: &Result<Answer, StoreError>) {
        let Some(order) = order.and_then(|order| self.orders.get_mut(order)) else { return };
        match answer {
            Ok(Answer::Read(ReadAnswer::Load(_))) => order.loaded = true,
            Err(StoreError::OutcomeUnknown) => order.unknown = true,
            Ok(_) | Err(_) => {}
        }
    }
}

fn settles(new: &NewFact) -> bool {
    matches!(new.fact, Fact::Event(EventFact::Settled(_)))
}

fn lost(is_commit: bool) -> StoreError {
    if is_commit { StoreError::OutcomeUnknown } else { StoreError::Unavailable("answer lost".to_owned()) }
}
