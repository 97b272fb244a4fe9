//! The reads: each one statement, or one page of at most 1,000 rows.

use std::sync::Arc;

use domain::{BodyRef, RecordId, RecordKind, Timestamp};
use store::limits::MAX_PAGE;
use store::{BodyDamage, Checksum, Loaded, StoreError, StoredFact, check_body, decode_sealed_view};

use crate::database::{Columns, Database, Unfit, bytes, digest, integer, one, text, unsigned};
use crate::dialect::Sql;
use crate::rows::{FactLine, agenda_columns, fact_columns, optional_time, read_agenda, read_fact, signed};
use crate::views::ViewTable;

static LOAD_JOB: Sql = Sql::new(concat!(
    "SELECT view, ",
    agenda_columns!(),
    " FROM jobs JOIN agenda ON record_id = id WHERE id = $1"
));
pub(crate) static LOAD_OPERATION: Sql = Sql::new(concat!(
    "SELECT view, ",
    agenda_columns!(),
    " FROM operations JOIN agenda ON record_id = id WHERE id = $1"
));

static LOAD_RECORD: Sql = Sql::new(concat!(
    "SELECT view, ",
    agenda_columns!(),
    " FROM records JOIN agenda ON record_id = id WHERE id = $1"
));

static HAS_FACTS: Sql = Sql::new("SELECT EXISTS (SELECT 1 FROM facts WHERE stream = $1)");

/// One record. Facts without a view, or a view that is not that of the newest fact, are damage and not a record that is not there.
pub(crate) async fn load<D: Database>(database: &D, id: &RecordId) -> Result<Option<Loaded>, StoreError> {
    if let Some(loaded) = load_view(database, id).await? {
        return Ok(Some(loaded));
    }
    let found = one(database, &HAS_FACTS, &[id.as_str().into()], |row| integer(row, 0)).await;
    if found.map_err(D::read_failed)?.unwrap_or_default() == 0 {
        return Ok(None);
    }
    // It may have been written in between.
    match load_view(database, id).await? {
        Some(loaded) => Ok(Some(loaded)),
        None => {
            let told = format!("{id} has facts and no view or agenda row; run `longhaul verify`");
            Err(StoreError::Broken(told))
        }
    }
}

async fn load_view<D: Database>(database: &D, id: &RecordId) -> Result<Option<Loaded>, StoreError> {
    let statement = match ViewTable::of(id.kind()) {
        ViewTable::Jobs => &LOAD_JOB,
        ViewTable::Operations => &LOAD_OPERATION,
        ViewTable::Records => &LOAD_RECORD,
    };
    let found =
        one(database, statement, &[id.as_str().into()], |row| Ok((text(row, 0)?, read_agenda(row, 1)?)))
            .await
            .map_err(D::read_failed)?;
    found
        .map(|(view, row)| {
            let (record, head) = decode_sealed_view(id, &view)?;
            if head != row.head {
                let told = format!("the view of {id} is not that of its newest fact; run `longhaul verify`");
                return Err(StoreError::Broken(told));
            }
            Ok(Loaded { record, head: row.head, claim: row.claim })
        })
        .transpose()
}

static BODY: Sql = Sql::new("SELECT bytes FROM bodies WHERE record_id = $1 AND name = $2 AND sha256 = $3");

pub(crate) async fn body<D: Database>(
    database: &D,
    id: &RecordId,
    body: BodyRef,
) -> Result<Option<Vec<u8>>, StoreError> {
    let place = [id.as_str().into(), body.name.as_str().into(), body.sha256.0[..].into()];
    let found = one(database, &BODY, &place, |row| bytes(row, 0).map(<[u8]>::to_vec)).await;
    let checked = match found.map_err(D::read_failed)? {
        Some(bytes) => check_body(id, body, bytes).map(Some),
        // The record is read after the row: a purge in between takes the name away too.
        None => match load(database, id).await? {
            Some(loaded) if loaded.record.stores_body(body) => Err(BodyDamage::missing(id, body)),
            Some(_) | None => Ok(None),
        },
    };
    if let Err(StoreError::BodyDamaged(damage)) = &checked {
        tracing::error!(
            record = %damage.record,
            name = damage.expected.name.as_str(),
            expected = %damage.expected.sha256,
            found = damage.found.map(|(digest, _)| tracing::field::display(digest)),
            "a stored body is damaged (body_damaged)"
        );
    }
    checked
}

pub(crate) static FACTS_OF: Sql = Sql::new(concat!(
    "SELECT ",
    fact_columns!(),
    " FROM facts WHERE stream = $1 AND version > $2 ORDER BY version LIMIT $3"
));

