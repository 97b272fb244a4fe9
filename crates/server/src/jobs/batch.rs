//! `POST /jobs/batch`: many jobs at once, each with its own verdict. They are accepted side by side, so that the store syncs them together.

use std::borrow::Cow;

use api::limits::MAX_BATCH_JOBS;
use api::{BatchAnswer, BatchVerdict, CreateBatch, CreateJob, ProblemCode};
use engine::EngineError;
use futures::future::join_all;
use serde::Deserialize;

use super::create::{CREATE_JOB, accept, key_of, without_key};
use crate::keyed::Keyed;
use crate::problem::{at_field, of_engine, read};
use crate::{Reply, RequestContext, Result, Server};

/// The route of its keys.
const CREATE_BATCH: &str = "create_batch";

pub(crate) async fn create_batch(server: &Server, asked: RequestContext) -> Result<Reply> {
    let batch: CreateBatch = asked.read()?;
    if batch.jobs.is_empty() || batch.jobs.len() > MAX_BATCH_JOBS {
        let told = format!("a batch has 1 to {MAX_BATCH_JOBS} jobs");
        return Err(at_field("jobs", "too_large", told));
    }
    let each = batch.jobs.iter().enumerate().map(|(index, job)| verdict(server, &asked, index, job.get()));
    let results = join_all(each).await;
    let refused = results.iter().filter(|verdict| verdict.problem.is_some()).count();
    Ok(Reply::json(&BatchAnswer { accepted: results.len() - refused, refused, results }))
}

async fn verdict(server: &Server, asked: &RequestContext, index: usize, job: &str) -> BatchVerdict<'static> {
    let (job_id, replayed, problem) = match one(server, asked, index, job).await {
        Ok((job_id, replayed)) => (Some(Cow::Owned(job_id)), replayed, None),
        Err(problem) => (None, false, Some(problem)),
    };
    let status = problem.as_ref().map_or(200, |problem| problem.status);
    BatchVerdict { index, status, job_id, replayed, problem }
}

/// The id of one job of the batch, and whether it was accepted before under the same key.
async fn one(server: &Server, asked: &RequestContext, index: usize, job: &str) -> Result<(String, bool)> {
    let create: CreateJob = read(job)?;
    // The key of the whole batch names each of its jobs by its place; a job's own key is that of `POST /jobs`.
    let (route, key) = match (&asked.key, &create.idempotency_key) {
        (Some(batch), None) => (CREATE_BATCH, Some(format!("{batch}#{index}"))),
        (_, own) => (CREATE_JOB, key_of(None, own.as_deref())?),
    };
    let job = without_key(job);
    let keyed = key.map(|key| Keyed::new(&asked.principal, route, key, "", &job));
    match (accept(server, &asked.principal, keyed.as_ref(), create).await?, &keyed) {
        (Ok(accepted), _) => Ok((accepted.id.as_str().to_owned(), false)),
        (Err(EngineError::KeyTaken(kept)), Some(keyed)) => {
            let bytes = keyed.kept_bytes(&kept)?;
            let earlier: Earlier = serde_json::from_slice(&bytes)
                .map_err(|_| ProblemCode::Internal.because("the earlier answer cannot be read"))?;
            Ok((earlier.job_id, true))
        }
        (Err(error), _) => Err(of_engine(&error, "")),
    }
}

/// What of an earlier answer a batch needs.
#[derive(Deserialize)]
struct Earlier {
    job_id: String,
}
