//! `GET /jobs/{id}` and its result.

use std::borrow::Cow;

use api::{JobEnd, JobResult, ReachedLimit, ResultAnswer, ResultNotReady, StatusAnswer};
use domain::ask::correlation_id;
use domain::job::{Job, JobFact, JobState};
use domain::{BodyRef, Fact, Record};
use serde_json::json;
use serde_json::value::RawValue;
use store::{StoreError, StoredFact, fact_kind};

use super::visible::{Visible, visible_job};
use super::why::ended_by_limits;
use crate::access::attempt_alias::shown_actor;
use crate::clock_text;
use crate::facts::shown_place;
use crate::problem::of_store;
use crate::render::{Bodies, Extent, RawObject, end_provenance, json_or_text, limit, raw, released, status};
use crate::{Reply, RequestContext, Result, Server};

/// Facts of a job that are read at once when its end is looked for.
const FACTS_PER_READ: u8 = 50;
/// How often older facts are read until the end is found: notes may follow it.
const MAX_READS_FOR_END: usize = 40;

pub(crate) async fn read_status(server: &Server, asked: RequestContext) -> Result<Reply> {
    let visible = visible_job(server, &asked).await?;
    let bodies = Bodies::with_words(server.store(), visible.job()).await?;
    let (executors, viewer) = (server.daemon.executors(), asked.principal.reporter());
    let mut status = status(executors, visible.job(), visible.claim(), &bodies, Extent::Whole, &viewer);
    let limits = ended_by_limits(server, visible.job()).await?;
    if !limits.is_empty() {
        status.runner = status.runner.map(|runner| with_limits(&runner, &limits));
    }
    Ok(Reply { waited: asked.wait, ..Reply::json(&StatusAnswer { status }) })
}

pub(crate) async fn read_result(server: &Server, asked: RequestContext) -> Result<Reply> {
    let visible = visible_job(server, &asked).await?;
    let (job, viewer) = (visible.job(), asked.principal.reporter());
    let id = Cow::Borrowed(job.id.as_str());
    if !job.state.name().is_terminal() {
        let bodies = Bodies::with_words(server.store(), job).await?;
        let not_ready = ResultNotReady {
            job_id: id.clone(),
            work_id: id,
            result_state: Cow::Borrowed("not_ready"),
            status: status(server.daemon.executors(), job, visible.claim(), &bodies, Extent::Whole, &viewer),
        };
        return Ok(Reply::json(&ResultAnswer { result: JobResult::NotReady(Box::new(not_ready)) }));
    }
    let bodies = Bodies::of_result(server.store(), job).await?;
    let part = |body: Option<BodyRef>| Some(Cow::Owned(json_or_text(bodies.text(body?)?)));
    let end = JobEnd {
        job_id: id.clone(),
        work_id: id,
        state: Cow::Borrowed(job.state.name().as_str()),
        summary: job.result.summary.as_deref().map(Cow::Borrowed),
        data: part(job.result.data),
        error: error(job, part(job.result.error), &ended_by_limits(server, job).await?),
        artifacts: part(job.result.artifacts).unwrap_or_else(|| raw("[]".to_owned())),
        completed_at: job.completed_at.map(|at| Cow::Owned(clock_text::text(at))),
        provenance: observed(server, &asked, &visible, &bodies).await?,
    };
    Ok(Reply::json(&ResultAnswer { result: JobResult::End(Box::new(end)) }))
}

