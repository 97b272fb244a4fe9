//! `GET /runs` and `GET /runs/{id}`.

use api::{Problem, RunAnswer, RunList};
use domain::RecordKind;
use domain::run::RunState;
use store::Loaded;

use super::shown::{Extent, run_of, shown};
use crate::access::visible::visible_record;
use crate::reply::Reply;
use crate::request_context::RequestContext;
use crate::routing::routed;
use crate::server::Server;

pub(crate) async fn list(server: &Server, asked: RequestContext) -> Result<Reply, Problem> {
    let states = RunState::ALL.map(RunState::as_str);
    let (records, next_cursor) = routed::page(server, &asked, RecordKind::Run, "pipeline", &states).await?;
    let runs = records.iter().map(|record| shown(run_of(record), Extent::Summary)).collect();
    Ok(Reply::json(&RunList { runs, next_cursor }))
}

pub(crate) async fn read(server: &Server, asked: RequestContext) -> Result<Reply, Problem> {
    let loaded = visible_run(server, &asked).await?;
    Ok(Reply::json(&RunAnswer { run: shown(run_of(&loaded.record), Extent::Whole) }))
}

/// The run that the path names, if the caller sees it.
pub(super) async fn visible_run(server: &Server, asked: &RequestContext) -> Result<Loaded, Problem> {
    visible_record(server, asked, &[RecordKind::Run], &asked.id, &asked.id).await
}
