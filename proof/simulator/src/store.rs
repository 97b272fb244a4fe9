//! `SimStore`: the store as one node sees it. Every call is a message; nothing is answered in the same instant.

pub(crate) mod apply;
pub(crate) mod wire;

use std::collections::HashMap;
use std::sync::Mutex;

use domain::RecordId;
use store::{
    ClaimOutcome, ClaimRequest, Commit, Committed, Loaded, ReadAnswer, ReadRequest, Remembered, Reply,
    SideWrite, Store, StoreError,
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

    fn keep(&self, id: RecordId, loaded: Option<&Loaded>) {
        let mut kept = self.loaded.lock().expect("no holder of the lock panics");
        match loaded {
            Some(Loaded { record, head, .. }) => {
                let (record, head) = (record.clone(), *head);
                kept.insert(id, Remembered { record, head, bodies: Vec::new() });
            }
            None => drop(kept.remove(&id)),
        }
    }
}

impl Store for SimStore {
    fn commit(&self, commit: Commit) -> Reply<'_, Committed> {
        self.ask(Request::Commit(commit), |answer| {
            if let Answer::Committed(committed) = answer { Some(committed) } else { None }
        })
    }

    fn claim(&self, request: ClaimRequest) -> Reply<'_, ClaimOutcome> {
        self.ask(Request::Claim(request), |answer| {
            if let Answer::Claim(outcome) = answer { Some(outcome) } else { None }
        })
    }

    fn write(&self, write: SideWrite) -> Reply<'_, bool> {
        not_simulated(&write)
    }

    fn read(&self, request: ReadRequest) -> Reply<'_, ReadAnswer> {
        if !is_simulated(&request) {
            return not_simulated(&request);
        }
        let loads = if let ReadRequest::Load { id } = &request { Some(id.clone()) } else { None };
        Box::pin(async move {
            let answer = self.ask(Request::Read(request), |answer| {
                if let Answer::Read(answer) = answer { Some(answer) } else { None }
            });
            let answer = answer.await?;
            if let (ReadAnswer::Load(loaded), Some(id)) = (&answer, loads) {
                self.keep(id, loaded.as_ref());
            }
            Ok(answer)
        })
    }

    fn remembered(&self, id: &RecordId) -> Option<Remembered> {
        self.loaded.lock().expect("no holder of the lock panics").get(id).cloned()
    }
}

/// The others are read by no loop of a node.
fn is_simulated(request: &ReadRequest) -> bool {
    matches!(
        request,
        ReadRequest::Load { .. }
            | ReadRequest::Key { .. }
            | ReadRequest::Body { .. }
            | ReadRequest::ReadyLanes {}
            | ReadRequest::EarliestDue { .. }
            | ReadRequest::NewestRecord { .. }
    )
}

fn not_simulated<'a, T: Send + 'a>(request: &impl std::fmt::Debug) -> Reply<'a, T> {
    Box::pin(std::future::ready(Err(StoreError::Broken(format!("this is not simulated: {request:?}")))))
}
