//! `GET /jobs`: a page of jobs, newest change first. A page may be short; only a missing `next_cursor` is the end.

use std::borrow::Cow;

use api::{JobList, JobStatus, Problem, ProblemCode};
use domain::JobId;
use domain::job::{Job, JobStateName};
use futures::future::try_join_all;
use store::{Cursor, JobFilter, JobQuery, Page};

use super::visible::job_of;
use crate::access::authorise;
use crate::cursor;
use crate::problem::of_store;
use crate::render::{Bodies, Extent, OF_STATUS, status, summary};
use crate::{Reply, RequestContext, Result, Server};

/// Bytes of bodies in one page; what does not fit is on the next.
const MAX_PAGE_BODY_BYTES: u64 = 8 * 1_048_576;

pub(crate) async fn list(server: &Server, asked: RequestContext) -> Result<Reply> {
    let is_summary = match asked.parameter("view").as_deref() {
        None | Some("full") => false,
        Some("summary") => true,
        Some(_) => return Err(ProblemCode::InvalidValue.because("view must be one of: full, summary")),
    };
    let query = JobQuery { filter: filter(&asked)?, after: cursor(&asked)?, limit: asked.limit()? };
    let external = asked.parameter("external_job_id");
    let found = match confine(&asked, query) {
        Some(query) => page(server, external.as_deref(), query).await?,
        None => Page { jobs: Vec::new(), next: None },
    };
    let all = found.jobs.iter().map(|record| job_of(record));
    let jobs: Vec<&Job> = all.filter(|job| authorise::sees_job(&asked.principal, job)).collect();
    let executors = server.daemon.executors();
    if is_summary {
        return Ok(respond(jobs.iter().map(|job| summary(executors, job)).collect(), found.next.as_ref()));
    }
    let fitting = fitting(&jobs);
    let cut = jobs[fitting..].first().and(jobs[..fitting].last());
    let cut = cut.map(|job| Cursor::of(job));
    let bodies = try_join_all(jobs[..fitting].iter().map(|job| undamaged(server, job))).await?;
    let viewer = asked.principal.reporter();
    let shown = jobs[..fitting].iter().zip(&bodies).map(|(job, bodies)| match bodies {
        Some(bodies) => status(executors, job, None, bodies, Extent::Whole, &viewer),
        None => summary(executors, job),
    });
    Ok(respond(shown.collect(), cut.as_ref().or(found.next.as_ref())))
}

/// What the status of a job shows; none if a body is damaged. One such job does not hide the others: it is listed without its bodies, and
/// whoever asks for it alone is told.
async fn undamaged(server: &Server, job: &Job) -> Result<Option<Bodies>> {
    match Bodies::of_status(server.store(), job).await {
        Err(problem) if problem.code == ProblemCode::BodyDamaged.as_str() => Ok(None),
        read => read.map(Some),
    }
}

/// A page of jobs that fit; with an id, of those whose work a service knows by it.
pub(crate) async fn page(server: &Server, external_job_id: Option<&str>, query: JobQuery) -> Result<Page> {
    let page = match external_job_id {
        Some(id) => server.store().jobs_known_as(id, query).await,
        None => server.store().jobs(query).await,
    };
    page.map_err(of_store)
}

fn respond(work: Vec<JobStatus<'_>>, next: Option<&Cursor>) -> Reply {
    let next_cursor = next.map(|next| Cow::Owned(cursor_text(next)));
    Reply::json(&JobList { work, recurring: Vec::new(), next_cursor })
}

/// How many of the jobs a page has room for: at least one.
fn fitting(jobs: &[&Job]) -> usize {
    let mut bytes = 0;
    for (index, job) in jobs.iter().enumerate() {
        let shown = job.bodies.iter().filter(|body| OF_STATUS.contains(&body.name));
        bytes += shown.map(|body| body.size).sum::<u64>();
        if bytes > MAX_PAGE_BODY_BYTES && index > 0 {
            return index;
        }
    }
    jobs.len()
}

/// The same question within what the caller sees; none if that is nothing.
pub(crate) fn confine(asked: &RequestContext, mut query: JobQuery) -> Option<JobQuery> {
    query.filter.circle = authorise::circle_of_list(&asked.principal, query.filter.circle)?;
    Some(query)
}

fn filter(asked: &RequestContext) -> Result<JobFilter> {
    let text = |name| asked.parameter(name).map(Cow::into_owned);
    let state = match asked.parameter("state") {
        None => None,
        Some(word) => Some(JobStateName::parse(&word).ok_or_else(|| unknown_state(&word))?),
    };
    Ok(JobFilter {
        state,
        owner_peer_id: text("owner_peer_id"),
        created_by_peer_id: text("created_by_peer_id"),
        session_id: text("repowire_session_id"),
        circle: text("circle"),
        tag: text("tag"),
    })
}

/// The refusal of a word that names no state.
pub(super) fn unknown_state(word: &str) -> Problem {
    let known: Vec<String> = JobStateName::ALL.iter().map(|state| format!("'{state}'")).collect();
    ProblemCode::InvalidValue.because(format!("state must be one of [{}]; got '{word}'", known.join(", ")))
}

/// How a place in the list reads.
pub(crate) fn cursor_text(cursor: &Cursor) -> String {
    cursor::text(cursor.updated_at, cursor.id.as_str())
}

/// The place in the list that a request names.
pub(crate) fn cursor(asked: &RequestContext) -> Result<Option<Cursor>> {
    let place = cursor::of(asked, "work-")?;
    Ok(place.map(|(updated_at, id)| Cursor { updated_at, id: JobId::new(id) }))
}
