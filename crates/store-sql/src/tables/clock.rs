//! The time of the store: where it stands and where it has jumped, as numbers beside the tables; and what a jump does to leases.

use std::sync::Arc;

use domain::timeline::{Anchor, Step, Steps};
use domain::{Lease, RecordId, RecordKind, Timestamp};
use store::limits::MAX_PAGE;
use store::{Adopted, CLOCK, Correction, DuePlace, StoreClock, StoreError};

use crate::database::{Database, Unfit, integer, text};
use crate::dialect::Sql;
use crate::floor;
use crate::rows::{signed, time};

// The names of the numbers.
/// The step that a node sees: with the node's name behind it.
pub(crate) const SEEN: &str = "clock_seen_";
/// How the time stands to the clock of a machine: with its boot and the revision behind it.
pub(crate) const ANCHOR: &str = "clock_anchor_";
const BOOT: &str = "clock_boot";
const OFFSET: &str = "clock_offset";
const AHEAD: &str = "clock_ahead_at_start";
const CORRECTION: &str = "clock_correction";
const SINCE: &str = "clock_corrected_since";
const REVISION: &str = "clock_revision";
const FROM: &str = "clock_step_from_";
const TO: &str = "clock_step_to_";
/// Who adopted a step: with its place and the name behind it.
const BY: &str = "clock_step_by_";
const PASSES: &str = "clock_passes_left";
/// Bytes of that name that are kept.
const MOST_OF_A_NAME: usize = 256;

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
    let revision = number(REVISION).unwrap_or_default();
    let anchors = numbers.iter().filter_map(|(name, offset)| read_anchor(name, *offset, revision)).collect();
    let of = |what: &str| {
        let named = numbers.iter().filter(|(name, _)| name.starts_with(what));
        named.map(|(_, value)| Timestamp::from_micros(*value)).collect::<Vec<_>>()
    };
    let steps = of(FROM).into_iter().zip(of(TO)).map(|(from, to)| Step { from, to });
    let steps = Steps::new(steps);
    let by = |place: usize| {
        let prefix = format!("{BY}{place:02}_");
        Arc::from(numbers.iter().find_map(|(name, _)| name.strip_prefix(&prefix)).unwrap_or(CLOCK))
    };
    Ok(StoreClock {
        anchor,
        anchors,
        adopted_by: (0..steps.as_slice().len()).map(by).collect(),
        steps,
        passes_left: number(PASSES).and_then(|passes| u8::try_from(passes).ok()).unwrap_or_default(),
        correction_micros: number(CORRECTION).unwrap_or_default(),
        corrected_since: number(SINCE).map(Timestamp::from_micros),
        ahead_at_start: number(AHEAD) == Some(1),
        revision,
    })
}

/// Under which name the anchor of a machine is kept. One of another revision says nothing: the time was corrected or has jumped since.
pub(crate) fn anchor_name(boot: i64, revision: i64) -> String {
    format!("{ANCHOR}{:016x}_{revision}", boot.cast_unsigned())
}

fn read_anchor(name: &str, offset_micros: i64, revision: i64) -> Option<Anchor> {
    let (boot, of) = name.strip_prefix(ANCHOR)?.split_once('_')?;
    let boot = u64::from_str_radix(boot, 16).ok()?.cast_signed();
    let is_newest = of.parse() == Ok(revision);
    is_newest.then_some(Anchor { boot, offset_micros, ahead_at_start: false })
}

static FORGET_NUMBERS: Sql = Sql::new("DELETE FROM meta WHERE name >= 'clock_' AND name < 'clock`'");
static KEEP_NUMBER: Sql = Sql::new("INSERT INTO meta (name, value) VALUES ($1, $2)");
// What is held is due before the longest lease is over: it is found through the index of what is due, kind by kind. Nobody else writes to
// the agenda meanwhile, so the order of the rows does not matter.
static MOVE_LEASES: Sql = Sql::new(
    "UPDATE agenda SET lease_expires_at = CASE WHEN lease_expires_at > $2 THEN lease_expires_at + $1 ELSE lease_expires_at END, \
     limit_at = CASE WHEN limit_at > $2 THEN limit_at + $1 ELSE limit_at END, \
     due_at = CASE WHEN due_at > $2 THEN due_at + $1 ELSE due_at END \
     WHERE kind = $4 AND due_at <= $3 AND held = 1",
);
/// A node that holds something may be ahead of whoever adopts a step by so much.
const AHEAD_SECONDS: u64 = 60;
// They say by the store's time when they were heard of.
static MOVE_HEARTBEATS: Sql = Sql::new("UPDATE nodes SET heartbeat_at = heartbeat_at + $1");

/// Keeps where the time stands, and moves what is held by a step. The steps as they are then.
pub(crate) async fn keep<D: Database>(
    database: &D,
    anchor: Anchor,
    adopted: Option<&Adopted>,
) -> Result<Steps, D::Error> {
    let mut known = clock(database).await?;
    known.anchor = Some(anchor);
    known.ahead_at_start = anchor.ahead_at_start;
    change(database, &mut known, adopted).await?;
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
    change(database, &mut known, correction.adopted.as_ref()).await?;
    Ok(true)
}

/// Writes it all anew: the numbers are few. What is held is moved as `AgendaRow::move_lease` says.
async fn change<D: Database>(
    database: &D,
    known: &mut StoreClock,
    adopted: Option<&Adopted>,
) -> Result<(), D::Error> {
    if let Some(adopted) = adopted {
        known.adopt(adopted);
        let (step, by_micros) = (adopted.step, adopted.step.by_micros());
        let latest = step.from.plus_seconds(u64::from(Lease::BOUNDS_SECONDS.1) + AHEAD_SECONDS);
        for kind in RecordKind::ALL {
            let given =
                [by_micros.into(), step.from.micros().into(), latest.micros().into(), kind.as_str().into()];
            database.execute(&MOVE_LEASES, &given).await?;
        }
        database.execute(&MOVE_HEARTBEATS, &[by_micros.into()]).await?;
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
        (PASSES.to_owned(), i64::from(known.passes_left)),
    ];
    numbers.extend(known.corrected_since.map(|since| (SINCE.to_owned(), since.micros())));
    if let Some(Anchor { boot, offset_micros, .. }) = known.anchor {
        numbers.extend([(BOOT.to_owned(), boot), (OFFSET.to_owned(), offset_micros)]);
    }
    for (place, step) in known.steps.as_slice().iter().enumerate() {
        numbers.push((format!("{FROM}{place:02}"), step.from.micros()));
        numbers.push((format!("{TO}{place:02}"), step.to.micros()));
        let by = known.adopted_by.get(place).map_or(CLOCK, |by| &**by);
        let most = by.floor_char_boundary(MOST_OF_A_NAME);
        numbers.push((format!("{BY}{place:02}_{}", &by[..most]), 0));
    }
    for (name, value) in numbers {
        database.execute(&KEEP_NUMBER, &[name.as_str().into(), value.into()]).await?;
    }
    Ok(())
}

static KEEP_PASSES: Sql = Sql::new("UPDATE meta SET value = $2 WHERE name = $1");

/// Keeps how often timers must still be moved over a step, if it is the newest. Nothing else is changed, nor the revision.
pub(crate) async fn timers_moved<D: Database>(
    database: &D,
    step: Step,
    passes_left: u8,
) -> Result<(), D::Error> {
    if clock(database).await?.steps.as_slice().last() == Some(&step) {
        database.execute(&KEEP_PASSES, &[PASSES.into(), i64::from(passes_left).into()]).await?;
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
