//! Writes down who has come and who has gone, many at once. While nobody does, it asks nothing of the store.

use std::sync::Arc;

use domain::Timestamp;
use futures::future::BoxFuture;
use store::MAX_SIGHTINGS;

use super::{Next, Worker};
use crate::{Engine, EngineError, Presences};

/// The worker.
pub struct NotePresence {
    engine: Engine,
    presences: Arc<Presences>,
}

impl NotePresence {
    /// On this engine, of those who are heard of here.
    pub fn new(engine: Engine, presences: Arc<Presences>) -> Self {
        Self { engine, presences }
    }

    async fn note(&self, now: Timestamp) -> Result<Next, EngineError> {
        let (sightings, next) = self.presences.to_write(now);
        let is_full = sightings.len() == MAX_SIGHTINGS;
        if !sightings.is_empty()
            && let Err(error) = self.engine.store().note_sightings(sightings.clone()).await
        {
            self.presences.not_written(sightings);
            return Err(error.into());
        }
        Ok(if is_full { Next::Now } else { next.map_or(Next::WhenWoken, Next::At) })
    }
}

impl Worker for NotePresence {
    fn name(&self) -> &'static str {
        "note_presence"
    }

    fn round(&self, now: Timestamp) -> BoxFuture<'_, Result<Next, EngineError>> {
        Box::pin(self.note(now))
    }

    fn woken(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.presences.changed())
    }
}
