//! `/orphans`: work that may still run outside although it is over here. It is listed until its service says that it has stopped, or
//! somebody has looked.
//!
//! Nothing private is shown: no handle, no input, no message of a service. Whoever does not see the job does not see its orphan.

use api::{Orphan, OrphanAnswer, OrphanList, RetryCancel, SettleOrphan};
use domain::job::CancelAnswer;
use domain::operation::{
    CancelOrigin, Operation, OperationCancel, OperationCommand, OrphanReason, Settlement,
};
use domain::{OperationId, RecordId, RecordKind, Timestamp};
use engine::Order;
use store::OrphanCursor;

use crate::access::authorise;
use crate::access::visible::{sees_record, visible_record};
use crate::clock_text::text;
use crate::cursor;
use crate::problem::{no_such_record, of_engine, of_store};
use crate::{Reply, RequestContext, Result, Server};

const DEFAULT_REASON: &str = "orphaned";

pub(crate) async fn list(server: &Server, asked: RequestContext) -> Result<Reply> {
    let limit = asked.limit()?;
    let after = cursor::of(&asked, "op-")?;
    let after = after.map(|(orphaned_at, id)| OrphanCursor { orphaned_at, id: OperationId::new(id) });
    let found = server.store().orphans(after, limit).await.map_err(of_store)?;
    let last = found.last().filter(|_| found.len() == limit).and_then(|record| record.as_operation());
    let next_cursor =
        last.and_then(OrphanCursor::of).map(|cursor| cursor::text(cursor.orphaned_at, cursor.id.as_str()));
    let mut orphans = Vec::new();
    for record in &found {
        let Some(operation) = record.as_operation() else { continue };
        if sees_record(server, &asked.principal, record).await? {
            orphans.push(shown(operation, server.now()));
        }
    }
    Ok(Reply::json(&OrphanList { orphans, next_cursor }))
}

pub(crate) async fn cancel(server: &Server, asked: RequestContext) -> Result<Reply> {
    let order: RetryCancel = asked.read_or_default()?;
    let reason = order.reason.unwrap_or_else(|| DEFAULT_REASON.to_owned());
    let command = |by| OperationCommand::RequestCancel { by, reason, origin: CancelOrigin::OrphanLedger };
    give(server, &asked, command).await
}

pub(crate) async fn settle(server: &Server, asked: RequestContext) -> Result<Reply> {
    let SettleOrphan { note } = asked.read()?;
    give(server, &asked, |by| OperationCommand::Settle { by, note }).await
}

/// Gives the order to an operation; the domain says whether it is on the ledger of orphans.
async fn give(
    server: &Server,
    asked: &RequestContext,
    command: impl FnOnce(Option<String>) -> OperationCommand,
) -> Result<Reply> {
    let id = visible(server, asked).await?;
    let by = asked.principal.peer_id.clone().unwrap_or_else(|| asked.principal.actor.to_string());
    let order = Order::new(id, command(Some(by)), asked.principal.actor.clone());
    let outcome =
        server.daemon.engine().execute(order).await.map_err(|error| of_engine(&error, &asked.id))?;
    let Some(operation) = outcome.record().as_operation() else {
        return Err(no_such_record(RecordKind::Operation, &asked.id));
    };
    Ok(Reply::json(&OrphanAnswer { orphan: shown(operation, server.now()) }))
}

/// The operation that the path names, if its caller sees the job that it belonged to and may steer it.
async fn visible(server: &Server, asked: &RequestContext) -> Result<RecordId> {
    let loaded = visible_record(server, asked, &[RecordKind::Operation], &asked.id, &asked.id).await?;
    if let Some(operation) = loaded.record.as_operation()
        && let Some(loaded) = server.load(&RecordId::Job(operation.link.job_id.clone())).await?
        && let Some(job) = loaded.record.as_job()
    {
        authorise::check_steering(&asked.principal, job, None)?;
    }
    Ok(loaded.record.id())
}

fn shown(operation: &Operation, now: Timestamp) -> Orphan {
    let ended_at = operation.completed_at();
    let unavailable = operation.uncancelable_because();
    let cancel = operation.cancel.as_ref();
    Orphan {
        operation_id: operation.id.as_str().to_owned(),
        job_id: operation.link.job_id.as_str().to_owned(),
        kind: operation.link.kind.clone(),
        service: operation.link.specialist.clone(),
        reason: operation.orphan().map(OrphanReason::as_str).map(str::to_owned),
        since: ended_at.map(text),
        age_seconds: ended_at.map_or(0, |at| now.seconds_since(at)),
        handle_known: operation.handle.is_some(),
        cancelable: unavailable.is_none(),
        cancel_unavailable_reason: unavailable,
        cancel_tries: cancel.map_or(0, OperationCancel::tries_in_all),
        last_cancel_answer: cancel.and_then(|cancel| cancel.answers.last()).map(|kept| {
            api::OrphanCancelAnswer {
                at: text(kept.at),
                answer: word(&kept.answer).to_owned(),
                told: kept.told.clone(),
            }
        }),
        next_cancel_at: cancel.and_then(|cancel| cancel.next_try_at).map(text),
        polls_since: operation.aftermath.as_ref().map_or(0, |aftermath| aftermath.polls),
        last_poll_error: operation
            .aftermath
            .as_ref()
            .and_then(|aftermath| aftermath.last_error.as_ref())
            .map(|error| error.code.clone()),
        next_poll_at: operation.late_poll_at().map(text),
        settled: operation.settled.as_ref().map(|settled| {
            match settled {
                Settlement::Stopped => "stopped",
                Settlement::EndedOutside { .. } => "ended_outside",
                Settlement::ByHand { .. } => "by_hand",
            }
            .to_owned()
        }),
        settled_note: operation.settled.as_ref().and_then(|settled| match settled {
            Settlement::Stopped => None,
            Settlement::EndedOutside { status } => Some(format!("its service says that it is {status}")),
            Settlement::ByHand { note, .. } => Some(note.clone()),
        }),
    }
}

/// The answer without what the service said besides.
fn word(answer: &CancelAnswer) -> &'static str {
    match answer {
        CancelAnswer::Cancelled => "cancelled",
        CancelAnswer::NeverStarted => "cancelled",
        CancelAnswer::Accepted => "accepted",
        CancelAnswer::Refused(_) => "refused",
        CancelAnswer::Unreachable => "unreachable",
    }
}
