//! What is asked of a job that is there: `POST /jobs/{id}/cancel`, `/answer`, `/run`, `/retry` and `/purge`.
//!
//! A cancel is a request first, which is always kept; terminal when confirmed, when nothing had started, or when its time is over. A
//! purge deletes the bodies of a job that is over, and what services said of its work: the record stays and says so.

use std::sync::Arc;

use api::{AnswerJob, CancelJob, ProblemCode, RunJob};
use domain::job::{JobCommand, Trigger};
use domain::operation::OperationCommand;
use domain::{BodyName, Command, Consequence, MAX_CONSEQUENCES, Record, RecordId, Refusal};
use engine::{Approval, Order, Outcome, RunOrder};

use super::order::{Begun, answer_with, begin, give, give_order, keep, key_for};
use super::visible::{Visible, steerable_job};
use crate::Result;
use crate::access::{Verdict, authorise};
use crate::problem::{no_such_job, of_engine, of_store};
use crate::render::Bodies;
use crate::{Reply, RequestContext, Server};
use crate::{keyed, peers};

/// Why a job or a run is asked to stop, if whoever asks does not say.
pub(crate) const CANCEL_REQUESTED: &str = "cancel_requested";
/// Operations of one job that one purge reaches: more than it has attempts.
const MAX_OPERATIONS: usize = 1_000;

pub(crate) async fn cancel(server: &Server, asked: RequestContext) -> Result<Reply> {
    let to_cancel = |by, _: String, reason: Option<String>| JobCommand::RequestCancel {
        by,
        reason: reason.unwrap_or_else(|| CANCEL_REQUESTED.to_owned()),
    };
    order_by(server, asked, to_cancel).await
}

/// An order that says who gives it and why. The command is made of the peer who asks, if one does, the actor, and the reason.
pub(crate) async fn order_by(
    server: &Server,
    asked: RequestContext,
    command: fn(Option<String>, String, Option<String>) -> JobCommand,
) -> Result<Reply> {
    let sent: CancelJob = asked.read()?;
    let keyed = match begin(server, &asked).await? {
        Begun::Earlier(response) => return Ok(response),
        Begun::New(keyed) => keyed,
    };
    let visible = steerable_job(server, &asked, sent.requested_by_peer_id.as_deref()).await?;
    let by = asked.principal.peer_id.clone().or(sent.requested_by_peer_id);
    let command = command(by, asked.principal.actor.to_string(), sent.reason);
    give(server, &asked, &visible, keyed, command, Vec::new()).await
}

/// Whether an order asks to stop a job.
pub(crate) fn is_cancel(command: &Command) -> bool {
    matches!(command, Command::Job(JobCommand::RequestCancel { .. } | JobCommand::CancelOrRefuse { .. }))
}

/// A repeat that left no fact, because the record keeps enough of them one by one, is counted.
pub(crate) fn count_repeat(server: &Server, outcome: &Outcome) {
    if let (Outcome::AlreadySo { .. }, Record::Job(job)) = (outcome, &**outcome.record())
        && job.counts_cancel_repeat()
    {
        server.daemon.stale_reports().note_cancel_repeat(&job.id);
    }
}

/// What a job waited for.
pub(crate) async fn answer(server: &Server, asked: RequestContext) -> Result<Reply> {
    let sent: AnswerJob = asked.read()?;
    let keyed = match begin(server, &asked).await? {
        Begun::Earlier(response) => return Ok(response),
        Begun::New(keyed) => keyed,
    };
    let visible = steerable_job(server, &asked, None).await?;
    let spec = &visible.job().spec;
    let executor = spec.executor.as_deref().unwrap_or_default();
    let executor = server.daemon.executors().find(spec.circle.as_deref(), executor);
    let approval = executor.map_or(Approval::NotNeeded, |executor| executor.contract.approval);
    authorise::check_approval(&asked.principal, approval).inspect_err(|_| {
        let RequestContext { principal, operation, id, .. } = &asked;
        server.audit.note(&principal.actor, operation.name, id, Verdict::Forbidden);
    })?;
    let mut bodies = Vec::new();
    let answer = keep(&mut bodies, BodyName::Answer, sent.answer.get());
    give(server, &asked, &visible, keyed, JobCommand::Answer { answer }, bodies).await
}

