//! Waiting for a job on behalf of a caller: bounded, woken by commits, and never in the way of other requests.

use std::sync::Arc;
use std::time::Duration;

use api::Problem;
use domain::job::Job;
use domain::{Record, RecordId};

use crate::jobs::job_of;
use crate::problem::{no_such_job, of_store};
use crate::server::Server;

/// The longest wait that is granted to anyone.
pub(crate) const MAX_WAIT_SECONDS: u64 = 60;

/// The job once it is as wanted, or as it is when the time is over or the server stops.
pub(crate) async fn until(
    server: &Server,
    id: &RecordId,
    within: Duration,
    wanted: impl Fn(&Job) -> bool,
) -> Result<Arc<Record>, Problem> {
    let record = until_record(server, id, within, |record| wanted(job_of(record))).await?;
    record.ok_or_else(|| no_such_job(id.as_str()))
}

/// The same, for any record; none if it is not there.
pub(crate) async fn until_record(
    server: &Server,
    id: &RecordId,
    within: Duration,
    wanted: impl Fn(&Record) -> bool,
) -> Result<Option<Arc<Record>>, Problem> {
    let mut watched = server.daemon.changes().watch(id);
    let loaded = server.store().load(id).await.map_err(|error| of_store(&error))?;
    let Some(mut record) = loaded.map(|loaded| loaded.record) else { return Ok(None) };
    let mut closing = server.closing.subscribe();
    let over = tokio::time::sleep(within);
    tokio::pin!(over);
    while !wanted(&record) {
        tokio::select! {
            next = watched.next() => record = next,
            () = &mut over => break,
            _ = closing.wait_for(|closing| *closing) => break,
        }
    }
    Ok(Some(record))
}
