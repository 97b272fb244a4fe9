//! A store whose answers to commits follow a script, and that remembers every commit that it was given.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use domain::RecordId;
use engine::{Engine, Order};
use store::{
    ClaimOutcome, ClaimRequest, Commit, Committed, Loaded, MemoryStore, ReadAnswer, ReadRequest, Remembered,
    Reply, SideWrite, Store, StoreError,
};

/// What becomes of one commit.
pub enum Act {
    /// It is written, and this is answered.
    ApplyAndSay(StoreError),
    /// It is not written, and this is answered.
    Say(StoreError),
    /// Other orders are carried out first.
    LetFirst(Engine, Vec<Order>),
}

#[derive(Default)]
pub struct Scripted {
    pub inner: Arc<MemoryStore>,
    script: Mutex<VecDeque<Act>>,
    before_load: Mutex<Option<(Engine, Order)>>,
    commits: Mutex<Vec<Commit>>,
    remembered: Mutex<BTreeMap<RecordId, Remembered>>,
    loads: AtomicUsize,
}

impl Scripted {
    /// The next commits go so; after that they pass.
    pub fn next_commits(&self, acts: impl IntoIterator<Item = Act>) {
        self.script.lock().unwrap().extend(acts);
    }

    /// Before the next load another order is carried out.
    pub fn before_next_load(&self, engine: Engine, order: Order) {
        *self.before_load.lock().unwrap() = Some((engine, order));
    }

    /// From now on it remembers the record as it is now.
    pub async fn remember(&self, id: impl Into<RecordId>) {
        let id = id.into();
        let Loaded { record, head, .. } = self.inner.load(&id).await.unwrap().unwrap();
        let remembered = Remembered { record, head, bodies: Vec::new() };
        self.remembered.lock().unwrap().insert(id, remembered);
    }

    /// How many records were loaded so far.
    pub fn loads(&self) -> usize {
        self.loads.load(Ordering::Relaxed)
    }

    /// The commits since the last time that this was asked.
    pub fn commits(&self) -> Vec<Commit> {
        std::mem::take(&mut self.commits.lock().unwrap())
    }
}

impl Store for Scripted {
    fn commit(&self, commit: Commit) -> Reply<'_, Committed> {
        self.commits.lock().unwrap().push(commit.clone());
        let act = self.script.lock().unwrap().pop_front();
        Box::pin(async move {
            match act {
                None => self.inner.commit(commit).await,
                Some(Act::Say(error)) => Err(error),
                Some(Act::ApplyAndSay(error)) => self.inner.commit(commit).await.and(Err(error)),
                Some(Act::LetFirst(engine, orders)) => {
                    for order in orders {
                        engine.execute(order).await.unwrap();
                    }
                    self.inner.commit(commit).await
                }
            }
        })
    }

    fn claim(&self, request: ClaimRequest) -> Reply<'_, ClaimOutcome> {
        self.inner.claim(request)
    }

    fn write(&self, write: SideWrite) -> Reply<'_, bool> {
        self.inner.write(write)
    }

    fn read(&self, request: ReadRequest) -> Reply<'_, ReadAnswer> {
        if !matches!(request, ReadRequest::Load { .. }) {
            return self.inner.read(request);
        }
        self.loads.fetch_add(1, Ordering::Relaxed);
        let first = self.before_load.lock().unwrap().take();
        Box::pin(async move {
            if let Some((engine, order)) = first {
                engine.execute(order).await.unwrap();
            }
            self.inner.read(request).await
        })
    }

    fn remembered(&self, id: &RecordId) -> Option<Remembered> {
        self.remembered.lock().unwrap().get(id).cloned()
    }
}
