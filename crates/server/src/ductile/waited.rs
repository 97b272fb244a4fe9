//! Waiting for the end of a run: as long as its pipeline says, within the longest wait of the server. What goes on then goes on.

use std::time::Duration;

use api::ductile::{DuctileJob, DuctileLate, DuctileOutcome, DuctileTriggered};
use api::{Problem, ProblemCode};
use axum::response::Response;
use domain::run::{Run, RunState};
use domain::{Record, RecordId};
use engine::pipelines::Pipeline;
use tokio::time::Instant;

use super::accepted;
use super::status;
use super::tree::{load_run, tree};
use crate::answer;
use crate::serve::Server;
use crate::wait::MAX_WAIT_SECONDS;

/// A wait that has begun: what the start itself takes counts.
pub(super) struct Waiting {
    began: Instant,
    closing: tokio::sync::watch::Receiver<bool>,
}

impl Waiting {
    pub(super) fn begin(server: &Server) -> Self {
        Self { began: Instant::now(), closing: server.closing.subscribe() }
    }
}

/// What came of it, or that it goes on.
pub(super) async fn outcome(
    server: &Server,
    triggered: DuctileTriggered,
    pipeline: &Pipeline,
    waiting: Waiting,
) -> Result<Response, Problem> {
    let gone = || ProblemCode::NotFound.because("the run is not kept any more");
    let run_id = triggered.run_id.ok_or_else(gone)?;
    let id = RecordId::parse(&run_id).map_err(|_| gone())?;
    let within = Duration::from_secs(pipeline.timeout_seconds.min(MAX_WAIT_SECONDS));
    let run = until_over(server, &id, within, waiting).await?.ok_or_else(gone)?;
    if run.end.is_none() {
        let message = format!("the pipeline goes on; ask GET /job/{run_id} for its end");
        let job_id = triggered.job_id;
        let late =
            DuctileLate { job_id, run_id, status: "running".to_owned(), timeout_exceeded: true, message };
        return Ok(accepted(answer::json(&late)));
    }
    let tree = tree(server, &run).await?;
    let took = run.ended_at.unwrap_or(run.updated_at).micros() - run.started_at.micros();
    Ok(answer::json(&DuctileOutcome {
        job_id: triggered.job_id,
        run_id,
        status: ended_as(&run, &tree).to_owned(),
        duration_ms: u64::try_from(took / 1_000).unwrap_or_default(),
        result: tree.iter().rev().find_map(|job| job.result.clone()),
        tree,
    }))
}

/// The run once it is over, or as it is when the time is over or the server stops.
async fn until_over(
    server: &Server,
    id: &RecordId,
    within: Duration,
    mut waiting: Waiting,
) -> Result<Option<Box<Run>>, Problem> {
    let mut watched = server.daemon.changes().watch(id);
    let Some(mut run) = load_run(server, id).await? else { return Ok(None) };
    let over = tokio::time::sleep_until(waiting.began + within);
    tokio::pin!(over);
    while run.end.is_none() {
        tokio::select! {
            next = watched.next() => if let Record::Run(next) = &*next {
                run.clone_from(next);
            },
            () = &mut over => break,
            _ = waiting.closing.wait_for(|closing| *closing) => break,
        }
    }
    Ok(Some(run))
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
