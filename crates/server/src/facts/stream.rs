//! `GET /facts/stream`: the ledger as server-sent events, from a position on and then as it grows; with `?job=` the facts of one
//! job alone, for which only that job's commits ask the store anything. While the job waits for work outside, every change of that is
//! told as an event `outside`: no fact of the job and no place in the ledger, the newest only.
//!
//! Every record passes the same authorisation as when it is read. A page is read at a time; a reader that is slow holds nothing but
//! its own connection. Between commits nothing is asked of the store.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use domain::job::JobState;
use domain::{OperationId, Record, RecordId};
use engine::Watched;
use futures::StreamExt;
use futures::stream::unfold;
use store::{StoreError, StoredFact};
use tokio::sync::watch;
use tokio::time::Instant;

use super::{bad_place, line, number, place};
use crate::access::authenticate::{Freshness, Principal};
use crate::access::authorise;
use crate::http::slots::Slot;
use crate::jobs::{job_of, visible_job};
use crate::render::outside;
use crate::reply::{Content, Reply};
use crate::{RequestContext, Result, Server};

/// Facts read at once.
const PAGE: usize = 256;
/// A sign of life.
const HEARTBEAT: &str = ": heartbeat\n\n";
/// Records whose visibility is remembered; more are looked up again.
const REMEMBERED: usize = 4_096;

pub(crate) async fn stream(server: &Arc<Server>, mut asked: RequestContext) -> Result<Reply> {
    // A stream goes on after its answer has begun, and keeps its slot.
    let slot = asked.slot.take();
    let from = number(&asked, "after")?;
    let after = match &asked.last_event_id {
        // A browser that reconnects asks the same address again; where it was stands in the header.
        Some(id) => Some(id.parse().map_err(|_| bad_place(&["header", "Last-Event-ID"]))?),
        None => from,
    };
    let source = match asked.parameter("job").map(Cow::into_owned) {
        Some(id) => {
            asked.id = id;
            let id = visible_job(server, &asked).await?.id().clone();
            // Watched before the first read: a commit in between wakes us.
            Source::Job { watched: server.daemon.changes().watch(&id), id, version: 0, outside: None }
        }
        None => Source::Ledger(server.daemon.ledger()),
    };
    let principal = asked.principal.clone();
    let follower = Follower {
        server: server.clone(),
        principal: principal.clone(),
        after: after.map_or(0, |number| place::meant(server, &principal, number)),
        heartbeat_at: Instant::now() + server.settings.heartbeat,
        source,
        closing: server.closing.subscribe(),
        visible: HashMap::new(),
        greeted: false,
        _slot: slot,
    };
    server.metrics.stream_opened();
    let events = unfold(follower, |mut follower| async move {
        let text = follower.next().await?;
        follower.heartbeat_at = Instant::now() + follower.server.settings.heartbeat;
        Some((text, follower))
    });
    Ok(Reply::of(Content::Events(events.boxed())))
}

struct Follower {
    server: Arc<Server>,
    principal: Arc<Principal>,
    after: u64,
    /// When a sign of life is due. What the caller does not see moves it neither way.
    heartbeat_at: Instant,
    source: Source,
    closing: watch::Receiver<bool>,
    visible: HashMap<RecordId, bool>,
    greeted: bool,
    _slot: Option<Slot>,
}

/// Where the facts come from, and who tells of new ones.
enum Source {
    Ledger(watch::Receiver<u64>),
    /// One job that the caller sees; its circle never changes.
    Job {
        id: RecordId,
        version: u64,
        watched: Watched,
        /// The work outside that it waits for.
        outside: Option<AwaitedWork>,
    },
}

/// Work outside under watch.
struct AwaitedWork {
    id: OperationId,
    watched: Watched,
}

/// What woke a follower.
enum Moved {
    Facts,
    Outside(Arc<Record>),
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.server.metrics.stream_closed();
    }
}

impl Follower {
    /// The next piece of the stream; nothing when it ends.
    async fn next(&mut self) -> Option<String> {
        if !self.greeted {
            self.greeted = true;
            return Some(": the ledger follows\n\n".to_owned());
        }
        loop {
            if *self.closing.borrow() || !self.is_admitted().await {
                return None;
            }
            let facts = match self.page().await {
                Ok(Some(facts)) => facts,
                Ok(None) => return None,
                Err(error) => {
                    tracing::warn!(code = error.code(), "the ledger cannot be followed: {error}");
                    return None;
                }
            };
            if !facts.is_empty() {
                let text = self.events(&facts).await?;
                if !text.is_empty() {
                    return Some(text);
                }
                if Instant::now() < self.heartbeat_at {
                    continue;
                }
                return Some(HEARTBEAT.to_owned());
            }
            let moved = async {
                match &mut self.source {
                    Source::Ledger(ledger) => ledger.changed().await.ok().map(|()| Moved::Facts),
                    Source::Job { watched, outside: None, .. } => {
                        watched.next().await;
                        Some(Moved::Facts)
                    }
                    Source::Job { watched, outside: Some(awaited), .. } => tokio::select! {
                        biased;
                        _ = watched.next() => Some(Moved::Facts),
                        record = awaited.watched.next() => Some(Moved::Outside(record)),
                    },
                }
            };
            tokio::select! {
                moved = moved => match moved? {
                    Moved::Facts => {}
                    Moved::Outside(record) => return outside_event(&record),
                },
                _ = self.closing.wait_for(|closing| *closing) => return None,
                () = tokio::time::sleep_until(self.heartbeat_at) => return Some(HEARTBEAT.to_owned()),
            }
        }
    }