/// The facts of one record after a version, as far as they are kept. A stream that ends before the agenda says is damaged.
pub(crate) async fn facts_of<D: Database>(
    database: &D,
    id: &RecordId,
    after_version: u64,
    limit: usize,
) -> Result<Vec<StoredFact>, StoreError> {
    let limit = limit.min(MAX_PAGE);
    let mut end = after_version;
    // The agenda first: the newest fact never goes, so that those that are read later go at least as far. Twice: the record may go in between.
    for _ in 0..2 {
        let last = agenda_version(database, id).await.map_err(D::read_failed)?;
        let facts = stream_after(database, id, after_version, limit).await?;
        end = facts.last().map_or(after_version, |fact| fact.version);
        if facts.len() == limit || last <= end {
            return Ok(facts);
        }
    }
    let told = format!("{id} has no fact after version {end}, and its agenda says that there is one");
    Err(StoreError::Broken(told))
}

static AGENDA_VERSION: Sql = Sql::new("SELECT version FROM agenda WHERE record_id = $1");

/// Where a stream ends by its agenda row; 0 if there is none.
async fn agenda_version<D: Database>(database: &D, id: &RecordId) -> Result<u64, D::Error> {
    let found = one(database, &AGENDA_VERSION, &[id.as_str().into()], |row| unsigned(row, 0)).await?;
    Ok(found.unwrap_or_default())
}

async fn stream_after<D: Database>(
    database: &D,
    id: &RecordId,
    after_version: u64,
    limit: usize,
) -> Result<Vec<StoredFact>, StoreError> {
    // With the one before them, which the first of them is checked against.
    let (from, more) = (after_version.saturating_sub(1), u64::from(after_version > 0));
    let given = [id.as_str().into(), signed(from).into(), signed(limit as u64 + more).into()];
    let lines = database.query(&FACTS_OF, &given, read_fact).await.map_err(D::read_failed)?;
    let mut before = None;
    let mut facts = Vec::with_capacity(lines.len());
    for line in lines {
        let checksum = line.checksum;
        if line.version > after_version {
            facts.push(line.decode_after(before)?);
        }
        before = Some(checksum);
    }
    facts.truncate(limit);
    Ok(facts)
}

// Each with the checksum of the fact before it in its stream, which its own covers.
static FACTS_AFTER: Sql = Sql::new(concat!(
    "SELECT ",
    fact_columns!(),
    ", (SELECT previous.checksum FROM facts AS previous WHERE previous.stream = facts.stream \
      AND previous.version = facts.version - 1) \
     FROM facts WHERE position > $1 ORDER BY position LIMIT $2"
));
/// Where that checksum is.
const PREDECESSOR: usize = 11;

fn fact_and_predecessor(row: &dyn Columns) -> Result<(FactLine, Option<Checksum>), Unfit> {
    let before = match row.bytes(PREDECESSOR)? {
        Some(_) => Some(Checksum(digest(row, PREDECESSOR)?)),
        None => None,
    };
    Ok((read_fact(row)?, before))
}

pub(crate) async fn facts_after<D: Database>(
    database: &D,
    position: u64,
    limit: usize,
) -> Result<Vec<StoredFact>, StoreError> {
    let given = [signed(position).into(), signed(limit.min(MAX_PAGE) as u64).into()];
    let lines = database.query(&FACTS_AFTER, &given, fact_and_predecessor).await.map_err(D::read_failed)?;
    lines.into_iter().map(|(line, before)| line.decode_after(before)).collect()
}

static EARLIEST_DUE: Sql = Sql::new("SELECT min(due_at) FROM agenda WHERE kind = $1 AND due_at IS NOT NULL");

pub(crate) async fn earliest_due<D: Database>(
    database: &D,
    kind: RecordKind,
) -> Result<Option<Timestamp>, StoreError> {
    let found = one(database, &EARLIEST_DUE, &[kind.as_str().into()], |row| optional_time(row, 0)).await;
    found.map(Option::flatten).map_err(D::read_failed)
}

// Leaps from lane to lane in the index: the cost is that of the lanes, not of the jobs in them.
static READY_LANES: Sql = Sql::new(
    "WITH RECURSIVE lanes (lane) AS ( \
         SELECT min(lane) FROM agenda WHERE ready = 1 \
         UNION ALL \
         SELECT (SELECT min(lane) FROM agenda WHERE ready = 1 AND lane > lanes.lane) FROM lanes \
          WHERE lanes.lane IS NOT NULL \
     ) SELECT lane FROM lanes WHERE lane IS NOT NULL",
);

pub(crate) async fn ready_lanes<D: Database>(database: &D) -> Result<Vec<Arc<str>>, StoreError> {
    database.query(&READY_LANES, &[], |row| text(row, 0).map(Arc::from)).await.map_err(D::read_failed)
}
