//! `GET /job/{id}/tree`: all jobs of the run that a job belongs to, and which led to which.

use std::sync::Arc;

use api::ductile::DuctileJob;
use domain::event::Origin;
use domain::job::Job;
use domain::run::{Cause, Run, VisitIndex};
use domain::{JobId, Record, RecordId, RecordKind};
use futures::future::try_join_all;

use super::job::shown;
use crate::access::visible::visible_record;
use crate::jobs::job_of;
use crate::{Reply, RequestContext, Result, Server};

/// Groups in groups: as many as a shape can have.
const MAX_CAUSES: usize = domain::run::MAX_VISITS;
/// Jobs that are read at the same time.
const READ_TOGETHER: usize = 16;

pub(crate) async fn read_tree(server: &Server, asked: RequestContext) -> Result<Reply> {
    let record = family(server, &asked).await?;
    if let Some(run) = record.as_run() {
        return Ok(Reply::json(&tree(server, run).await?));
    }
    let job = job_of(&record);
    let of_run = match &job.spec.step {
        Some(step) => server.load(&step.run_id.clone().into()).await?,
        None => None,
    };
    match of_run.as_ref().and_then(|loaded| loaded.record.as_run()) {
        Some(run) => Ok(Reply::json(&tree(server, run).await?)),
        // It is its own tree.
        None => Ok(Reply::json(&[in_tree(server, job, None).await?])),
    }
}

/// The job or the run that the path names, if the caller sees it.
pub(super) async fn family(server: &Server, asked: &RequestContext) -> Result<Arc<Record>> {
    let kinds = [RecordKind::Job, RecordKind::Run];
    Ok(visible_record(server, asked, &kinds, &asked.id, &asked.id).await?.record)
}

/// All jobs of a run, in the order in which they began.
pub(super) async fn tree(server: &Server, run: &Run) -> Result<Vec<DuctileJob>> {
    let root = root_of(server, run).await?;
    let jobs: Vec<(VisitIndex, &JobId)> =
        run.numbered().filter_map(|(at, visit)| Some((at, visit.job_id()?))).collect();
    let mut tree = Vec::with_capacity(jobs.len());
    for some in jobs.chunks(READ_TOGETHER) {
        let read = some.iter().map(async |(at, job_id)| {
            let id = RecordId::from((*job_id).clone());
            let loaded = server.load(&id).await?;
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

async fn in_tree(server: &Server, job: &Job, parent: Option<&JobId>) -> Result<DuctileJob> {
    let shown = shown(server, job).await?;
    let parent_job_id = parent.map(|parent| parent.as_str().to_owned());
    Ok(DuctileJob { parent_job_id, last_error: shown.error.clone(), ..shown })
}

/// The job whose event started the run, if a job's did.
async fn root_of(server: &Server, run: &Run) -> Result<Option<JobId>> {
    let id = RecordId::from(run.begun.event_id.clone());
    let loaded = server.load(&id).await?;
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
