//! What a batch writes but for the facts: views, agenda, bodies, keys and asks.

use domain::ask::{AskChange, MAX_FORGOTTEN_ASKS};
use domain::job::JobStateName;
use store::limits::MAX_FORGOTTEN_KEYS;
use store::{KeptKey, Removal};

use super::super::columnar::Columnar;
use super::super::failure::PostgresError;
use super::super::session::Session;
use super::super::statements::{
    CLOSE_ASKS, FORGET_KEYS, INSERT_AGENDA, INSERT_ASKS, INSERT_BODIES, INSERT_JOBS, INSERT_KEYS,
    INSERT_OPERATIONS, INSERT_RECORDS, MARK_KEYS, REMOVE_AGENDA, REMOVE_BODIES, REMOVE_CHUNKS, REMOVE_ERRORS,
    REMOVE_JOBS, REMOVE_KEYS, REMOVE_OPERATIONS, REMOVE_OTHER_BODIES, REMOVE_RECORDS, UPDATE_AGENDA,
    UPDATE_JOBS, UPDATE_OPERATIONS, UPDATE_RECORDS,
};
use super::super::tally::Before;
use super::together::{Sent, Writes};
use super::{Rows, Undone};
use crate::asks::{FORGET_ASKS, closing_values, values};
use crate::database::{Given, Unfit, text};
use crate::prepare::Prepared;
use crate::rows::{ViewValues, agenda_values, named_bodies, new_agenda_values, signed};

