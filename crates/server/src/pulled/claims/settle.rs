//! `POST /claims/{type}/{id}/settle`: the holder of a claim ends what it holds, with a terminal reason. The claim is the fence: whoever
//! has lost it changes nothing.

use api::{ClaimAnswer, Problem, ProblemCode, SettleClaim};
use domain::event::{EventCommand, Processed};
use domain::job::{Details, JobCommand, JobStateName, Report, Retryable, SubmitWord};
use domain::limits::{MAX_ID_BYTES, MAX_LABEL_BYTES};
use domain::{Command, Fence, RecordId, Refusal};
use engine::{EngineError, Order};
use store::StoreError;

use super::{named, of_claim, owner, record};
use crate::problem::{at_field, of_engine, of_store};
use crate::reply::Reply;
use crate::request_context::RequestContext;
use crate::server::Server;

/// The states in which a workorder may be settled.
pub(crate) const SETTLED_STATES: [&str; 3] = ["completed", "failed", "cancelled"];

pub(crate) async fn settle(server: &Server, asked: RequestContext) -> Result<Reply, Problem> {
    let sent: SettleClaim = asked.read()?;
    let fence = Fence { owner: owner("owner_id", &sent.owner_id)?, claim_version: sent.claim_version };
    if sent.reason.is_empty() || sent.reason.chars().count() > MAX_LABEL_BYTES {
        let told = format!("a reason has 1 to {MAX_LABEL_BYTES} characters");
        return Err(at_field("reason", "invalid_value", told));
    }
    let id = named(server, &asked, &fence).await?;
    let command: Command = if id.as_event().is_some() {
        processed(&sent)?.into()
    } else {
        reported(server, &asked, &sent)?.into()
    };
    let order = Order::new(id.clone(), command, asked.principal.actor.clone()).under(fence);
    server.daemon.engine().execute(order).await.map_err(|error| of_settling(&error, &id))?;
    let loaded = server.store().load(&id).await.map_err(|error| of_store(&error))?;
    let claim = loaded.and_then(|loaded| loaded.claim).map(|claim| record(&id, &claim));
    Ok(Reply::json(&ClaimAnswer { claim }))
}

fn processed(sent: &SettleClaim) -> Result<EventCommand, Problem> {
    if sent.state.is_some() {
        return Err(at_field(
            "state",
            "invalid_value",
            "an event has no state to be settled in: leave it out",
        ));
    }
    if sent.work_order_id.as_ref().is_some_and(|id| id.chars().count() > MAX_ID_BYTES) {
        let told = format!("an id has at most {MAX_ID_BYTES} characters");
        return Err(at_field("work_order_id", "invalid_value", told));
    }
    Ok(EventCommand::Process(Processed {
        reason: sent.reason.clone(),
        owner_id: sent.owner_id.clone(),
        work_order_id: sent.work_order_id.clone(),
    }))
}

fn reported(server: &Server, asked: &RequestContext, sent: &SettleClaim) -> Result<JobCommand, Problem> {
    if sent.work_order_id.is_some() {
        let told = "only an event names the workorder that was made of it: leave it out";
        return Err(at_field("work_order_id", "invalid_value", told));
    }
    let word = sent.state.as_deref().unwrap_or("completed");
    let state = JobStateName::parse(word).filter(|_| SETTLED_STATES.contains(&word)).ok_or_else(|| {
        at_field("state", "invalid_value", format!("state must be one of: {}", SETTLED_STATES.join(", ")))
    })?;
    Ok(JobCommand::Report(Box::new(Report {
        attempt_id: None,
        state,
        details: Details::because(&sent.reason),
        retryable: Retryable::No,
        jitter: server.daemon.engine().ids().jitter(),
        submit: SubmitWord::Unsaid,
        by: asked.principal.reporter(),
    })))
}

fn of_settling(error: &EngineError, id: &RecordId) -> Problem {
    match error {
        EngineError::Store(error @ StoreError::Fenced) => of_claim(error),
        EngineError::Refused(Refusal::ClaimLost) => of_claim(&StoreError::Fenced),
        EngineError::Refused(refusal @ Refusal::EventSettled) => {
            ProblemCode::Refused.because(refusal.to_string())
        }
        EngineError::Refused(_)
        | EngineError::Store(_)
        | EngineError::KeyTaken(_)
        | EngineError::Contended
        | EngineError::TooManyConsequences => of_engine(error, id.as_str()),
    }
}
