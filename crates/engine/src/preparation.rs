//! What follows from something and needs bodies or configuration, so that the rules cannot derive it: prepared before the commit, by whoever
//! knows them. What follows from the change of a record alone is in `domain/src/follow.rs`.
//!
//! What is prepared is a proposal: the rules decide on it like on any order.

use std::sync::Arc;

use domain::job::Job;
use domain::{BodyName, BodyRef, Command, Consequence, OperationId, Record, RecordId, Timestamp};
use futures::future::BoxFuture;
use store::Store;

use crate::kept::{Bodies, Kept};
use crate::{Emitted, Engine, EngineError, Failure, Order};

/// What a preparation comes to, once bodies are read.
pub type PreparationFuture<'a, T> = BoxFuture<'a, Result<T, EngineError>>;

/// Whoever knows what leads to what by configuration, as pipelines do.
pub trait Preparation: Send + Sync {
    /// Adds to the order that brings a job its result what follows from it. Done again after a crash, it is the same. If the result
    /// cannot be followed, the job fails with what is answered; nobody may overlook it.
    fn follow_result<'a>(
        &'a self,
        store: &'a dyn Store,
        job: &'a Job,
        result: &'a WorkResult,
        now: Timestamp,
        order: &'a mut Order,
    ) -> PreparationFuture<'a, Option<Failure>>;

    /// What happens because this record, which is this job or belongs to it, has ended at this version of its stream. Asked while the
    /// commit of the end is planned: it reads configuration alone.
    fn follow_end(&self, record: &Record, job: &Job, version: u64) -> Option<FollowUps>;

    /// The order that goes on with a record that is due; none if nothing has to be prepared for it.
    fn go_on<'a>(
        &'a self,
        store: &'a dyn Store,
        record: &'a Record,
        actor: Arc<str>,
        now: Timestamp,
    ) -> PreparationFuture<'a, Option<Order>>;

    /// The command that ends the waiting of a record with which nobody can go on.
    fn give_up(&self, record: &Record, why: &EngineError) -> Option<Command>;
}

impl Engine {
    /// The order that brings a job its result, with what follows from that. If it cannot be followed, nothing of the result is kept, and
    /// `fail` makes the command one that says so.
    pub(crate) async fn with_follow_ups(
        &self,
        job: &Job,
        result: &WorkResult,
        mut order: Order,
        fail: impl FnOnce(&mut Command, Failure, &mut Kept) + Send,
    ) -> Result<Order, EngineError> {
        let Some(preparation) = self.preparation() else { return Ok(order) };
        let (store, now) = (self.store(), self.clock().now());
        if let Some(failure) = preparation.follow_result(store, job, result, now, &mut order).await? {
            let mut kept = Kept::of(job.id.clone());
            fail(&mut order.command, failure, &mut kept);
            order.plugin_state = None;
            order.bodies.retain(|body| body.record != RecordId::from(job.id.clone()));
            order.bodies.extend(kept.into_bodies());
        }
        Ok(order)
    }
}

/// The result of work, as far as anything follows from it.
#[derive(Clone, Debug)]
pub struct WorkResult {
    /// The events that it emitted.
    pub emitted: Vec<Emitted>,
    /// What it came to.
    pub data: Option<Vec<u8>>,
    /// Whether it left files for what follows it.
    pub left_files: bool,
    /// What it is to its job.
    pub stage: Stage,
}

/// What a result is to its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Its end.
    Last,
    /// What came of this work outside; the job goes on with it.
    Arrived(OperationId),
}

/// What happens besides, in the same commit.
#[derive(Debug, Default)]
pub struct FollowUps {
    /// What is ordered of other records.
    pub consequences: Vec<Consequence>,
    /// The bodies of the records that it names.
    pub bodies: Bodies,
}

impl FollowUps {
    /// Also this order.
    pub fn then(&mut self, record: impl Into<RecordId>, command: impl Into<Command>) {
        self.consequences.push(Consequence { record: record.into(), command: command.into() });
    }

    /// Stores this body with a record.
    pub fn keep(&mut self, record: impl Into<RecordId>, name: BodyName, bytes: Vec<u8>) -> BodyRef {
        self.bodies.keep(record, name, bytes)
    }

    /// Also all of these.
    pub fn extend(&mut self, more: Self) {
        self.consequences.extend(more.consequences);
        self.bodies.extend(more.bodies);
    }

    /// Makes it part of an order.
    pub fn into_order(self, order: &mut Order) {
        order.also.extend(self.consequences);
        order.bodies.extend(self.bodies.into_vec());
    }
}
