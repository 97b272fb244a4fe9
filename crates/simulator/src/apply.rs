//! What a call does at the store, and the check of it.

use domain::{Fence, RecordId};
use store::{Commit, Committed, Lane, Reply, RoutingStore, Store, StoreError, Taken, fact_kind};

use crate::counters::Sometimes;
use crate::invariants::{Arrival, From, Taking};
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
            Request::Load(id) => at_once(store.load(id)).map(Answer::Loaded),
            Request::Key(key) => at_once(store.key(key)).map(|kept| Answer::Key(kept.map(Box::new))),
            Request::Body(id, body) => at_once(store.body(id, *body)).map(Answer::Body),
            Request::ReadyLanes => at_once(store.ready_lanes()).map(Answer::Lanes),
            Request::EarliestDue(kind) => at_once(store.earliest_due(*kind)).map(Answer::Due),
            Request::NewestRun(pipeline, key) => at_once(store.newest_run(pipeline, key)).map(Answer::Newest),
            Request::TakeDue(kind, take) => {
                let taken = at_once(store.take_due(*kind, take.clone()))?;
                self.check_taken(&Taking { taken: &taken, take, from: From::Due(*kind) });
                Ok(Answer::Many(taken))
            }
            Request::TakeReady(lane, limit, take) => {
                let taken = at_once(store.take_ready(Lane { name: lane, limit: *limit }, take.clone()))?;
                self.check_taken(&Taking { taken: &taken, take, from: From::Lane(lane) });
                Ok(Answer::Many(taken))
            }
            Request::Take(id, take) => {
                let taken = at_once(store.take(id, take.clone()))?;
                let taken_one = std::slice::from_ref(&taken);
                self.check_taken(&Taking { taken: taken_one, take, from: From::Anywhere });
                Ok(Answer::One(taken))
            }
            Request::Renew(id, fence, now, lease) => {
                let answer = at_once(store.renew(id, fence.clone(), *now, *lease));
                self.check_renewed(id, fence, &answer);
                answer.map(Answer::One)
            }
            Request::HandBack(id, fence, now, due_at) => {
                let answer = at_once(store.hand_back(id, fence.clone(), *now, *due_at));
                self.check_handed_back(id, fence, &answer);
                answer.map(|()| Answer::Done)
            }
        }
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

    fn check_renewed(&mut self, id: &RecordId, fence: &Fence, answer: &Result<Taken, StoreError>) {
        let store_time = self.store_time();
        let Self { store, check, counters, .. } = self;
        let held = store.inspect(|tables| check.renewed(tables, id, fence, answer, store_time, counters));
        self.require(held);
    }

    fn check_handed_back(&mut self, id: &RecordId, fence: &Fence, answer: &Result<(), StoreError>) {
        let Self { store, check, .. } = self;
        let held = store.inspect(|tables| check.handed_back(tables, id, fence, answer));
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
        Request::Load(id) => format!("loads {id}"),
        Request::Key(key) => format!("reads key {}", key.key),
        Request::Body(id, body) => format!("reads the {} of {id}", body.name.as_str()),
        Request::ReadyLanes => "asks which lanes are ready".to_owned(),
        Request::EarliestDue(kind) => format!("asks when a {} is due", kind.as_str()),
        Request::NewestRun(pipeline, key) => format!("looks for a run of {pipeline} under {key}"),
        Request::TakeDue(kind, _) => format!("takes due {}s", kind.as_str()),
        Request::TakeReady(lane, ..) => format!("takes ready in {lane}"),
        Request::Take(id, _) => format!("takes {id}"),
        Request::Renew(id, fence, ..) => format!("renews {id} at claim {}", fence.claim_version),
        Request::HandBack(id, ..) => format!("hands back {id}"),
    }
}

/// What came of it, for the story of a run.
pub(crate) fn outcome(answer: &Result<Answer, StoreError>) -> String {
    match answer {
        Ok(Answer::Committed(committed)) => format!("position {}", committed.position),
        Ok(Answer::Loaded(loaded)) => match loaded {
            None => "nothing".to_owned(),
            Some(loaded) => format!("version {}", loaded.head.version),
        },
        Ok(Answer::Key(kept)) => format!("kept: {}", kept.is_some()),
        Ok(Answer::Body(body)) => format!("{} bytes", body.as_ref().map_or(0, Vec::len)),
        Ok(Answer::Lanes(lanes)) => format!("{lanes:?}"),
        Ok(Answer::Newest(run)) => format!("{:?}", run.as_ref().map(|run| run.id().clone())),
        Ok(Answer::Due(at)) => format!("{at:?}"),
        Ok(Answer::Many(taken)) => {
            let ids: Vec<_> = taken.iter().map(|taken| taken.id.as_str()).collect();
            format!("{ids:?}")
        }
        Ok(Answer::One(taken)) => format!("claim {}", taken.claim.claim_version),
        Ok(Answer::Done) => "done".to_owned(),
        Err(error) => error.code().to_owned(),
    }
}
