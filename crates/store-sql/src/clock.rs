//! The time of the store: where it stands and where it has jumped, as numbers beside the tables; and what a jump does to leases.

use domain::timeline::{Anchor, Step, Steps};
use domain::{RecordId, RecordKind, Timestamp};
use store::limits::MAX_PAGE;
use store::{Correction, DuePlace, StoreClock, StoreError};

use crate::database::{Database, Unfit, integer, text};
use crate::dialect::Sql;
use crate::floor;
use crate::request::ClockRequest;
use crate::rows::{signed, time};

// The names of the numbers.
/// The step that a node sees: with the node's name behind it.
pub(crate) const SEEN: &str = "clock_seen_";
const BOOT: &str = "clock_boot";
const OFFSET: &str = "clock_offset";
const AHEAD: &str = "clock_ahead_at_start";
const CORRECTION: &str = "clock_correction";
const SINCE: &str = "clock_corrected_since";
const REVISION: &str = "clock_revision";
const FROM: &str = "clock_step_from_";
const TO: &str = "clock_step_to_";

static NUMBERS: Sql =
    Sql::new("SELECT name, value FROM meta WHERE name >= 'clock_' AND name < 'clock`' ORDER BY name");

/// What the store knows of its time.
pub(crate) async fn clock<D: Database>(database: &D) -> Result<StoreClock, D::Error> {
    let numbers: Vec<(String, i64)> =
        database.query(&NUMBERS, &[], |row| Ok((text(row, 0)?, integer(row, 1)?))).await?;
    let number = |name: &str| numbers.iter().find(|(named, _)| named == name).map(|(_, value)| *value);
    let anchor = number(BOOT).zip(number(OFFSET)).map(|(boot, offset_micros)| Anchor {
        boot,
        offset_micros,
        ahead_at_start: number(AHEAD) == Some(1),
    });
    let of = |what: &str| {
        let named = numbers.iter().filter(|(name, _)| name.starts_with(what));
        named.map(|(_, value)| Timestamp::from_micros(*value)).collect::<Vec<_>>()
    };
    let steps = of(FROM).into_iter().zip(of(TO)).map(|(from, to)| Step { from, to });
    Ok(StoreClock {
        anchor,
        steps: Steps::new(steps),
        correction_micros: number(CORRECTION).unwrap_or_default(),
        corrected_since: number(SINCE).map(Timestamp::from_micros),
        ahead_at_start: number(AHEAD) == Some(1),
        revision: number(REVISION).unwrap_or_default(),
    })
}

static FORGET_NUMBERS: Sql = Sql::new("DELETE FROM meta WHERE name >= 'clock_' AND name < 'clock`'");
static KEEP_NUMBER: Sql = Sql::new("INSERT INTO meta (name, value) VALUES ($1, $2)");
// In the order of their ids on PostgreSQL, as every batch locks them.
static MOVE_LEASES: Sql = Sql::differing(
    "UPDATE agenda SET lease_expires_at = CASE WHEN lease_expires_at > $2 THEN lease_expires_at + $1 ELSE lease_expires_at END, \
     limit_at = CASE WHEN limit_at > $2 THEN limit_at + $1 ELSE limit_at END, \
     due_at = CASE WHEN due_at > $2 THEN due_at + $1 ELSE due_at END WHERE held = 1",
    "UPDATE agenda SET lease_expires_at = CASE WHEN lease_expires_at > $2 THEN lease_expires_at + $1 ELSE lease_expires_at END, \
     limit_at = CASE WHEN limit_at > $2 THEN limit_at + $1 ELSE limit_at END, \
     due_at = CASE WHEN due_at > $2 THEN due_at + $1 ELSE due_at END \
     WHERE record_id IN (SELECT record_id FROM agenda WHERE held = 1 ORDER BY record_id FOR UPDATE)",
);

/// Keeps where the time stands, and moves what is held by a step. The steps as they are then.
pub(crate) async fn keep<D: Database>(database: &D, request: &ClockRequest) -> Result<Steps, D::Error> {
    let mut known = clock(database).await?;
    known.anchor = Some(request.anchor);
    known.ahead_at_start = request.anchor.ahead_at_start;
    change(database, &mut known, request.step).await?;
    Ok(known.steps)
}

/// Changes the correction, if nothing was changed since it was decided.
pub(crate) async fn correct<D: Database>(database: &D, correction: &Correction) -> Result<bool, D::Error> {
    let mut known = clock(database).await?;
    if known.revision != correction.revision {
        return Ok(false);
    }
    known.correction_micros = correction.micros;
    known.corrected_since = (correction.micros != 0).then_some(correction.since);
    known.ahead_at_start = correction.ahead_at_start;
    change(database, &mut known, correction.step).await?;
    Ok(true)
}

/// Writes it all anew: the numbers are few. What is held is moved as `AgendaRow::move_lease` says.
async fn change<D: Database>(
    database: &D,
    known: &mut StoreClock,
    step: Option<Step>,
) -> Result<(), D::Error> {
    if let Some(step) = step {
        known.steps.push(step);
        database.execute(&MOVE_LEASES, &[step.by_micros().into(), step.from.micros().into()]).await?;
        if step.by_micros() < 0 {
            floor::set_back(database, step.to).await?;
        }
    }
    known.revision += 1;
    database.execute(&FORGET_NUMBERS, &[]).await?;
    let mut numbers = vec![
        (REVISION.to_owned(), known.revision),
        (CORRECTION.to_owned(), known.correction_micros),
        (AHEAD.to_owned(), i64::from(known.ahead_at_start)),
    ];
    numbers.extend(known.corrected_since.map(|since| (SINCE.to_owned(), since.micros())));
    if let Some(Anchor { boot, offset_micros, .. }) = known.anchor {
        numbers.extend([(BOOT.to_owned(), boot), (OFFSET.to_owned(), offset_micros)]);
    }
    for (place, step) in known.steps.as_slice().iter().enumerate() {
        numbers.push((format!("{FROM}{place:02}"), step.from.micros()));
        numbers.push((format!("{TO}{place:02}"), step.to.micros()));
    }
    for (name, value) in numbers {
        database.execute(&KEEP_NUMBER, &[name.as_str().into(), value.into()]).await?;
    }
    Ok(())
}

static DUE_BETWEEN: Sql = Sql::new(
    "SELECT due_at, record_id FROM agenda WHERE kind = $1 AND due_at >= $2 AND due_at <= $3 \
     AND (due_at > $2 OR record_id > $4) ORDER BY due_at, record_id LIMIT $5",
);

/// What is due after a place and no later than a time.
pub(crate) async fn due_between<D: Database>(
    database: &D,
    kind: RecordKind,
    after: &DuePlace,
    until: Timestamp,
    limit: usize,
) -> Result<Vec<(Timestamp, RecordId)>, StoreError> {
    let after_id = after.id.as_ref().map_or("", RecordId::as_str);
    let given = [
        kind.as_str().into(),
        after.at.micros().into(),
        until.micros().into(),
        after_id.into(),
        signed(limit.min(MAX_PAGE) as u64).into(),
    ];
    let read = database.query(&DUE_BETWEEN, &given, |row| {
        let id = RecordId::parse(&text(row, 1)?).map_err(|refusal| Unfit::new(1, refusal))?;
        Ok((time(row, 0)?, id))
    });
    read.await.map_err(D::read_failed)
}