/// A new attempt now, whatever the due time. Answers when the attempt has left dispatching.
pub(crate) async fn run(server: &Server, asked: RequestContext, trigger: Trigger) -> Result<Reply> {
    let order: RunJob = asked.read_or_default()?;
    if asked.id.starts_with("cal-") {
        let what = if trigger == Trigger::Retry { "retried" } else { "run" };
        return Err(
            ProblemCode::RecurringTemplate.because(format!("Recurring job templates cannot be {what}"))
        );
    }
    let keyed = match begin(server, &asked).await? {
        Begun::Earlier(response) => return Ok(response),
        Begun::New(keyed) => keyed,
    };
    let visible = steerable_job(server, &asked, order.requested_by_peer_id.as_deref()).await?;
    authorise::check_executor(&asked.principal, visible.job().spec.executor.as_deref())?;
    if trigger == Trigger::Run
        && visible.job().waits_for_anyone()
        && pullers_in_sight(server, &visible).await?
    {
        return keyed::refused(keyed.as_ref(), &Refusal::WaitsForPuller.into(), &asked.id);
    }
    let RecordId::Job(job_id) = visible.id() else { return Err(no_such_job(&asked.id)) };
    let mut run = RunOrder { actor: asked.principal.actor.clone(), keys: Vec::new() };
    if let Some(keyed) = &keyed {
        run.keys.push(key_for(server, &asked, &visible, keyed, Bodies::default()).await?);
    }
    match server.daemon.run_now(job_id, trigger, run).await {
        Ok(record) => answer_with(server, &asked, &visible, keyed, &record, Bodies::default()).await,
        Err(error) => keyed::refused(keyed.as_ref(), &error, &asked.id),
    }
}

/// Whether somebody pulls what names nobody: on this node, or as a registered peer of its circle on another.
async fn pullers_in_sight(server: &Server, visible: &Visible) -> Result<bool> {
    let spec = &visible.job().spec;
    Ok(server.daemon.pulls().are_in_sight(&spec.lane())
        || peers::anyone_here(server, spec.circle.as_deref()).await?)
}

pub(crate) async fn purge(server: &Server, asked: RequestContext) -> Result<Reply> {
    let keyed = match begin(server, &asked).await? {
        Begun::Earlier(response) => return Ok(response),
        Begun::New(keyed) => keyed,
    };
    let visible = steerable_job(server, &asked, None).await?;
    let mut order = Order::new(visible.id().clone(), JobCommand::Purge, asked.principal.actor.clone());
    let left = server.store().operations_of(&visible.job().id, MAX_OPERATIONS).await.map_err(of_store)?;
    let ended = left.iter().filter(|record| record.as_operation().is_some_and(|one| one.ended.is_some()));
    let purge =
        |record: &Arc<Record>| Consequence { record: record.id(), command: OperationCommand::Purge.into() };
    order.also.extend(ended.map(purge));
    // What one commit cannot hold goes before: the job says that it is purged when all of it is.
    while order.also.len() > MAX_CONSEQUENCES && visible.job().state.name().is_terminal() {
        let Some(Consequence { record, command }) = order.also.pop() else { break };
        let mut part = Order::new(record, command, asked.principal.actor.clone());
        part.also = order.also.split_off(order.also.len() - MAX_CONSEQUENCES);
        server.daemon.engine().execute(part).await.map_err(|error| of_engine(&error, &asked.id))?;
    }
    give_order(server, &asked, &visible, keyed, order, Vec::new()).await
}
