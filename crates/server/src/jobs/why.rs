//! `GET /jobs/{id}/why`: what keeps a job where it is. The reasons are the domain's; this adds what the node knows.

use api::Why;
use domain::job::{ExecutorHere, Job, JobState, LaneHere, Reason, Surroundings, cancel_told};
use domain::limit::{ended_by, life_of};
use domain::operation::{Operation, OrphanReason, Settlement};
use domain::{BodyName, Record};
use engine::Dispatching;
use futures::future::try_join_all;
use serde_json::Value;
use serde_json::value::RawValue;

use super::visible::{Visible, visible_job};
use crate::access::authorise;
use crate::clock_text::text;
use crate::peers;
use crate::problem::of_store;
use crate::render::{awaited, limit, with_words};
use crate::{Reply, RequestContext, Result, Server};

/// The most characters of an error's message that are shown.
const MAX_MESSAGE: usize = 500;
/// The newest operations of a job that are looked at.
const MAX_OPERATIONS: usize = 20;

pub(crate) async fn why(server: &Server, asked: RequestContext) -> Result<Reply> {
    let visible = visible_job(server, &asked).await?;
    let job = visible.job();
    let error = error_of(server, &visible).await?;
    let outside = match awaited(server.store(), job).await? {
        Some(record) => Some(with_words(server.store(), record).await?),
        None => None,
    };
    let outside = outside.as_deref().and_then(Record::as_operation);
    let around = Surroundings {
        lease_expires_at: visible.claim().map(|claim| claim.lease_expires_at),
        executor: executor_here(server, job, outside),
        peer: peers::here(server, job).await?,
        lane: lane_here(server, job).await?,
        error: error.as_deref(),
        outside,
    };
    let question = question(server, &visible).await?;
    let explanation = domain::job::why(job, around, server.now());
    let mut reasons: Vec<api::Reason> = explanation.reasons.into_iter().map(reason).collect();
    let missing = reasons.iter_mut().find(|reason| reason.code == "executor_missing");
    if let (Some(missing), Some(executor)) = (missing, &job.spec.executor) {
        missing.detail.push_str(&server.daemon.executors().near(job.spec.circle.as_deref(), executor));
    }
    let step = crate::daemon::clock::sentence(server).filter(|_| explanation.earliest_at.is_some());
    reasons.extend(step.map(|detail| told("clock_step", detail)));
    reasons.extend(circle(server, &asked, job));
    reasons.extend(no_callback(server, job, outside));
    // Those that ended it, or that bound what it waits for outside.
    let limits = match outside {
        Some(open) => life_of(job, open, server.daemon.policy()).into_iter().map(limit::shown).collect(),
        None => ended_by_limits(server, job).await?,
    };
    let is_over = job.state.name().is_terminal();
    let what = if is_over { limit::ENDED_BY_A_LIMIT } else { "it ends at the latest by" };
    for reached in &limits {
        reasons.push(told("limit", format!("{what}: {}", limit::sentence(reached))));
    }
    reasons.extend(orphans(server, job).await?);
    Ok(Reply::json(&Why {
        job_id: job.id.as_str().to_owned(),
        work_id: job.id.as_str().to_owned(),
        state: job.state.name().as_str().to_owned(),
        reasons,
        earliest_at: explanation.earliest_at.map(text),
        limits,
        question,
    }))
}

/// Of which circle workers have to be. That others wait elsewhere is told to those alone who see every circle.
fn circle(server: &Server, asked: &RequestContext, job: &Job) -> Option<api::Reason> {
    if job.spec.executor.is_some() || !matches!(job.state, JobState::Queued { .. }) {
        return None;
    }
    let elsewhere = if authorise::sees_every_circle(&asked.principal) {
        server.daemon.pulls().waiting_elsewhere(&job.spec.lane())
    } else {
        0
    };
    let given = match (&job.spec.circle, elsewhere) {
        (None, 0) => return None,
        (Some(circle), _) => format!("only workers of the circle {circle:?} are given this job"),
        (None, _) => "it is in no circle: only workers that pull without a circle are given it".to_owned(),
    };
    let waiting = match elsewhere {
        0 => String::new(),
        1 => "; 1 that asks for such work is waiting in another circle".to_owned(),
        many => format!("; {many} that ask for such work are waiting in other circles"),
    };
    Some(told("circle", format!("{given}{waiting}")))
}

