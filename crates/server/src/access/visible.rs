//! The record that a request names, if its caller sees it. "Not yours" and "not there" are one answer; only the audit log tells them apart.

use domain::{Record, RecordId, RecordKind};
use store::Loaded;

use crate::access::{Principal, Verdict, authorise};
use crate::problem::no_such_record;
use crate::{RequestContext, Result, Server};

/// The record with this id, if it is of one of these kinds and the caller sees it. `named` is what the caller calls it.
pub(crate) async fn visible_record(
    server: &Server,
    asked: &RequestContext,
    kinds: &[RecordKind],
    id: &str,
    named: &str,
) -> Result<Loaded> {
    let turned_away = |verdict| {
        server.audit.note(&asked.principal.actor, asked.operation.name, named, verdict);
        no_such_record(kinds[0], named)
    };
    let Some(id) = RecordId::parse(id).ok().filter(|id| kinds.contains(&id.kind())) else {
        return Err(turned_away(Verdict::Absent));
    };
    let Some(loaded) = server.load(&id).await? else {
        return Err(turned_away(Verdict::Absent));
    };
    if sees_record(server, &asked.principal, &loaded.record).await? {
        Ok(loaded)
    } else {
        Err(turned_away(Verdict::NotVisible))
    }
}

/// Whether a caller sees a record. An operation is seen like its job; once that is gone, by those who see every circle.
pub(crate) async fn sees_record(server: &Server, principal: &Principal, record: &Record) -> Result<bool> {
    if let Some(operation) = record.as_operation() {
        let id = RecordId::Job(operation.link.job_id.clone());
        let job = server.load(&id).await?;
        return Ok(match job.as_ref().and_then(|job| job.record.as_job()) {
            Some(job) => authorise::sees_job(principal, job),
            None => authorise::sees(principal, None),
        });
    }
    Ok(match record.as_job() {
        Some(job) => authorise::sees_job(principal, job),
        None => authorise::sees(principal, record.summary().circle),
    })
}
