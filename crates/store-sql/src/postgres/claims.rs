//! Taking, renewing and handing back: only agenda rows, never a fact. The rules are the row's own.

use std::collections::BTreeSet;

use domain::job::anywhere;
use domain::{Lease, RecordId, RecordKind};
use store::{AgendaRow, StoreError, Take, Taken};

use super::batch::Asked;
use super::columnar::Columnar;
use super::failure::PostgresError;
use super::session::{Parameter, Session};
use super::statements::{LOCK_LANES, LOCK_ROWS, UPDATE_AGENDA};
use crate::agenda::{DUE, HELD, READY, left_by, take_limit};
use crate::database::Database;
use crate::request::{Answer, ClaimRequest, Request};
use crate::rows::{agenda_values, agenda_with_id};

/// The record that a request names.
pub(super) fn record_of(request: &ClaimRequest) -> Option<&RecordId> {
    match request {
        ClaimRequest::Take { id, .. }
        | ClaimRequest::Renew { id, .. }
        | ClaimRequest::HandBack { id, .. } => Some(id),
        ClaimRequest::TakeDue { .. } | ClaimRequest::TakeReady { .. } | ClaimRequest::EndLeases { .. } => {
            None
        }
    }
}

/// Changes the locked row of the record that a request names.
pub(super) fn claim(
    request: &ClaimRequest,
    id: &RecordId,
    row: Option<&mut AgendaRow>,
    asked: Asked,
) -> Result<Answer, StoreError> {
    let row = row.ok_or(StoreError::UnknownRecord)?;
    let taken = |claim| Answer::Taken(vec![Taken { id: id.clone(), claim }]);
    if asked == Asked::Again
        && let Some(answer) = done_before(request, row)
    {
        return Ok(taken(answer));
    }
    Ok(match request {
        ClaimRequest::Take { take, .. } => taken(row.take(&take.owner, take.now, take.lease)?),
        ClaimRequest::Renew { fence, now, lease, .. } => taken(row.renew(fence, *now, *lease)?),
        ClaimRequest::HandBack { fence, now, due_at, .. } => {
            row.hand_back(fence, *now, *due_at)?;
            Answer::Done
        }
        ClaimRequest::TakeDue { .. } | ClaimRequest::TakeReady { .. } | ClaimRequest::EndLeases { .. } => {
            Answer::Done
        }
    })
}

/// A claim that this very request gave, in a transaction whose end nobody knew: owner, time and version say so.
fn done_before(request: &ClaimRequest, row: &AgendaRow) -> Option<domain::Claim> {
    let claim = row.claim.as_ref().filter(|_| row.held)?;
    let ours = match request {
        ClaimRequest::Take { take, .. } => claim.owner == take.owner && claim.heartbeat_at == take.now,
        ClaimRequest::Renew { fence, now, .. } => {
            claim.owner == fence.owner
                && claim.claim_version == fence.claim_version + 1
                && claim.heartbeat_at == *now
        }
        // Repeated as it is: what was released stays released.
        ClaimRequest::HandBack { .. } => false,
        ClaimRequest::TakeDue { .. } | ClaimRequest::TakeReady { .. } | ClaimRequest::EndLeases { .. } => {
            false
        }
    };
    ours.then(|| claim.clone())
}

/// Locks the lanes whose limits the requests ask to be kept, until the end of the transaction: of those who take from a lane, or
/// from one that is the same but for its node, at once, each counts what the others have taken. Always in the same order, and after the rows that the batch names.
pub(super) async fn lock_lanes(session: &Session, requests: &[&Request]) -> Result<(), PostgresError> {
    let limited = requests.iter().filter_map(|request| match request {
        Request::Claim(ClaimRequest::TakeReady { lane, limit: Some(_), .. }) => Some(anywhere(lane)),
        Request::Claim(_)
        | Request::Commit(_)
        | Request::Token(_)
        | Request::Node(_)
        | Request::Peer(_)
        | Request::Ask(_) => None,
    });
    let lanes: Vec<&str> = limited.collect::<BTreeSet<_>>().into_iter().collect();
    if !lanes.is_empty() {
        let statement = session.prepare(LOCK_LANES).await?;
        session.rows(&statement, &[&lanes]).await?;
    }
    Ok(())
}

