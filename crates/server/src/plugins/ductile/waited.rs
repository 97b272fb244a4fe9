//! Waiting for the end of a run: as long as its pipeline says, within the longest wait of the server. What goes on then goes on.

use std::time::Duration;

use api::ductile::{DuctileJob, DuctileLate, DuctileOutcome, DuctileTriggered};
use api::{Problem, ProblemCode};
use domain::run::{Run, RunState};
use domain::{Record, RecordId};
use pipelines::Pipeline;

use super::status;
use super::tree::tree;
use crate::reply::Reply;
use crate::routing::runs::run_of;
use crate::server::Server;
use crate::wait::{MAX_WAIT_SECONDS, until_record};

/// What came of it, or that it goes on.
pub(super) async fn outcome(
    server: &Server,
    triggered: DuctileTriggered,
    pipeline: &Pipeline,
) -> Result<Reply, Problem> {
    let gone = || ProblemCode::NotFound.because("the run is not kept any more");
    let run_id = triggered.run_id.ok_or_else(gone)?;
    let id = RecordId::parse(&run_id).map_err(|_| gone())?;
    let within = Duration::from_secs(pipeline.timeout_seconds.min(MAX_WAIT_SECONDS));
    let is_over = |record: &Record| run_of(record).end.is_some();
    let record = until_record(server, &id, within, is_over).await?.ok_or_else(gone)?;
    let run = run_of(&record);
    if run.end.is_none() {
        let message = format!("the pipeline goes on; ask GET /job/{run_id} for its end");
        let job_id = triggered.job_id;
        let late =
            DuctileLate { job_id, run_id, status: "running".to_owned(), timeout_exceeded: true, message };
        return Ok(Reply::json(&late).accepted());
    }
    let tree = tree(server, run).await?;
    let took = run.ended_at.unwrap_or(run.updated_at).micros() - run.started_at.micros();
    Ok(Reply::json(&DuctileOutcome {
        job_id: triggered.job_id,
        run_id,
        status: ended_as(run, &tree).to_owned(),
        duration_ms: u64::try_from(took / 1_000).unwrap_or_default(),
        result: tree.iter().rev().find_map(|job| job.result.clone()),
        tree,
    }))
}

/// The word of the last job that came to nothing, if the run did.
fn ended_as<'t>(run: &Run, tree: &'t [DuctileJob]) -> &'t str {
    let unwell = tree.iter().rev().map(|job| job.status.as_str()).find(|status| *status != "succeeded");
    match run.state() {
        RunState::Failed => unwell.unwrap_or("failed"),
        RunState::Running | RunState::Cancelling | RunState::Completed | RunState::Cancelled => {
            status::of_run(run)
        }
    }
}
