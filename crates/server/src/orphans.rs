//! `/orphans`: work that may still run outside although it is over here. It is listed until its service says that it has stopped, or
//! somebody has looked.
//!
//! Nothing private is shown: no handle, no input, no message of a service. Whoever does not see the job does not see its orphan.

use std::sync::Arc;

use api::{Orphan, OrphanAnswer, OrphanList, Problem, RetryCancel, SettleOrphan};
use axum::response::Response;
use domain::job::CancelAnswer;
use domain::operation::{
    CancelOrigin, Operation, OperationCancel, OperationCommand, OrphanReason, Settlement,
};
use domain::{OperationId, Record, RecordId, Timestamp};
use engine::Order;
use store::OrphanCursor;

use crate::answer;
use crate::asked::Asked;
use crate::audit::Verdict;
use crate::authorise;
use crate::clock_text::text;
use crate::cursor;
use crate::problem::{no_such_operation, of_engine, of_store};
use crate::serve::Server;

const DEFAULT_REASON: &str = "orphaned";

pub(crate) async fn list(server: &Server, asked: Asked) -> Result<Response, Problem> {
    let limit = asked.limit()?;
    let after = asked.parameter("cursor").map(|text| cursor(&text)).transpose()?;
    let found = server.store().orphans(after, limit).await.map_err(|error| of_store(&error))?;
    let last = found.last().filter(|_| found.len() == limit).and_then(|record| operation_of(record));
    let next_cursor =
        last.and_then(OrphanCursor::of).map(|cursor| cursor::text(cursor.orphaned_at, cursor.id.as_str()));
    let mut orphans = Vec::new();
    for record in &found {
        let Some(operation) = operation_of(record) else { continue };
        if is_seen(server, &asked, operation).await? {
            orphans.push(shown(operation, server.now()));
        }
    }
    Ok(answer::json(&OrphanList { orphans, next_cursor }))
}

pub(crate) async fn cancel(server: &Server, asked: Asked) -> Result<Response, Problem> {
    let order: RetryCancel = if asked.body.is_some() { asked.read()? } else { RetryCancel::default() };
    let reason = order.reason.unwrap_or_else(|| DEFAULT_REASON.to_owned());
    let command = |by| OperationCommand::RequestCancel { by, reason, origin: CancelOrigin::OrphanLedger };
    give(server, &asked, command).await
}

pub(crate) async fn settle(server: &Server, asked: Asked) -> Result<Response, Problem> {
    let SettleOrphan { note } = asked.read()?;
    give(server, &asked, |by| OperationCommand::Settle { by, note }).await
}

/// Gives the order to an operation; the domain says whether it is on the ledger of orphans.
async fn give(
    server: &Server,
    asked: &Asked,
    command: impl FnOnce(Option<String>) -> OperationCommand,
) -> Result<Response, Problem> {
    let id = visible(server, asked).await?;
    let by = asked.principal.peer_id.clone().unwrap_or_else(|| asked.principal.actor.to_string());
    let order = Order::new(id, command(Some(by)), asked.principal.actor.clone());
    let outcome =
        server.daemon.engine().execute(order).await.map_err(|error| of_engine(&error, &asked.id))?;
    let Some(operation) = operation_of(outcome.record()) else { return Err(no_such_operation(&asked.id)) };
    Ok(answer::json(&OrphanAnswer { orphan: shown(operation, server.now()) }))
}

/// The operation that the path names, if its caller sees the job that it belonged to and may steer it.
async fn visible(server: &Server, asked: &Asked) -> Result<RecordId, Problem> {
    let turned_away = |verdict| {
        server.audit.note(&asked.principal.actor, asked.operation.name(), &asked.id, verdict);
        no_such_operation(&asked.id)
    };
    let Ok(id @ RecordId::Operation(_)) = RecordId::parse(&asked.id) else {
        return Err(turned_away(Verdict::Absent));
    };
    let loaded = server.store().load(&id).await.map_err(|error| of_store(&error))?;
    let Some(loaded) = loaded else { return Err(turned_away(Verdict::Absent)) };
    let Some(operation) = operation_of(&loaded.record) else { return Err(turned_away(Verdict::Absent)) };
    if !is_seen(server, asked, operation).await? {
        return Err(turned_away(Verdict::NotVisible));
    }
    if let Some(record) = job_record(server, operation).await?
        && let Record::Job(job) = &*record
    {
        authorise::check_steering(&asked.principal, job, None)?;
    }
    Ok(id)
}

/// The circle of an operation is that of its job; once the job is gone, only those see it who see every circle.
async fn is_seen(server: &Server, asked: &Asked, operation: &Operation) -> Result<bool, Problem> {
    let record = job_record(server, operation).await?;
    let circle = record.as_ref().and_then(|record| match &**record {
        Record::Job(job) => job.spec.circle.as_deref(),
        Record::Operation(_) | Record::Event(_) | Record::Run(_) => None,
    });
    Ok(authorise::sees(&asked.principal, circle))
}

async fn job_record(server: &Server, operation: &Operation) -> Result<Option<Arc<Record>>, Problem> {
    let id = RecordId::Job(operation.link.job_id.clone());
    let loaded = server.store().load(&id).await.map_err(|error| of_store(&error))?;
    Ok(loaded.map(|loaded| loaded.record))
}

fn operation_of(record: &Record) -> Option<&Operation> {
    match record {
        Record::Operation(operation) => Some(operation),
        Record::Job(_) | Record::Event(_) | Record::Run(_) => None,
    }
}

fn shown(operation: &Operation, now: Timestamp) -> Orphan {
    let ended_at = operation.completed_at();
    let unavailable = operation.uncancelable_because();
    let cancel = operation.cancel.as_ref();
    let age = ended_at.map_or(0, |at| now.micros().saturating_sub(at.micros()) / 1_000_000);
    Orphan {
        operation_id: operation.id.as_str().to_owned(),
        job_id: operation.link.job_id.as_str().to_owned(),
        kind: operation.link.kind.clone(),
        service: operation.link.specialist.clone(),
        reason: operation.orphan().map(OrphanReason::as_str).map(str::to_owned),
        since: ended_at.map(text),
        age_seconds: u64::try_from(age).unwrap_or_default(),
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
        CancelAnswer::Accepted => "accepted",
        CancelAnswer::Refused(_) => "refused",
        CancelAnswer::Unreachable => "unreachable",
    }
}

fn cursor(text: &str) -> Result<OrphanCursor, Problem> {
    let (orphaned_at, id) = cursor::parse(text, "op-")?;
    Ok(OrphanCursor { orphaned_at, id: OperationId::new(id) })
}