/// Takes what is due or ready. What an unfinished transaction may have taken before comes back when its lease ends.
pub(super) async fn take(
    session: &Session,
    request: &ClaimRequest,
) -> Result<Result<Answer, StoreError>, PostgresError> {
    match request {
        ClaimRequest::TakeDue { kind, take } => {
            let given = [kind.as_str().into(), take.now.micros().into(), take_limit(take).into()];
            take_all(session, session.query(&DUE, &given, agenda_with_id).await?, take).await
        }
        ClaimRequest::TakeReady { lane, limit, take } => {
            let left = left_by(session, lane, *limit, take).await?;
            let given = [lane.as_str().into(), left.into()];
            take_all(session, session.query(&READY, &given, agenda_with_id).await?, take).await
        }
        ClaimRequest::EndLeases { owners, now } => {
            let latest = now.plus_seconds(u64::from(Lease::BOUNDS_SECONDS.1));
            let mut held = Vec::new();
            for kind in RecordKind::ALL {
                let given = [kind.as_str().into(), latest.micros().into()];
                held.extend(session.query(&HELD, &given, agenda_with_id).await?);
            }
            let is_dead = |row: &AgendaRow| {
                row.claim.as_ref().is_some_and(|claim| claim.owner.as_str().starts_with(owners.as_str()))
            };
            let ids: Vec<String> =
                held.into_iter().filter(|(_, row)| is_dead(row)).map(|(id, _)| id).collect();
            let given: [Parameter<'_>; 1] = [&ids];
            let statement = session.prepare(LOCK_ROWS).await?;
            let locked = session.each_row(&statement, &given, |row| agenda_with_id(row)).await?;
            let mut ended = Vec::new();
            for (id, mut row) in locked.into_iter().filter(|(_, row)| is_dead(row)) {
                row.end_lease(*now);
                ended.extend(RecordId::parse(&id).ok().map(|id| (id, row)));
            }
            update(session, &ended).await?;
            Ok(Ok(Answer::Done))
        }
        ClaimRequest::Take { .. } | ClaimRequest::Renew { .. } | ClaimRequest::HandBack { .. } => {
            Ok(Ok(Answer::Done))
        }
    }
}

async fn take_all(
    session: &Session,
    rows: Vec<(String, AgendaRow)>,
    take: &Take,
) -> Result<Result<Answer, StoreError>, PostgresError> {
    let mut taken = Vec::with_capacity(rows.len());
    let mut changed = Vec::with_capacity(rows.len());
    for (id, mut row) in rows {
        let Ok(id) = RecordId::parse(&id) else {
            let told = format!("the agenda has a row for {id:?}, which names no record");
            return Ok(Err(StoreError::Broken(told)));
        };
        // A record that someone else holds is skipped, never waited for.
        if let Ok(claim) = row.take(take.owner_after(taken.len()), take.now, take.lease) {
            taken.push(Taken { id: id.clone(), claim });
            changed.push((id, row));
        }
    }
    update(session, &changed).await?;
    Ok(Ok(Answer::Taken(taken)))
}

async fn update(session: &Session, changed: &[(RecordId, AgendaRow)]) -> Result<(), PostgresError> {
    if changed.is_empty() {
        return Ok(());
    }
    let mut rows = Columnar::new();
    for (id, row) in changed {
        rows.push(agenda_values(id, row));
    }
    let statement = session.prepare(UPDATE_AGENDA).await?;
    Session::execute(session, &statement, &rows.parameters()).await?;
    Ok(())
}