/// The limits of the host that ended a job.
pub(super) async fn ended_by_limits(server: &Server, job: &Job) -> Result<Vec<api::ReachedLimit>> {
    if !job.state.name().is_terminal() || job.state == JobState::Completed {
        return Ok(Vec::new());
    }
    let newest = if job.attempts.is_empty() { None } else { server.newest_operation(job).await? };
    let operation = newest.as_deref().and_then(Record::as_operation);
    Ok(ended_by(job, operation, server.daemon.policy()).into_iter().map(limit::shown).collect())
}

/// That the service of work outside has no address to call back, although its connector would give it one.
fn no_callback(server: &Server, job: &Job, outside: Option<&Operation>) -> Option<api::Reason> {
    let kind = &outside?.link.kind;
    let executor = server.daemon.executors().find(job.spec.circle.as_deref(), kind)?;
    let detail = format!(
        "the connector {kind} gives its service ${{operation.callback_url}}, which is empty: the daemon has no public_url. Nobody \
         calls back and the service is only polled; set public_url in longhaul.yaml"
    );
    executor.specialist.traits().lacks_callback_url.then(|| told("no_callback_url", detail))
}

/// What the job may have left running outside.
async fn orphans(server: &Server, job: &Job) -> Result<Vec<api::Reason>> {
    // Only a job that was dispatched has left anything.
    if job.attempts.is_empty() {
        return Ok(Vec::new());
    }
    let left = server.store().operations_of(&job.id, MAX_OPERATIONS).await.map_err(of_store)?;
    let left = left.into_iter().map(|record| with_words(server.store(), record));
    let left = try_join_all(left).await?;
    let mut reasons: Vec<_> = left.iter().filter_map(|record| cancel_answered(record)).collect();
    reasons.extend(left.iter().filter_map(|record| orphaned(record)));
    Ok(reasons)
}

/// What the service of an operation that is over said when it was asked to stop it; while it is open, that is told with the waiting.
fn cancel_answered(record: &Record) -> Option<api::Reason> {
    let operation = record.as_operation().filter(|operation| operation.ended.is_some())?;
    let cancel = operation.cancel.as_ref()?;
    let (kind, last) = (&operation.link.kind, cancel.answers.last()?);
    let detail = match cancel.tries_in_all() {
        _ if last.was_not_asked() => format!("{kind}: {}", cancel_told(last)),
        1 => format!("{kind} was asked once to stop; {}", cancel_told(last)),
        tries => format!("{kind} was asked {tries} times to stop; {}", cancel_told(last)),
    };
    Some(told("cancel_answered", detail))
}

/// What an operation may have left outside and what can be done about it, or who vouched that it has left nothing.
fn orphaned(record: &Record) -> Option<api::Reason> {
    let operation = record.as_operation()?;
    let (id, kind) = (&operation.id, &operation.link.kind);
    if let Some(Settlement::ByHand { by, note }) = &operation.settled {
        let by = by.as_deref().unwrap_or("somebody");
        return Some(told("settled_by_hand", format!("{id} was settled by {by}, who has looked: {note}")));
    }
    if let Some(Settlement::EndedOutside { status }) = &operation.settled {
        let detail = format!("{id} runs nowhere any more: its service says that it is {status}");
        return Some(told("ended_outside", detail));
    }
    let reason = operation.orphan()?;
    let settle = format!("`longhaul orphans settle {id} --note …` (POST /orphans/{id}/settle)");
    let cancel = format!("`longhaul orphans cancel {id}` (POST /orphans/{id}/cancel)");
    let what_to_do = if let Some(why) = operation.uncancelable_because() {
        format!(
            "it cannot be asked to stop ({why}): look for it at {kind}, then say what was found with {settle}"
        )
    } else if reason == OrphanReason::NobodyToAsk {
        format!(
            "start a daemon that has the executor {kind:?}, then {cancel} asks its service; {settle} says that somebody has looked"
        )
    } else {
        format!("{cancel} asks its service again; {settle} says that somebody has looked")
    };
    Some(told("may_run_outside", format!("{id} may still run outside ({}); {what_to_do}", reason.as_str())))
}

