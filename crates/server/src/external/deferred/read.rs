//! `/v1/deferred-operations`: the list, one of them with its history, and its status. All from the store; no service is asked.

use std::sync::Arc;
use std::time::Duration;

use api::ProblemCode;
use api::deferred::{DeferredDetail, DeferredEvent, DeferredList};
use domain::job::{Job, JobStateName};
use domain::operation::OperationStatus;
use domain::{BodyName, Record};
use futures::future::try_join_all;
use serde_json::value::RawValue;
use store::{JobFilter, JobQuery, Page, StoredFact, encode_fact, fact_kind};

use super::capability::Capability;
use super::face::Face;
use super::handle;
use super::schemas::{Document, check, is_causal_context};
use crate::access::attempt_alias::shown_actor;
use crate::access::authorise;
use crate::clock_text::text;
use crate::external::sensorium;
use crate::facts::shown_place;
use crate::jobs::{confine, cursor, cursor_text, job_of, page, visible_called};
use crate::problem::{at, no_such_job, of_store};
use crate::render::{RawObject, awaited, json_or_text};
use crate::reply::{Given, Reply, render};
use crate::{RequestContext, Result, Server};

/// Lines of the ledger that a detail shows of one record: the first ones.
const MAX_HISTORY: usize = 1_000;
/// Pages of jobs that one page of operations is looked for in; then it is short.
const MAX_PAGES: usize = 20;

/// A job whose caller took a handle, as it was read.
pub(super) struct Shown {
    record: Arc<Record>,
    operation: Option<Arc<Record>>,
}

impl Shown {
    /// The job with the operation that it waits for, or the one that changed last.
    pub(super) async fn of(server: &Server, record: Arc<Record>) -> Result<Self> {
        let job = job_of(&record);
        if job.attempts.is_empty() {
            return Ok(Self { record, operation: None });
        }
        let operation = match awaited(server.store(), job).await? {
            None => server.newest_operation(job).await?,
            awaited => awaited,
        };
        Ok(Self { record, operation })
    }

    pub(super) fn job(&self) -> &Job {
        job_of(&self.record)
    }

    pub(super) fn face<'a>(&'a self, server: &'a Server) -> Face<'a> {
        let operation = self.operation.as_deref().and_then(Record::as_operation);
        let (executors, policy) = (server.daemon.executors(), server.daemon.policy());
        Face { job: self.job(), operation, executors, policy }
    }
}

/// What the caller wants with it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Look,
    Steer,
}

/// The job that the handle in the path names, if its caller sees it.
pub(super) async fn named(server: &Server, asked: &RequestContext, purpose: Purpose) -> Result<Shown> {
    let id = job_id_named(&asked.id);
    let visible = visible_called(server, asked, &id, &asked.id).await?;
    let visible = match purpose {
        Purpose::Look => visible,
        Purpose::Steer => visible.steered_by(server, asked, None)?,
    };
    let is_its_handle = handle::of_job(visible.job()).is_some_and(|(handle, _)| handle == asked.id);
    if !is_its_handle {
        return Err(no_such_job(&asked.id));
    }
    Shown::of(server, visible.record().clone()).await
}

/// The id of the job that a handle names.
pub(crate) fn job_id_named(handle: &str) -> String {
    handle::job_id(handle).unwrap_or_default()
}

pub(crate) async fn read_status(server: &Server, asked: RequestContext) -> Result<Reply> {
    let shown = named(server, &asked, Purpose::Look).await?;
    status_response(server, &shown, asked.wait).await
}

/// The status document, checked, with the headers that say the same.
pub(super) async fn status_response(
    server: &Server,
    shown: &Shown,
    waited: Option<Duration>,
) -> Result<Reply> {
    let face = shown.face(server);
    let result = if face.word() != OperationStatus::Completed {
        None
    } else if handle::is_directive(shown.job()) {
        Some(sensorium::nested_result(server, shown.job()).await?)
    } else {
        Some(result_of(server, shown.job()).await?)
    };
    let causal_context = causal_context_of(server, shown.job()).await?;
    let executor = shown.job().spec.executor.as_deref().unwrap_or_default();
    let circle = shown.job().spec.circle.as_deref();
    let retry_after = Capability::named(server, circle, executor)
        .map_or(server.daemon.policy().for_all().default_retry_after_seconds, |known| {
            known.retry_after_seconds()
        });
    checked_status(render(&face.status(retry_after, result, causal_context, server.now())), waited)
}

/// A status that breaks its schema does not leave.
fn checked_status(bytes: Vec<u8>, waited: Option<Duration>) -> Result<Reply> {
    let document = check(Document::Status, &bytes)?;
    let retry_after_seconds = document["retry_after_seconds"].as_u64();
    Ok(Reply { retry_after_seconds, waited, ..Reply::rendered(bytes, Given::Now) })
}

