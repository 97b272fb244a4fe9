//! `POST /claims/{type}/{id}/settle`: the holder of a claim ends what it holds, with a terminal reason. The claim is the fence: whoever
//! has lost it changes nothing.

use api::{Problem, SettleClaim};
use domain::event::{EventCommand, Processed};
use domain::job::{Details, JobCommand, JobStateName, Retryable};
use domain::limits::{MAX_ID_BYTES, MAX_LABEL_BYTES};
use domain::{Command, Fence, RecordId, Refusal};
use engine::{EngineError, Order};
use store::StoreError;

use super::{as_it_is, named, of_claim, owner};
use crate::jobs::report;
use crate::problem::{at_field, of_engine};
use crate::{Reply, RequestContext, Result, Server};

/// The states in which a workorder may be settled.
pub(crate) const SETTLED_STATES: [&str; 3] = ["completed", "failed", "cancelled"];

pub(crate) async fn settle(server: &Server, asked: RequestContext) -> Result<Reply> {
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
    as_it_is(server, &id).await
}

fn processed(sent: &SettleClaim) -> Result<EventCommand> {
    if sent.state.is_some() {
        let told = "an event has no state to be settled in: leave it out";
        return Err(at_field("state", "invalid_value", told));
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

fn reported(server: &Server, asked: &RequestContext, sent: &SettleClaim) -> Result<JobCommand> {
    if sent.work_order_id.is_some() {
        let told = "only an event names the workorder that was made of it: leave it out";
        return Err(at_field("work_order_id", "invalid_value", told));
    }
    let word = sent.state.as_deref().unwrap_or("completed");
    let state = JobStateName::parse(word).filter(|_| SETTLED_STATES.contains(&word)).ok_or_else(|| {
        at_field("state", "invalid_value", format!("state must be one of: {}", SETTLED_STATES.join(", ")))
    })?;
    Ok(report(server, asked, None, state, Details::because(&sent.reason), Retryable::No))
}

fn of_settling(error: &EngineError, id: &RecordId) -> Problem {
    if matches!(error, EngineError::Store(StoreError::Fenced) | EngineError::Refused(Refusal::ClaimLost)) {
        return of_claim(&StoreError::Fenced);
    }
    of_engine(error, id.as_str())
}