/// Everything but the facts: one statement per table and kind of write, all sent together. In which state the jobs were before.
pub(super) async fn write(
    session: &Session,
    fitting: &[(usize, &Prepared)],
    rows: &Rows,
) -> Result<Before, Undone> {
    let (mut new_jobs, mut jobs) = (Columnar::new(), Columnar::new());
    let (mut new_operations, mut operations) = (Columnar::new(), Columnar::new());
    let (mut new_records, mut records) = (Columnar::new(), Columnar::new());
    let (mut new_agenda, mut agenda) = (Columnar::new(), Columnar::new());
    let (mut bodies, mut keys, mut gone_keys) =
        (Columnar::<4>::new(), Columnar::<7>::new(), Columnar::<2>::new());
    let (mut purged, mut gone): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut errors: Vec<&str> = Vec::new();
    let mut checkpointed: Vec<(&str, String)> = Vec::new();
    let (mut asks, mut closings) = (Columnar::<16>::new(), Columnar::<6>::new());
    let mut asked_at = i64::MIN;
    let mut named: Vec<&KeptKey> = Vec::new();
    let mut keyed = 0_u64;
    let mut earliest = i64::MAX;
    for commit in fitting.iter().map(|(_, prepared)| *prepared) {
        for (change, text) in commit.commit.changes.iter().zip(&commit.texts) {
            let id = change.id.as_str();
            let was_there = rows.get(&change.id).is_some_and(|held| held.was_there);
            match change.removal {
                Removal::Nothing => {}
                Removal::OlderFacts => checkpointed.push((id, named_bodies(&change.record))),
                Removal::Bodies => purged.push(id),
                Removal::Errors => errors.push(id),
                Removal::Record => {
                    gone_keys.push([id.into(), commit.commit.at.micros().into()]);
                    purged.push(id);
                    gone.push(id);
                    continue;
                }
            }
            match ViewValues::of(&change.id, &change.record, &text.view) {
                ViewValues::Job(values) if !was_there => new_jobs.push(values),
                ViewValues::Operation(values) if !was_there => new_operations.push(values),
                ViewValues::Job(values) if !text.facts.is_empty() => jobs.push(values),
                ViewValues::Operation(values) if !text.facts.is_empty() => operations.push(values),
                ViewValues::Record(values) if !was_there => new_records.push(values),
                ViewValues::Record(values) if !text.facts.is_empty() => records.push(values),
                ViewValues::Job(_) | ViewValues::Operation(_) | ViewValues::Record(_) => {}
            }
            if matches!(change.removal, Removal::Nothing | Removal::OlderFacts) {
                for new in &change.bodies {
                    let body = [id.into(), new.body.name.as_str().into(), new.body.sha256.0[..].into()];
                    bodies.push([body[0], body[1], body[2], new.bytes[..].into()]);
                }
            }
        }
        keyed += u64::from(!commit.commit.keys.is_empty());
        if !commit.commit.keys.is_empty() {
            earliest = earliest.min(commit.commit.at.micros());
        }
        named.extend(&commit.commit.keys);
        for change in &commit.commit.asks {
            match change {
                AskChange::Opened(ask) => {
                    asked_at = asked_at.max(ask.created_at.micros());
                    asks.push(values(ask));
                }
                AskChange::Closed { id, closing } => closings.push(closing_values(id, closing)),
            }
        }
    }
    named.sort_by(|a, b| a.key.cmp(&b.key));
    for kept in named {
        keys.push([
            kept.key.principal.as_str().into(),
            kept.key.route.as_str().into(),
            kept.key.key.as_str().into(),
            kept.request_sha256.0[..].into(),
            kept.record.as_str().into(),
            kept.answer[..].into(),
            kept.keep_until.micros().into(),
        ]);
    }
    for (id, held) in rows.iter().filter(|(_, held)| held.changed) {
        match &held.row {
            Some(row) if held.was_there => agenda.push(agenda_values(id, row)),
            Some(row) => new_agenda.push(new_agenda_values(id, row)),
            None => {}
        }
    }
    let mut named_by_state = Columnar::<2>::new();
    for (id, named) in &checkpointed {
        named_by_state.push([(*id).into(), named.as_str().into()]);
    }
    let forgotten = keyed.saturating_mul(MAX_FORGOTTEN_KEYS as u64);
    let (asked_at, old_asks) = (Given::from(asked_at), Given::from(signed(MAX_FORGOTTEN_ASKS as u64)));
    let (earliest, forgotten) = (Given::from(earliest), Given::from(signed(forgotten)));
    let mut writes = Writes::on(session);
    // First, and in the order of ids: two nodes that make the same records meet here, and not in a circle.
    writes.all(INSERT_AGENDA, &new_agenda).await?;
    writes.all(INSERT_JOBS, &new_jobs).await?;
    writes.all(UPDATE_JOBS, &jobs).await?;
    writes.all(INSERT_OPERATIONS, &new_operations).await?;
    writes.all(UPDATE_OPERATIONS, &operations).await?;
    writes.all(INSERT_RECORDS, &new_records).await?;
    writes.all(UPDATE_RECORDS, &records).await?;
    writes.all(UPDATE_AGENDA, &agenda).await?;
    if !purged.is_empty() {
        writes.one(REMOVE_BODIES, vec![&purged]).await?;
        writes.one(REMOVE_CHUNKS, vec![&purged]).await?;
    }
    if !errors.is_empty() {
        writes.one(REMOVE_ERRORS, vec![&errors]).await?;
    }
    writes.all(INSERT_BODIES, &bodies).await?;
    writes.all(REMOVE_OTHER_BODIES, &named_by_state).await?;
    if !gone.is_empty() {
        for statement in [REMOVE_JOBS, REMOVE_OPERATIONS, REMOVE_RECORDS, REMOVE_AGENDA] {
            writes.one(statement, vec![&gone]).await?;
        }
        writes.all(REMOVE_KEYS, &gone_keys).await?;
        writes.one(MARK_KEYS, vec![&gone]).await?;
    }
    if !asks.is_empty() {
        writes.one(FORGET_ASKS.postgres(), vec![&asked_at, &old_asks]).await?;
    }
    writes.all(INSERT_ASKS, &asks).await?;
    writes.all(CLOSE_ASKS, &closings).await?;
    if keyed > 0 {
        writes.one(FORGET_KEYS, vec![&earliest, &forgotten]).await?;
    }
    // The last of them, so that its count is the last.
    writes.all(INSERT_KEYS, &keys).await?;
    let Sent { last, returned } = writes.send().await?;
    if keys.is_empty() || last == keys.len() as u64 {
        let before = returned.iter().map(|row| {
            let state = text(row, 1)?;
            let state = JobStateName::parse(&state)
                .ok_or_else(|| Unfit::new(1, format_args!("{state:?} is no state of a job")))?;
            Ok((text(row, 0)?, state))
        });
        return Ok(before.collect::<Result<_, Unfit>>()?);
    }
    // As the unique index itself would say it.
    let told = "another node was first with an idempotency key".to_owned();
    Err(PostgresError::Refused { code: tokio_postgres::error::SqlState::UNIQUE_VIOLATION, told }.into())
}
