//! Waiting for a job on behalf of a caller: bounded, woken by commits, and never in the way of other requests.

use std::sync::Arc;
use std::time::Duration;

use api::Problem;
use axum::http::HeaderMap;
use domain::job::Job;
use domain::{Record, RecordId};

use crate::jobs::job_of;
use crate::problem::{no_such_job, of_store};
use crate::serve::Server;

/// The longest wait that is granted to anyone.
pub(crate) const MAX_WAIT_SECONDS: u64 = 60;

/// How long the caller would like to wait: `Prefer: wait=10`. What cannot be understood is no preference.
pub(crate) fn preferred(headers: &HeaderMap) -> Option<Duration> {
    let lines = headers.get_all("prefer").into_iter().filter_map(|line| line.to_str().ok());
    let mut waits = lines.flat_map(|line| line.split(',')).filter_map(|preference| {
        let (name, value) = preference.split(';').next()?.split_once('=')?;
        let is_wait = name.trim().eq_ignore_ascii_case("wait");
        is_wait.then(|| value.trim().trim_matches('"').parse::<u64>().ok())?
    });
    waits.next().map(|seconds| Duration::from_secs(seconds.min(MAX_WAIT_SECONDS)))
}

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

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn only_a_wait_that_can_be_understood_is_a_preference() {
        for (line, seconds) in [
            ("wait=10", Some(10)),
            ("respond-async, Wait = \"7\"; x=1", Some(7)),
            ("wait=100000", Some(MAX_WAIT_SECONDS)),
            ("wait=0", Some(0)),
            ("wait", None),
            ("wait=-1", None),
            ("return=minimal", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("prefer", HeaderValue::from_static(line));
            assert_eq!(preferred(&headers), seconds.map(Duration::from_secs), "{line}");
        }
        assert_eq!(preferred(&HeaderMap::new()), None);
    }
}
