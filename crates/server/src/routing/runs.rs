//! `/runs`: pipelines at their work: where each is, and how it is stopped or goes on after a failure.

mod shown;
mod steer;

use api::{RunAnswer, RunList};
use domain::RecordKind;
use domain::run::RunState;
use store::Loaded;

use shown::shown;
pub(crate) use shown::{run_of, whole};
pub(crate) use steer::{cancel, retry};

use crate::access::visible::visible_record;
use crate::{Reply, RequestContext, Result, Server};

/// `GET /runs`.
pub(crate) async fn list(server: &Server, asked: RequestContext) -> Result<Reply> {
    let states = RunState::ALL.map(RunState::as_str);
    let (records, next_cursor) = super::page(server, &asked, RecordKind::Run, "pipeline", &states).await?;
    let runs = records.iter().map(|record| shown(run_of(record))).collect();
    Ok(Reply::json(&RunList { runs, next_cursor }))
}

/// `GET /runs/{id}`.
pub(crate) async fn read(server: &Server, asked: RequestContext) -> Result<Reply> {
    let loaded = visible_run(server, &asked).await?;
    Ok(Reply::json(&RunAnswer { run: whole(run_of(&loaded.record)) }))
}

/// The run that the path names, if the caller sees it.
async fn visible_run(server: &Server, asked: &RequestContext) -> Result<Loaded> {
    visible_record(server, asked, &[RecordKind::Run], &asked.id, &asked.id).await
}