    /// The next facts that there are now; `None` if their job is gone.
    async fn page(&mut self) -> Result<Option<Vec<StoredFact>>, StoreError> {
        let server = self.server.clone();
        let store = server.store();
        let id = match &mut self.source {
            Source::Ledger(ledger) => {
                // Noted before the read: a commit in between wakes us.
                ledger.borrow_and_update();
                return store.facts_after(self.after, PAGE).await.map(Some);
            }
            Source::Job { id, .. } => id.clone(),
        };
        loop {
            let Source::Job { version, .. } = &mut self.source else { return Ok(None) };
            let mut facts = store.facts_of(&id, *version, PAGE).await?;
            let Some(last) = facts.last() else {
                // Facts are read before the job is: one that was retired in between is gone by now.
                let Some(loaded) = store.load(&id).await? else { return Ok(None) };
                self.watch_outside(&loaded.record);
                return Ok(Some(facts));
            };
            *version = last.version;
            facts.retain(|fact| fact.position > self.after);
            if !facts.is_empty() {
                return Ok(Some(facts));
            }
        }
    }

    /// Watches the work outside that the job waits for now.
    fn watch_outside(&mut self, record: &Record) {
        let awaited = record.as_job().and_then(|job| {
            let JobState::AwaitingExternal { operation, .. } = &job.state else { return None };
            Some(operation)
        });
        let Source::Job { outside, .. } = &mut self.source else { return };
        if outside.as_ref().map(|awaited| &awaited.id) == awaited {
            return;
        }
        *outside = awaited.map(|id| AwaitedWork {
            id: id.clone(),
            watched: self.server.daemon.changes().watch(&RecordId::Operation(id.clone())),
        });
    }

    /// The events of a page. Nothing is said of facts that the caller does not see, not even that there were any: whoever comes
    /// back goes on after the last one that it has seen.
    async fn events(&mut self, facts: &[StoredFact]) -> Option<String> {
        let mut text = String::new();
        for fact in facts {
            self.after = fact.position;
            if !self.sees(&fact.stream).await? {
                continue;
            }
            let line = line(&self.server, &self.principal, fact);
            let (id, data) = (line.position, serde_json::to_string(&line).ok()?);
            write!(text, "id: {id}\nevent: fact\ndata: {data}\n\n").ok()?;
        }
        Some(text)
    }

    async fn is_admitted(&self) -> bool {
        // A stream that ends because nobody could tell is resumed by its reader.
        self.server.still_admits(&self.principal, Freshness::Cached).await.unwrap_or_default()
    }

    /// Whether the caller sees a record; nothing if the store cannot tell.
    async fn sees(&mut self, id: &RecordId) -> Option<bool> {
        if matches!(self.source, Source::Job { .. }) {
            return Some(true);
        }
        if self.principal.circle.is_none() && authorise::sees_private(&self.principal) {
            return Some(authorise::sees(&self.principal, None));
        }
        if let Some(visible) = self.visible.get(id) {
            return Some(*visible);
        }
        let visible = match self.whose(id).await? {
            Whose::OfCircle(circle) => authorise::sees(&self.principal, circle.as_deref()),
            // Whoever is handed it later sees it from then on.
            Whose::Private(job) => return Some(authorise::sees_job(&self.principal, job_of(&job))),
            Whose::Gone => false,
        };
        if self.visible.len() >= REMEMBERED {
            self.visible.clear();
        }
        self.visible.insert(id.clone(), visible);
        Some(visible)
    }

    /// To whom a record belongs; of an operation that is its job.
    async fn whose(&self, id: &RecordId) -> Option<Whose> {
        let store = self.server.store();
        let Some(mut loaded) = store.load(id).await.ok()? else { return Some(Whose::Gone) };
        if let Some(operation) = loaded.record.as_operation() {
            let job_id = RecordId::from(operation.link.job_id.clone());
            let Some(of_job) = store.load(&job_id).await.ok()? else { return Some(Whose::Gone) };
            loaded = of_job;
        }
        let is_private = loaded.record.as_job().is_some_and(|job| job.spec.is_private());
        Some(if is_private {
            Whose::Private(loaded.record)
        } else {
            Whose::OfCircle(loaded.record.summary().circle.map(str::to_owned))
        })
    }
}

/// To whom a record belongs.
enum Whose {
    /// To everyone in a circle.
    OfCircle(Option<String>),
    /// To the peers of this job.
    Private(Arc<Record>),
    /// To nobody any more.
    Gone,
}

/// Work outside has moved: where it is now. It has no id, so that whoever comes back goes on from the last fact.
fn outside_event(record: &Record) -> Option<String> {
    let line = serde_json::to_string(&outside(record.as_operation()?)).ok()?;
    Some(format!("event: outside\ndata: {line}\n\n"))
}
