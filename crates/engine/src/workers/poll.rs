//! Polls operations that are due: takes as many as there are places, and asks each service in a task of its own.

use std::sync::Arc;

use domain::{RecordKind, Timestamp};
use futures::future::BoxFuture;

use super::due_times::DueTimes;
use super::{Next, Worker};
use crate::{Engine, EngineError, Polls, Wakes};

/// Operations taken in one round.
const BATCH: usize = 256;
/// Operations that become due within the same span are taken in one commit. Far below the shortest interval that a host can grant.
const GATHERED_MICROS: i64 = 20_000;

/// The worker.
pub struct PollOperations {
    engine: Engine,
    polls: Arc<Polls>,
    wakes: Arc<Wakes>,
    due_times: DueTimes,
}

impl PollOperations {
    /// On this engine, with these places.
    pub fn new(engine: Engine, polls: Arc<Polls>, wakes: Arc<Wakes>) -> Self {
        tracing::info!("external_polling_loop.started: sleeps until something is due");
        let due_times = DueTimes::gathering(if polls.timer.runs_by_itself() { GATHERED_MICROS } else { 0 });
        Self { engine, polls, wakes, due_times }
    }

    async fn poll_due(&self, now: Timestamp) -> Result<Next, EngineError> {
        for operation in self.wakes.take_may_be_called_back() {
            self.polls.hear_early(operation);
        }
        if let Some(next) = Next::if_nothing_is_taken(self.polls.may_take(), now) {
            return Ok(next);
        }
        if let Some(next) = self.due_times.nothing_before(now, self.wakes.operations.take()) {
            return Ok(next);
        }
        let limit = self.polls.free().min(BATCH);
        if limit == 0 {
            // A question that ends wakes us.
            return Ok(Next::WhenWoken);
        }
        let taken = self.engine.store().take_due(RecordKind::Operation, self.polls.take(now, limit)).await?;
        let more = taken.len() == limit;
        for one in taken {
            self.polls.begin(one);
        }
        if more {
            return Ok(Next::Now);
        }
        Ok(self.due_times.learned(self.engine.store().earliest_due(RecordKind::Operation).await?))
    }
}

impl Drop for PollOperations {
    fn drop(&mut self) {
        tracing::info!("external_polling_loop.stopped");
    }
}

impl Worker for PollOperations {
    fn name(&self) -> &'static str {
        "poll_operations"
    }

    fn failed_round(&self) -> &'static str {
        "external_polling_loop.tick_failed"
    }

    fn round(&self, now: Timestamp) -> BoxFuture<'_, Result<Next, EngineError>> {
        Box::pin(self.poll_due(now))
    }

    fn woken(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.wakes.operations.woken())
    }
}
