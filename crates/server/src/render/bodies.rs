//! What an answer about a job needs beside its record, read from the store once: its bodies, and the work outside that it waits for.

use std::sync::Arc;

use domain::job::Job;
use domain::operation::Operation;
use domain::{BodyName, BodyRef, Digest, EventId, Record, RecordId};
use futures::future::try_join_all;
use store::{NewBody, Store};

use super::outside::{awaited, with_words};
use crate::Result;
use crate::problem::of_store;

/// Bodies by digest: what a record does not name is not shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bodies {
    texts: Vec<(BodyName, Digest, Arc<str>)>,
    outside: Option<Arc<Record>>,
    event: Option<EventId>,
}

/// What the status shows.
pub(crate) const OF_STATUS: [BodyName; 4] =
    [BodyName::Request, BodyName::Prompt, BodyName::Input, BodyName::Provenance];

impl Bodies {
    /// Those that come with an order.
    pub(crate) fn of_order(new: &[NewBody]) -> Self {
        let text = |new: &NewBody| Arc::from(String::from_utf8_lossy(&new.bytes));
        let texts = new.iter().map(|new| (new.body.name, new.body.sha256, text(new))).collect();
        Self { texts, ..Self::default() }
    }

    /// What the status of a job shows.
    pub(crate) async fn of_status(store: &dyn Store, job: &Job) -> Result<Self> {
        let mut bodies = Self::default();
        bodies.complete(store, job).await?;
        Ok(bodies)
    }

    /// Reads what is still missing for the status of a job.
    pub(crate) async fn complete(&mut self, store: &dyn Store, job: &Job) -> Result<()> {
        self.outside = awaited(store, job).await?;
        let wanted = job.bodies.iter().copied().filter(|body| OF_STATUS.contains(&body.name));
        self.read(store, job, wanted).await
    }

    /// What the status of one job shows to whoever may read it: also what its service said.
    pub(crate) async fn with_words(store: &dyn Store, job: &Job) -> Result<Self> {
        let mut bodies = Self::of_status(store, job).await?;
        if let Some(outside) = bodies.outside.take() {
            bodies.outside = Some(with_words(store, outside).await?);
        }
        if let Some(step) = &job.spec.step {
            let run = store.load(&RecordId::from(step.run_id.clone())).await.map_err(of_store)?;
            bodies.event = run.and_then(|run| Some(run.record.as_run()?.begun.event_id.clone()));
        }
        Ok(bodies)
    }

    /// What the result of a job shows.
    pub(crate) async fn of_result(store: &dyn Store, job: &Job) -> Result<Self> {
        let mut bodies = Self::default();
        let provenance = job.bodies.iter().filter(|body| body.name == BodyName::Provenance);
        let wanted = job.result.bodies().chain(provenance).copied();
        bodies.read(store, job, wanted).await?;
        Ok(bodies)
    }

    /// The text of the body that the job has under this name.
    pub(crate) fn named(&self, job: &Job, name: BodyName) -> Option<&str> {
        let body = job.bodies.iter().find(|body| body.name == name)?;
        self.text(*body)
    }

    /// The event that led to the job, as far as it was read.
    pub(crate) fn event(&self) -> Option<&str> {
        self.event.as_ref().map(EventId::as_str)
    }

    /// The work outside that the job waits for.
    pub(crate) fn outside(&self) -> Option<&Operation> {
        self.outside.as_deref().and_then(Record::as_operation)
    }

    pub(crate) fn text(&self, body: BodyRef) -> Option<&str> {
        let found = self.texts.iter().find(|(name, sha256, _)| (*name, *sha256) == (body.name, body.sha256));
        found.map(|(_, _, text)| &**text)
    }

    async fn read(
        &mut self,
        store: &dyn Store,
        job: &Job,
        wanted: impl Iterator<Item = BodyRef>,
    ) -> Result<()> {
        let missing: Vec<BodyRef> = wanted.filter(|body| self.text(*body).is_none()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let id = RecordId::from(job.id.clone());
        let read = missing.iter().map(|body| store.body(&id, *body));
        let found = try_join_all(read).await.map_err(of_store)?;
        for (body, bytes) in missing.into_iter().zip(found) {
            // Purged in between, or written by an executor that is not bound to text: shown as absent.
            if let Some(text) = bytes.and_then(|bytes| String::from_utf8(bytes).ok()) {
                self.texts.push((body.name, body.sha256, Arc::from(text)));
            }
        }
        Ok(())
    }
}