/// The provenance beside a result, with what the daemon itself observed of the end: the facts that say so, who did it, how it was
/// handed over, and what became of whoever did it.
async fn observed(
    server: &Server,
    asked: &RequestContext,
    visible: &Visible,
    bodies: &Bodies,
) -> Result<Cow<'static, RawValue>> {
    let job = visible.job();
    let viewer = asked.principal.reporter();
    let end = end_fact(server, visible).await.map_err(of_store)?;
    let source_event = end.map(|fact| {
        json!({
            "kind": fact_kind(&fact.fact),
            "position": shown_place(server, &asked.principal, fact.position),
            "at": clock_text::text(fact.at),
            "actor": shown_actor(&fact.actor),
        })
    });
    let outside = server.newest_operation(job).await?.filter(|_| !job.attempts.is_empty());
    let outside = outside.as_deref().and_then(Record::as_operation);
    let attempt = job.last_attempt();
    let receipt = attempt.and_then(|attempt| {
        let asked = correlation_id(job, attempt);
        let delivered_at = attempt.delivered_at.map(clock_text::text);
        match (outside, asked, delivered_at) {
            (Some(operation), _, _) => Some(json!({
                "operation_id": operation.id.as_str(),
                "service": operation.link.kind,
                "dispatched_at": clock_text::text(operation.dispatched_at),
                "last_polled_at": operation.last_polled_at.map(clock_text::text),
                "polls": operation.polls,
            })),
            (None, asked, Some(at)) => Some(json!({ "correlation_id": asked, "delivered_at": at })),
            (None, _, None) => None,
        }
    });
    let executor = attempt.map(|attempt| {
        json!({
            "executor": job.spec.executor,
            "peer_id": job.owner_peer(),
            "runner_owner_id": attempt.owner.as_str(),
            "attempt_number": attempt.number,
        })
    });
    let observed = json!({
        "state": job.state.name().as_str(),
        "reason": job.state_reason,
        "source_events": Vec::from_iter(source_event),
        "executor": executor,
        "transport_receipt": receipt,
        "release_result": released(job),
    });
    Ok(end_provenance(job, bodies, &viewer, &observed))
}

/// The fact with which a job has ended, looked for from the newest one backwards.
async fn end_fact(server: &Server, visible: &Visible) -> Result<Option<StoredFact>, StoreError> {
    let completed_at = visible.job().completed_at;
    let mut newest = visible.version();
    for _ in 0..MAX_READS_FOR_END {
        let after = newest.saturating_sub(FACTS_PER_READ.into());
        let mut facts = server.store().facts_of(visible.id(), after, FACTS_PER_READ.into()).await?;
        let end = facts.iter().rposition(|fact| completed_at == Some(fact.at) && is_end(&fact.fact));
        if let Some(place) = end {
            return Ok(Some(facts.swap_remove(place)));
        }
        if after == 0 {
            break;
        }
        newest = after;
    }
    Ok(None)
}

/// Whether a fact is the end of a job.
const fn is_end(fact: &Fact) -> bool {
    matches!(
        fact,
        Fact::Job(
            JobFact::Completed(_)
                | JobFact::Failed(_)
                | JobFact::Cancelled(_)
                | JobFact::Expired(_)
                | JobFact::BecameUnavailable(_)
        )
    )
}

/// The error of a job: what whoever did it said, with the limits of the host that ended it; else those limits alone, else the reason.
fn error(
    job: &Job,
    said: Option<Cow<'static, RawValue>>,
    limits: &[ReachedLimit],
) -> Option<Cow<'static, RawValue>> {
    let reason = job.state_reason.as_deref();
    let told = match (said, limits.first()) {
        (Some(said), None) => return Some(said),
        (Some(said), Some(_)) => return Some(with_limits(&said, limits)),
        (None, Some(first)) => {
            let message = format!("{}: {}", limit::ENDED_BY_A_LIMIT, limit::sentence(first));
            json!({ "code": reason.unwrap_or("expired"), "message": message, "limits": limits })
        }
        (None, None) => {
            let is_error =
                matches!(job.state, JobState::Failed | JobState::Expired | JobState::Unavailable { .. });
            let reason = reason.filter(|_| is_error && job.result.error.is_none())?;
            json!({ "code": reason, "message": format!("the job is {}: {reason}", job.state.name()) })
        }
    };
    Some(raw(told.to_string()))
}

/// An object with the limits beside its own members. What is no object, or says `limits` itself, stays as it is.
fn with_limits(object: &RawValue, limits: &[ReachedLimit]) -> Cow<'static, RawValue> {
    match RawObject::parse(object.get()) {
        Some(mut object) if object.get("limits").is_none() => {
            object.set("limits", limits);
            raw(object.to_text())
        }
        Some(_) | None => raw(object.get().to_owned()),
    }
}
