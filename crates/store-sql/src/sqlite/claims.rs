//! Taking, renewing and handing back: only the agenda row, never a fact. The rules are the row's own.

use domain::{Lease, RecordId, RecordKind, Timestamp};
use rusqlite::Connection;
use store::{AgendaRow, ClaimRequest, StoreError, Take, Taken};

use super::apply::update_agenda;
use super::check::agenda_row;
use super::jumps::Jumps;
use crate::agenda::{DUE, HELD, READY, left_by, take_limit};
use crate::database::{Database, at_once};
use crate::request::Answer;
use crate::rows::agenda_with_id;

/// Carries it out in the open transaction. The outer error is the database's, the inner one the answer.
pub(crate) fn carry_out(
    connection: &Connection,
    request: &ClaimRequest,
    jumps: &Jumps,
) -> rusqlite::Result<Result<Answer, StoreError>> {
    match request {
        ClaimRequest::TakeDue { kind, take } => {
            let now = jumps.carried(take.now);
            take_all(connection, due(connection, *kind, take, now)?, take, jumps)
        }
        ClaimRequest::TakeReady { lane, limit, take } => {
            take_all(connection, ready(connection, lane, *limit, take)?, take, jumps)
        }
        ClaimRequest::Take { id, take } => change(connection, id, |row| {
            let heard_at = row.heard_at();
            let claim = row.take(&take.owner, jumps.carried(take.now), take.lease)?;
            Ok(Answer::taken(vec![Taken { id: id.clone(), claim, heard_at }]))
        }),
        ClaimRequest::Renew { id, fence, now, lease } => change(connection, id, |row| {
            let claim = row.renew(fence, jumps.carried(*now), *lease)?;
            Ok(Answer::taken(vec![Taken::of(id.clone(), claim)]))
        }),
        ClaimRequest::HandBack { id, fence, now, due_at } => change(connection, id, |row| {
            let carried = jumps.carried(*now);
            let by_micros = carried.micros().saturating_sub(now.micros());
            row.hand_back(fence, carried, due_at.plus_micros(by_micros))?;
            Ok(Answer::RELEASED)
        }),
        ClaimRequest::EndLeases { owners, now } => end_leases(connection, owners, *now),
    }
}

fn due(
    connection: &Connection,
    kind: RecordKind,
    take: &Take,
    now: Timestamp,
) -> rusqlite::Result<Vec<(String, AgendaRow)>> {
    let given = [kind.as_str().into(), now.micros().into(), take_limit(take).into()];
    at_once(connection.query(&DUE, &given, agenda_with_id))
}

fn ready(
    connection: &Connection,
    lane: &str,
    limit: Option<usize>,
    take: &Take,
) -> rusqlite::Result<Vec<(String, AgendaRow)>> {
    let left = at_once(left_by(connection, lane, limit, take))?;
    at_once(connection.query(&READY, &[lane.into(), left.into()], agenda_with_id))
}

fn take_all(
    connection: &Connection,
    rows: Vec<(String, AgendaRow)>,
    take: &Take,
    jumps: &Jumps,
) -> rusqlite::Result<Result<Answer, StoreError>> {
    let now = jumps.carried(take.now);
    let mut taken = Vec::with_capacity(rows.len());
    for (id, mut row) in rows {
        let Ok(id) = RecordId::parse(&id) else {
            return Ok(Err(StoreError::Broken(format!(
                "the agenda has a row for {id:?}, which names no record"
            ))));
        };
        let heard_at = row.heard_at();
        // A record that someone else holds is skipped, never waited for.
        if let Ok(claim) = row.take(take.owner_after(taken.len()), now, take.lease) {
            update_agenda(connection, &id, &row)?;
            taken.push(Taken { id, claim, heard_at });
        }
    }
    Ok(Ok(Answer::taken(taken)))
}

fn change(
    connection: &Connection,
    id: &RecordId,
    change: impl FnOnce(&mut AgendaRow) -> Result<Answer, domain::Refusal>,
) -> rusqlite::Result<Result<Answer, StoreError>> {
    let Some(mut row) = agenda_row(connection, id)? else { return Ok(Err(StoreError::UnknownRecord)) };
    match change(&mut row) {
        Ok(answer) => {
            update_agenda(connection, id, &row)?;
            Ok(Ok(answer))
        }
        Err(refusal) => Ok(Err(refusal.into())),
    }
}

/// What is held is due before the longest lease is over, so this too goes through the index.
fn end_leases(
    connection: &Connection,
    owners: &str,
    now: Timestamp,
) -> rusqlite::Result<Result<Answer, StoreError>> {
    let latest = now.plus_seconds(u64::from(Lease::BOUNDS_SECONDS.1));
    for kind in RecordKind::ALL {
        let given = [kind.as_str().into(), latest.micros().into()];
        let held = at_once(connection.query(&HELD, &given, agenda_with_id))?;
        for (id, mut row) in held {
            let dead = row.claim.as_ref().is_some_and(|claim| claim.owner.as_str().starts_with(owners));
            if let (true, Ok(id)) = (dead, RecordId::parse(&id)) {
                row.end_lease(now);
                update_agenda(connection, &id, &row)?;
            }
        }
    }
    Ok(Ok(Answer::RELEASED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agenda::HELD_IN_LANE;
    use crate::dialect::query_plan;

    // conforms: L70
    #[test]
    fn ready_and_due_records_are_found_through_an_index_and_come_in_its_order() {
        for (statement, index) in [
            (&DUE, "agenda_due"),
            (&HELD, "agenda_due"),
            (&READY, "agenda_ready"),
            (&HELD_IN_LANE, "agenda_held"),
        ] {
            let plan = query_plan(statement);
            // One step: nothing is sorted, so that a batch costs the same however many wait in this lane or another.
            assert_eq!(plan.len(), 1, "{}: {plan:?}", statement.sqlite());
            assert!(plan[0].starts_with("SEARCH") && plan[0].contains(index), "{plan:?}");
        }
    }
}
