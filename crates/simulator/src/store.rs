//! `SimStore`: the store as one node sees it. Every call is a message; nothing is answered in the same instant.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use domain::ask::{Ask, Closing};
use domain::job::JobStateName;
use domain::peer::{Peer, Sighting};
use domain::timeline::{Anchor, Step};
use domain::{BodyRef, Digest, Fence, JobId, Lease, Record, RecordId, RecordKind, Timestamp};
use store::{
    AskQuery, AskStore, ClockStore, Commit, Committed, DuePlace, IdempotencyKey, JobQuery, KeptKey,
    KeptPluginFact, Lane, Loaded, Node, OpenJobs, OrphanCursor, Page, PeerPage, PeerQuery, PeerStore,
    PluginState, PluginStore, Remembered, Reply, RoutingPage, RoutingQuery, RoutingStore, Store, StoreClock,
    StoreError, StoredFact, Take, Taken, Taking, Token,
};

use crate::wire::{Answer, Request};
use crate::world::Sim;

/// One node's way to the store.
pub struct SimStore {
    sim: Sim,
    node: usize,
    /// What it loaded last: as old as can be, because whatever else it writes is not kept here.
    loaded: Mutex<HashMap<RecordId, Remembered>>,
}

impl SimStore {
    /// The way of this node.
    pub fn new(sim: Sim, node: usize) -> Self {
        Self { sim, node, loaded: Mutex::default() }
    }

    /// Calls, and picks what belongs to the call out of the answer.
    fn ask<'a, T: Send + 'a>(&'a self, request: Request, pick: fn(Answer) -> Option<T>) -> Reply<'a, T> {
        Box::pin(async move {
            let answer = self.sim.call(self.node, request).await?;
            pick(answer).ok_or_else(|| StoreError::Broken("the answer belongs to another call".to_owned()))
        })
    }
}

impl Store for SimStore {
    fn commit(&self, commit: Commit) -> Reply<'_, Committed> {
        self.ask(Request::Commit(commit), |answer| {
            if let Answer::Committed(committed) = answer { Some(committed) } else { None }
        })
    }

    fn load<'a>(&'a self, id: &'a RecordId) -> Reply<'a, Option<Loaded>> {
        Box::pin(async move {
            let loaded = self.ask(Request::Load(id.clone()), |answer| {
                if let Answer::Loaded(loaded) = answer { Some(loaded) } else { None }
            });
            let loaded = loaded.await?;
            let mut kept = self.loaded.lock().expect("no holder of the lock panics");
            match &loaded {
                Some(Loaded { record, head, .. }) => {
                    let (record, head) = (record.clone(), *head);
                    kept.insert(id.clone(), Remembered { record, head, bodies: Vec::new() });
                }
                None => drop(kept.remove(id)),
            }
            Ok(loaded)
        })
    }

    fn remembered(&self, id: &RecordId) -> Option<Remembered> {
        self.loaded.lock().expect("no holder of the lock panics").get(id).cloned()
    }

    fn key<'a>(&'a self, key: &'a IdempotencyKey) -> Reply<'a, Option<KeptKey>> {
        self.ask(Request::Key(key.clone()), |answer| {
            if let Answer::Key(kept) = answer { Some(kept.map(|kept| *kept)) } else { None }
        })
    }