/// What the job waits to be answered, while it does.
async fn question(server: &Server, visible: &Visible) -> Result<Option<Box<RawValue>>> {
    let job = visible.job();
    let asked = job.bodies.iter().rev().find(|body| body.name == BodyName::Question);
    let (Some(asked), JobState::AwaitingInput) = (asked, &job.state) else { return Ok(None) };
    server.json_of(job, *asked).await
}

/// Whether this node has who does it, or who asks about it where it goes on outside.
fn executor_here<'s>(server: &'s Server, job: &Job, outside: Option<&Operation>) -> ExecutorHere<'s> {
    let circle = job.spec.circle.as_deref();
    let name = outside.map(|operation| operation.link.kind.as_str()).or(job.spec.executor.as_deref());
    match name.and_then(|name| server.daemon.executors().find(circle, name)) {
        Some(executor) => {
            let (specialist, now) = (&executor.specialist, server.now());
            match (specialist.left_out_because(), specialist.left_alone_until(now)) {
                (Some(why), _) => ExecutorHere::LeftOut { why },
                (None, Some(until)) => ExecutorHere::LeftAlone { until },
                (None, None) => ExecutorHere::Registered,
            }
        }
        None => ExecutorHere::Missing { until: server.daemon.attempts().strangers_from() },
    }
}

async fn lane_here(server: &Server, job: &Job) -> Result<LaneHere> {
    let (attempts, lane) = (server.daemon.attempts(), job.spec.lane());
    if let Some(node) = job.spec.node().filter(|_| attempts.is_pinned_elsewhere(&lane)) {
        let nodes = server.store().nodes().await.map_err(of_store)?;
        let is_it = |id: &str| domain::OwnerId::new(id).node() == node;
        let lives = nodes.iter().any(|one| is_it(&one.id) && !one.is_silent(server.now()));
        return Ok(LaneHere::Elsewhere { lives });
    }
    if attempts.dispatching() == Dispatching::Off {
        return Ok(LaneHere::NotTaken);
    }
    Ok(match attempts.free_slots(&lane) {
        0 => LaneHere::Full,
        _ if attempts.serves(&lane) => LaneHere::Free,
        _ => LaneHere::Unknown { until: attempts.strangers_from() },
    })
}

/// What the error of the job says for people, or that of its last attempt.
async fn error_of(server: &Server, visible: &Visible) -> Result<Option<String>> {
    let job = visible.job();
    let of_attempt = || job.last_attempt()?.end.as_ref()?.result.error;
    let Some(error) = job.result.error.or_else(of_attempt) else { return unanswered(server, job).await };
    let bytes = server.body(visible.id(), error).await?;
    let error: Option<Value> = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let message = error.as_ref().and_then(|error| error.get("message").unwrap_or(error).as_str());
    Ok(message.map(|message| message.chars().take(MAX_MESSAGE).collect()))
}

/// What the last poll of work outside failed with, when that was all that the host heard before it gave up.
async fn unanswered(server: &Server, job: &Job) -> Result<Option<String>> {
    if job.state != JobState::Expired {
        return Ok(None);
    }
    let Some(newest) = server.newest_operation(job).await? else { return Ok(None) };
    let newest = with_words(server.store(), newest).await?;
    let error = newest.as_operation().and_then(|operation| operation.last_error.as_ref());
    Ok(error.map(|error| error.told().chars().take(MAX_MESSAGE).collect()))
}

fn reason(reason: Reason) -> api::Reason {
    api::Reason { code: reason.code.to_owned(), detail: reason.detail, until: reason.until.map(text) }
}

/// A reason that nothing is known of but that it is so.
fn told(code: &str, detail: String) -> api::Reason {
    api::Reason { code: code.to_owned(), detail, until: None }
}
