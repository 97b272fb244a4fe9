//! Waiting for a job on behalf of a caller: bounded, woken by commits, and never in the way of other requests.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use domain::job::Job;
use domain::{Record, RecordId};
use tokio::sync::watch;
use tokio::time::Sleep;

use crate::jobs::job_of;
use crate::problem::no_such_job;
use crate::{Result, Server};

/// The longest wait that is granted to anyone.
pub(crate) const MAX_WAIT_SECONDS: u64 = 60;

/// The job once it is as wanted, or as it is when the time is over or the server stops.
pub(crate) async fn until(
    server: &Server,
    id: &RecordId,
    within: Duration,
    wanted: impl Fn(&Job) -> bool,
) -> Result<Arc<Record>> {
    let record = until_record(server, id, within, |record| wanted(job_of(record))).await?;
    record.ok_or_else(|| no_such_job(id.as_str()))
}

/// The same, for any record; none if it is not there.
pub(crate) async fn until_record(
    server: &Server,
    id: &RecordId,
    within: Duration,
    wanted: impl Fn(&Record) -> bool,
) -> Result<Option<Arc<Record>>> {
    let mut watched = server.daemon.changes().watch(id);
    let loaded = server.load(id).await?;
    let Some(mut record) = loaded.map(|loaded| loaded.record) else { return Ok(None) };
    let mut patience = Patience::new(server, within);
    while !wanted(&record) {
        let Some(next) = patience.wait_for(watched.next()).await else { break };
        record = next;
    }
    Ok(Some(record))
}

/// How long somebody still waits: until the time is over or the server stops.
pub(crate) struct Patience {
    over: Pin<Box<Sleep>>,
    closing: watch::Receiver<bool>,
}

impl Patience {
    pub(crate) fn new(server: &Server, within: Duration) -> Self {
        Self { over: Box::pin(tokio::time::sleep(within)), closing: server.closing.subscribe() }
    }

    /// What comes; nothing if the wait is over first.
    pub(crate) async fn wait_for<T>(&mut self, coming: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            came = coming => Some(came),
            () = &mut self.over => None,
            _ = self.closing.wait_for(|closing| *closing) => None,
        }
    }
}