/// Where a job came from, if its caller said so and it fits.
async fn causal_context_of(server: &Server, job: &Job) -> Result<Option<Box<RawValue>>> {
    let Some(body) = job.bodies.iter().find(|body| body.name == BodyName::Provenance) else {
        return Ok(None);
    };
    let Some(bytes) = server.body_of(job, *body).await? else { return Ok(None) };
    let text = String::from_utf8(bytes).unwrap_or_default();
    let context = RawObject::parse(&text).and_then(|whole| Some(whole.get("causal_context")?.to_owned()));
    // A report may have replaced it since.
    Ok(context.filter(|context| is_causal_context(context.get())))
}

/// The result of a job as JSON; `null` if it has none, or has it no more.
pub(crate) async fn result_of(server: &Server, job: &Job) -> Result<Box<RawValue>> {
    let bytes = match job.result.data {
        Some(body) => server.body_of(job, body).await?,
        None => None,
    };
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    Ok(json_or_text(text.as_deref().unwrap_or("null")))
}

pub(crate) async fn list(server: &Server, asked: RequestContext) -> Result<Reply> {
    let status = asked.parameter("status").map(|word| status_of(&word)).transpose()?;
    let (kind, owner) = (asked.parameter("kind"), asked.parameter("owner"));
    let external = asked.parameter("external_job_id");
    let now = server.now();
    let limit = asked.limit()?;
    let mut after = cursor(&asked)?;
    let mut operations = Vec::new();
    for _ in 0..MAX_PAGES {
        let filter = JobFilter { state: status.and_then(only_state), ..JobFilter::default() };
        let query = JobQuery { filter, after, limit: limit - operations.len() };
        let found = match confine(&asked, query) {
            Some(query) => page(server, external.as_deref(), query).await?,
            None => Page { jobs: Vec::new(), next: None },
        };
        let seen = |record: &Arc<Record>| authorise::sees_job(&asked.principal, job_of(record));
        let deferred = found.jobs.into_iter().filter(seen);
        let deferred = deferred.filter(|record| handle::of_job(job_of(record)).is_some());
        let shown = try_join_all(deferred.map(|record| Shown::of(server, record))).await?;
        let fitting = shown
            .iter()
            .filter(|shown| status.is_none_or(|status| shown.face(server).word() == status))
            .filter_map(|shown| shown.face(server).view(now))
            .filter(|view| kind.as_ref().is_none_or(|kind| view.operation_kind == *kind))
            .filter(|view| owner.as_ref().is_none_or(|owner| view.owner_module_id == *owner));
        operations.extend(fitting);
        after = found.next;
        if after.is_none() || operations.len() == limit {
            break;
        }
    }
    Ok(Reply::json(&DeferredList { operations, next_cursor: after.as_ref().map(cursor_text) }))
}

pub(crate) async fn read_detail(server: &Server, asked: RequestContext) -> Result<Reply> {
    let shown = named(server, &asked, Purpose::Look).await?;
    let Some(operation) = shown.face(server).view(server.now()) else { return Err(no_such_job(&asked.id)) };
    let records = [Some(&shown.record), shown.operation.as_ref()];
    let mut facts = Vec::new();
    for record in records.into_iter().flatten() {
        let of_one = server.store().facts_of(&record.id(), 0, MAX_HISTORY).await;
        facts.extend(of_one.map_err(of_store)?);
    }
    facts.sort_by_key(|fact| fact.position);
    let history = facts.iter().map(|fact| event(server, &asked, fact)).collect();
    Ok(Reply::json(&DeferredDetail { operation, history }))
}

/// A line of the ledger without what it says, as this caller may see it.
fn event(server: &Server, asked: &RequestContext, fact: &StoredFact) -> DeferredEvent {
    DeferredEvent {
        position: shown_place(server, &asked.principal, fact.position),
        kind: fact_kind(&fact.fact).to_owned(),
        at: text(fact.at),
        actor: shown_actor(&fact.actor).into_owned(),
        payload_digest: format!("sha256:{}", store::sha256(encode_fact(&fact.fact).as_bytes())),
    }
}

fn status_of(word: &str) -> Result<OperationStatus> {
    OperationStatus::ALL.into_iter().find(|status| status.as_str() == word).ok_or_else(|| {
        let known: Vec<&str> = OperationStatus::ALL.iter().map(|status| status.as_str()).collect();
        let told = format!("status must be one of {}", known.join(", "));
        at(ProblemCode::InvalidRequest, "literal_error", &["query", "status"], told)
    })
}

/// The one state of a job that a status stands for, if it is one.
fn only_state(status: OperationStatus) -> Option<JobStateName> {
    match status {
        OperationStatus::Completed => Some(JobStateName::Completed),
        OperationStatus::Failed | OperationStatus::TimedOut => Some(JobStateName::Failed),
        OperationStatus::Cancelled => Some(JobStateName::Cancelled),
        OperationStatus::Expired => Some(JobStateName::Expired),
        OperationStatus::Pending | OperationStatus::Running | OperationStatus::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // conforms: O92
    #[test]
    fn status_that_breaks_its_schema_does_not_leave() {
        let unfit = br#"{"schema":"deferred-operation-status.v1","status":"deferred"}"#;
        let problem = checked_status(unfit.to_vec(), None).err().expect("it has no word of the schema");
        assert_eq!(problem.code, ProblemCode::Internal.as_str());
    }
}
