//! What a call does at the store, and the check of it.

use domain::{BodyRef, Fence, RecordId};
use store::{
    ClaimOutcome, ClaimRequest, Commit, Committed, ReadAnswer, ReadRequest, Reply, Store, StoreError, Taken,
    fact_kind,
};

use crate::counters::Sometimes;
use crate::invariants::{Arrival, From, Taking, body_read};
use crate::slab::Key;
use crate::wire::{Answer, Request};
use crate::world::World;

impl World {
    /// Has the effect of a call, and checks what it did.
    pub(crate) fn apply(
        &mut self,
        request: &Request,
        node: usize,
        order: Option<Key>,
    ) -> Result<Answer, StoreError> {
        let store = &self.store;
        match request {
            Request::Commit(commit) => {
                let answer = store.commit_now(commit);
                self.check_commit(commit, &answer, node, order);
                answer.map(Answer::Committed)
            }
            Request::Claim(request) => {
                let outcome = at_once(store.claim(request.clone()))?;
                self.check_claim(request, &outcome);
                Ok(Answer::Claim(outcome))
            }
            Request::Read(ReadRequest::Body { id, body }) => {
                let answer = at_once(store.body(id, *body));
                self.check_body(id, *body, &answer);
                answer.map(|body| Answer::Read(ReadAnswer::Body(body)))
            }
            Request::Read(request) => at_once(store.read(request.clone())).map(Answer::Read),
        }
    }

    fn check_claim(&mut self, request: &ClaimRequest, outcome: &ClaimOutcome) {
        let taken = if let ClaimOutcome::Taken(taken) = outcome { taken.as_slice() } else { &[] };
        match request {
            ClaimRequest::TakeDue { kind, take } => {
                self.check_taken(&Taking { taken, take, from: From::Due(*kind) });
            }
            ClaimRequest::TakeReady { lane, take, .. } => {
                self.check_taken(&Taking { taken, take, from: From::Lane(lane) });
            }
            ClaimRequest::Take { take, .. } => {
                self.check_taken(&Taking { taken, take, from: From::Anywhere });
            }
            ClaimRequest::Renew { id, fence, .. } => {
                for renewed in taken {
                    self.check_renewed(id, fence, renewed);
                }
            }
            ClaimRequest::HandBack { id, fence, .. } => self.check_handed_back(id, fence),
            ClaimRequest::EndLeases { .. } => {}
        }
    }

    fn check_body(&mut self, id: &RecordId, body: BodyRef, answer: &Result<Option<Vec<u8>>, StoreError>) {
        if matches!(answer, Err(StoreError::BodyDamaged(_))) {
            self.counters.saw(Sometimes::DamagedBodyRefused);
        }
        let held = self.store.inspect(|tables| body_read(tables, id, body, answer));
        self.require(held);
    }

    fn check_commit(
        &mut self,
        commit: &Commit,
        answer: &Result<Committed, StoreError>,
        node: usize,
        order: Option<Key>,
    ) {
        if answer == &Err(StoreError::Fenced) {
            self.counters.saw(Sometimes::CommitFenced);
        }
        let arrival = Arrival { node, at: self.store_time() };
        let Self { store, check, counters, orders, .. } = self;
        let order = order.and_then(|order| orders.get_mut(order));
        let held = store.inspect(|tables| check.committed(tables, commit, answer, order, arrival, counters));
        self.require(held);
    }

    fn check_taken(&mut self, taking: &Taking<'_>) {
        if taking.taken.is_empty() {
            return;
        }
        let store_time = self.store_time();
        let Self { store, check, counters, owners, .. } = self;
        let held = store.inspect(|tables| check.taken(tables, taking, store_time, owners, counters));
        self.require(held);
    }

    fn check_renewed(&mut self, id: &RecordId, fence: &Fence, taken: &Taken) {
        let store_time = self.store_time();
        let Self { store, check, counters, .. } = self;
        let held = store.inspect(|tables| check.renewed(tables, id, fence, taken, store_time, counters));
        self.require(held);
    }

    fn check_handed_back(&mut self, id: &RecordId, fence: &Fence) {
        let Self { store, check, .. } = self;
        let held = store.inspect(|tables| check.handed_back(tables, id, fence));
        self.require(held);
    }
}

/// The memory store answers at once; the waiting is the simulator's.
fn at_once<T>(mut reply: Reply<'_, T>) -> Result<T, StoreError> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match reply.as_mut().poll(&mut context) {
        std::task::Poll::Ready(answer) => answer,
        std::task::Poll::Pending => Err(StoreError::Broken("the memory store waits for nothing".to_owned())),
    }
}

/// A call, for the story of a run.
pub(crate) fn describe(request: &Request) -> String {
    match request {
        Request::Commit(commit) => commit.changes.iter().fold("commits".to_owned(), |text, change| {
            let kinds: Vec<_> = change.facts.iter().map(|new| fact_kind(&new.fact)).collect();
            format!("{text} {}@{} {kinds:?}", change.id, change.expected.version)
        }),
        Request::Claim(request) => claim(request),
        Request::Read(request) => format!("reads {request:?}"),
    }
}

fn claim(request: &ClaimRequest) -> String {
    match request {
        ClaimRequest::TakeDue { kind, .. } => format!("takes due {}s", kind.as_str()),
        ClaimRequest::TakeReady { lane, .. } => format!("takes ready in {lane}"),
        ClaimRequest::Take { id, .. } => format!("takes {id}"),
        ClaimRequest::Renew { id, fence, .. } => format!("renews {id} at claim {}", fence.claim_version),
        ClaimRequest::HandBack { id, .. } => format!("hands back {id}"),
        ClaimRequest::EndLeases { owners, .. } => format!("ends the leases of {owners}"),
    }
}

/// What came of it, for the story of a run.
pub(crate) fn outcome(answer: &Result<Answer, StoreError>) -> String {
    match answer {
        Ok(Answer::Committed(committed)) => format!("position {}", committed.position),
        Ok(Answer::Claim(ClaimOutcome::Taken(taken))) => {
            let taken: Vec<_> = taken
                .iter()
                .map(|taken| format!("{} at claim {}", taken.id, taken.claim.claim_version))
                .collect();
            format!("{taken:?}")
        }
        Ok(Answer::Claim(ClaimOutcome::Released)) => "released".to_owned(),
        Ok(Answer::Read(ReadAnswer::Load(loaded))) => {
            format!("version {:?}", loaded.as_ref().map(|loaded| loaded.head.version))
        }
        Ok(Answer::Read(ReadAnswer::Body(body))) => format!("{} bytes", body.as_ref().map_or(0, Vec::len)),
        Ok(Answer::Read(ReadAnswer::NewestRecord(newest))) => {
            format!("{:?}", newest.as_ref().map(|newest| newest.id().clone()))
        }
        Ok(Answer::Read(answer)) => format!("{answer:?}"),
        Err(error) => error.code().to_owned(),
    }
}
