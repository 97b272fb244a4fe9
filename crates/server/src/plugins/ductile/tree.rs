//! `GET /job/{id}/tree`: all jobs of the run that a job belongs to, and which led to which.

use api::ductile::DuctileJob;
use api::{Problem, ProblemCode};
use domain::event::Origin;
use domain::job::Job;
use domain::run::{Cause, Run, VisitIndex};
use domain::{JobId, RecordId, RecordKind};
use futures::future::try_join_all;

use super::job::shown;
use crate::access::visible::visible_record;
use crate::jobs::job_of;
use crate::problem::of_store;
use crate::reply::Reply;
use crate::request_context::RequestContext;
use crate::server::Server;

/// Groups in groups: as many as a shape can have.
const MAX_CAUSES: usize = domain::run::MAX_VISITS;
/// Jobs that are read at the same time.
const READ_TOGETHER: usize = 16;

/// What an id names.
pub(super) enum Family {
    Run(Box<Run>),
    Job(Box<Job>),
}

pub(crate) async fn read_tree(server: &Server, asked: RequestContext) -> Result<Reply, Problem> {
    let job = match family(server, &asked).await? {
        Family::Run(run) => return Ok(Reply::json(&tree(server, &run).await?)),
        Family::Job(job) => job,
    };
    let run = match &job.spec.step {
        Some(step) => load_run(server, &step.run_id.clone().into()).await?,
        None => None,
    };
    match run {
        Some(run) => Ok(Reply::json(&tree(server, &run).await?)),
        // It is its own tree.
        None => Ok(Reply::json(&[in_tree(server, &job, None).await?])),
    }
}

/// The job or the run that the path names, if the caller sees it.
pub(super) async fn family(server: &Server, asked: &RequestContext) -> Result<Family, Problem> {
    let kinds = [RecordKind::Job, RecordKind::Run];
    let record = visible_record(server, asked, &kinds, &asked.id, &asked.id).await?.record;
    Ok(match record.as_run() {
        Some(run) => Family::Run(Box::new(run.clone())),
        None => Family::Job(Box::new(job_of(&record).clone())),
    })
}

/// All jobs of a run, in the order in which they began.
pub(super) async fn tree(server: &Server, run: &Run) -> Result<Vec<DuctileJob>, Problem> {
    let root = root_of(server, run).await?;
    let jobs: Vec<(VisitIndex, &JobId)> =
        run.numbered().filter_map(|(at, visit)| Some((at, visit.job_id()?))).collect();
    let mut tree = Vec::with_capacity(jobs.len());
    for some in jobs.chunks(READ_TOGETHER) {
        let read = some.iter().map(async |(at, job_id)| {
            let id = RecordId::from((*job_id).clone());
            let loaded = server.store().load(&id).await.map_err(|error| of_store(&error))?;
            let Some(job) = loaded.as_ref().and_then(|loaded| loaded.record.as_job()) else {
                return Ok(None);
            };
            let parent = parent(run, *at).or(root.as_ref());
            in_tree(server, job, parent).await.map(Some)
        });
        tree.extend(try_join_all(read).await?.into_iter().flatten());
    }
    Ok(tree)
}

/// The run with this id.
async fn load_run(server: &Server, id: &RecordId) -> Result<Option<Box<Run>>, Problem> {
    let loaded = server.store().load(id).await.map_err(|error| of_store(&error))?;
    let Some(loaded) = loaded else { return Ok(None) };
    match loaded.record.as_run() {
        Some(run) => Ok(Some(Box::new(run.clone()))),
        None => Err(ProblemCode::Internal.because("a run's id names no run")),
    }
}

async fn in_tree(server: &Server, job: &Job, parent: Option<&JobId>) -> Result<DuctileJob, Problem> {
    let shown = shown(server, job).await?;
    let parent_job_id = parent.map(|parent| parent.as_str().to_owned());
    Ok(DuctileJob { parent_job_id, last_error: shown.error.clone(), ..shown })
}

/// The job whose event started the run, if a job's did.
async fn root_of(server: &Server, run: &Run) -> Result<Option<JobId>, Problem> {
    let id = RecordId::from(run.begun.event_id.clone());
    let loaded = server.store().load(&id).await.map_err(|error| of_store(&error))?;
    let event = loaded.as_ref().and_then(|loaded| loaded.record.as_event());
    Ok(event.and_then(|event| match &event.said.origin {
        Origin::Emitted { job_id, .. } | Origin::JobEnded { job_id } => Some(job_id.clone()),
        Origin::Published { .. } | Origin::Asked { .. } | Origin::Webhook { .. } => None,
    }))
}

/// The job that led to a visit: none if the run began with it.
fn parent(run: &Run, mut at: VisitIndex) -> Option<&JobId> {
    for _ in 0..MAX_CAUSES {
        at = match run.visit(at)?.cause {
            Cause::Start => return None,
            Cause::Entered(group) => group,
            Cause::After(before, _) | Cause::Failure(before) => match last_job(run, before) {
                Some(job_id) => return Some(job_id),
                // It was skipped: what led to it led here.
                None => before,
            },
        };
    }
    None
}

/// The job of a visit; of a group the last that began in it.
fn last_job(run: &Run, at: VisitIndex) -> Option<&JobId> {
    if let Some(job_id) = run.visit(at)?.job_id() {
        return Some(job_id);
    }
    run.numbered().rev().filter(|(_, visit)| visit.job_id().is_some()).find_map(|(inner, visit)| {
        let mut within = run.visit(inner)?.within;
        for _ in 0..MAX_CAUSES {
            match within {
                Some(group) if group == at => return visit.job_id(),
                Some(group) => within = run.visit(group)?.within,
                None => return None,
            }
        }
        None
    })
}