    fn take_due(&self, kind: RecordKind, take: Take) -> Reply<'_, Vec<Taken>> {
        self.ask(Request::TakeDue(kind, take), many)
    }

    fn take_ready<'a>(&'a self, lane: Lane<'a>, take: Take) -> Reply<'a, Vec<Taken>> {
        self.ask(Request::TakeReady(lane.name.to_owned(), lane.limit, take), many)
    }

    fn take<'a>(&'a self, id: &'a RecordId, take: Take) -> Reply<'a, Taken> {
        self.ask(Request::Take(id.clone(), take), one)
    }

    fn renew<'a>(&'a self, id: &'a RecordId, fence: Fence, now: Timestamp, lease: Lease) -> Reply<'a, Taken> {
        self.ask(Request::Renew(id.clone(), fence, now, lease), one)
    }

    fn hand_back<'a>(
        &'a self,
        id: &'a RecordId,
        fence: Fence,
        now: Timestamp,
        due_at: Timestamp,
    ) -> Reply<'a, ()> {
        self.ask(Request::HandBack(id.clone(), fence, now, due_at), |answer| {
            if let Answer::Done = answer { Some(()) } else { None }
        })
    }

    fn body<'a>(&'a self, id: &'a RecordId, body: BodyRef) -> Reply<'a, Option<Vec<u8>>> {
        self.ask(Request::Body(id.clone(), body), |answer| {
            if let Answer::Body(body) = answer { Some(body) } else { None }
        })
    }

    fn ready_lanes(&self) -> Reply<'_, Vec<Arc<str>>> {
        self.ask(
            Request::ReadyLanes,
            |answer| {
                if let Answer::Lanes(lanes) = answer { Some(lanes) } else { None }
            },
        )
    }

    fn earliest_due(&self, kind: RecordKind) -> Reply<'_, Option<Timestamp>> {
        self.ask(
            Request::EarliestDue(kind),
            |answer| {
                if let Answer::Due(at) = answer { Some(at) } else { None }
            },
        )
    }

    // No loop of a node reads these, so they are not on the wire.

    fn jobs(&self, _: JobQuery) -> Reply<'_, Page> {
        not_simulated()
    }

    fn job_counts(&self) -> Reply<'_, Vec<(JobStateName, u64)>> {
        not_simulated()
    }

    fn open_jobs<'a>(&'a self, _: &'a str) -> Reply<'a, OpenJobs> {
        not_simulated()
    }

    fn operations_of<'a>(&'a self, _: &'a JobId, _: usize) -> Reply<'a, Vec<Arc<Record>>> {
        not_simulated()
    }

    fn orphans(&self, _: Option<OrphanCursor>, _: usize) -> Reply<'_, Vec<Arc<Record>>> {
        not_simulated()
    }

    fn orphan_count(&self) -> Reply<'_, u64> {
        not_simulated()
    }

    fn facts_of<'a>(&'a self, _: &'a RecordId, _: u64, _: usize) -> Reply<'a, Vec<StoredFact>> {
        not_simulated()
    }

    fn facts_after(&self, _: u64, _: usize) -> Reply<'_, Vec<StoredFact>> {
        not_simulated()
    }

    fn keep_token(&self, _: Token) -> Reply<'_, ()> {
        not_simulated()
    }

    fn token<'a>(&'a self, _: &'a Digest) -> Reply<'a, Option<Token>> {
        not_simulated()
    }

    fn tokens(&self) -> Reply<'_, Vec<Token>> {
        not_simulated()
    }

    fn revoke_token<'a>(&'a self, _: &'a str, _: Timestamp) -> Reply<'a, bool> {
        not_simulated()
    }

    fn keep_node(&self, _: Node, _: Timestamp) -> Reply<'_, ()> {
        not_simulated()
    }

    fn nodes(&self) -> Reply<'_, Vec<Node>> {
        not_simulated()
    }

    fn tell_node<'a>(&'a self, _: &'a str, _: Taking) -> Reply<'a, bool> {
        not_simulated()
    }

    fn remove_node<'a>(&'a self, _: &'a str) -> Reply<'a, ()> {
        not_simulated()
    }
}

impl ClockStore for SimStore {
    fn clock(&self) -> Reply<'_, StoreClock> {
        not_simulated()
    }

    fn keep_clock(&self, _: Anchor, _: Option<Step>) -> Reply<'_, ()> {
        not_simulated()
    }

    fn due_between(
        &self,
        _: RecordKind,
        _: DuePlace,
        _: Timestamp,
        _: usize,
    ) -> Reply<'_, Vec<(Timestamp, RecordId)>> {
        not_simulated()
    }
}

impl PeerStore for SimStore {
    fn keep_peer(&self, _: Peer) -> Reply<'_, ()> {
        not_simulated()
    }

    fn peer<'a>(&'a self, _: &'a str) -> Reply<'a, Option<Peer>> {
        not_simulated()
    }

    fn peers(&self, _: PeerQuery) -> Reply<'_, PeerPage> {
        not_simulated()
    }

    fn forget_peer<'a>(&'a self, _: &'a str, _: u64) -> Reply<'a, bool> {
        not_simulated()
    }

    fn note_sightings(&self, _: Vec<Sighting>) -> Reply<'_, ()> {
        not_simulated()
    }
}

impl RoutingStore for SimStore {
    fn routing(&self, _: RoutingQuery) -> Reply<'_, RoutingPage> {
        not_simulated()
    }

    fn newest_run<'a>(&'a self, pipeline: &'a str, dedupe_key: &'a str) -> Reply<'a, Option<Arc<Record>>> {
        self.ask(Request::NewestRun(pipeline.to_owned(), dedupe_key.to_owned()), |answer| {
            if let Answer::Newest(run) = answer { Some(run) } else { None }
        })
    }
}

impl AskStore for SimStore {
    fn keep_ask(&self, _: Ask, _: Option<Closing>) -> Reply<'_, bool> {
        not_simulated()
    }

    fn ask<'a>(&'a self, _: &'a str) -> Reply<'a, Option<Ask>> {
        not_simulated()
    }

    fn asks(&self, _: AskQuery) -> Reply<'_, Vec<Ask>> {
        not_simulated()
    }

    fn close_ask<'a>(&'a self, _: &'a str, _: Closing) -> Reply<'a, bool> {
        not_simulated()
    }
}

impl PluginStore for SimStore {
    fn plugin_state<'a>(&'a self, _: &'a str) -> Reply<'a, Option<PluginState>> {
        not_simulated()
    }

    fn plugin_facts<'a>(&'a self, _: &'a str, _: u64, _: usize) -> Reply<'a, Vec<KeptPluginFact>> {
        not_simulated()
    }
}

fn many(answer: Answer) -> Option<Vec<Taken>> {
    if let Answer::Many(taken) = answer { Some(taken) } else { None }
}

fn one(answer: Answer) -> Option<Taken> {
    if let Answer::One(taken) = answer { Some(taken) } else { None }
}

fn not_simulated<'a, T: Send + 'a>() -> Reply<'a, T> {
    Box::pin(std::future::ready(Err(StoreError::Broken("this read is not simulated".to_owned()))))
}
