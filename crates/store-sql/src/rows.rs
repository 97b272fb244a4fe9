//! Rows of the tables as Rust values, and back.

use std::sync::Arc;

use domain::attention::Place;
use domain::{Claim, OwnerId, RecordId, Timestamp};
use rusqlite::types::Type;
use rusqlite::{Row, ToSql};
use store::{AgendaRow, Checksum, FactId, Head, StoreError, StoredFact, decode_fact};

/// The columns of an agenda row, in the order of `read_agenda`.
macro_rules! agenda_columns {
    () => {
        "version, checksum, owner, lease_expires_at, heartbeat_at, claim_version, held, \
         lane, priority, sequence, ready_at, ready, due_at, limit_at"
    };
}
pub(crate) use agenda_columns;

/// The columns of a fact, in the order of `read_fact`.
macro_rules! fact_columns {
    () => {
        "position, stream, version, fact_id, kind, at, actor, causation_id, correlation_id, payload, checksum"
    };
}
pub(crate) use fact_columns;

/// Reads an agenda row from these columns on.
pub(crate) fn read_agenda(row: &Row<'_>, first: usize) -> rusqlite::Result<AgendaRow> {
    let claim = match row.get::<_, Option<String>>(first + 2)? {
        None => None,
        Some(owner) => Some(Claim {
            owner: OwnerId::new(owner),
            lease_expires_at: time(row, first + 3)?,
            heartbeat_at: time(row, first + 4)?,
            claim_version: unsigned(row, first + 5)?,
        }),
    };
    let place = match row.get::<_, Option<String>>(first + 7)? {
        None => None,
        Some(lane) => Some(Place {
            lane: Arc::from(lane),
            priority: row.get(first + 8)?,
            sequence: row.get(first + 9)?,
            ready_at: time(row, first + 10)?,
        }),
    };
    Ok(AgendaRow {
        head: Head { version: unsigned(row, first)?, checksum: Checksum(row.get(first + 1)?) },
        claim,
        held: row.get(first + 6)?,
        place,
        ready: row.get(first + 11)?,
        due_at: optional_time(row, first + 12)?,
        limit_at: optional_time(row, first + 13)?,
    })
}

/// The values of an agenda row after the record's id, in the order of `agenda_columns`.
pub(crate) struct AgendaValues<'a> {
    version: i64,
    checksum: &'a [u8; 16],
    owner: Option<&'a str>,
    lease_expires_at: Option<i64>,
    heartbeat_at: Option<i64>,
    claim_version: Option<i64>,
    held: bool,
    lane: Option<&'a str>,
    priority: Option<i32>,
    sequence: Option<i64>,
    ready_at: Option<i64>,
    ready: bool,
    due_at: Option<i64>,
    limit_at: Option<i64>,
}

impl<'a> AgendaValues<'a> {
    pub(crate) fn of(row: &'a AgendaRow) -> Self {
        let claim = row.claim.as_ref();
        let place = row.place.as_ref();
        Self {
            version: signed(row.head.version),
            checksum: &row.head.checksum.0,
            owner: claim.map(|claim| claim.owner.as_str()),
            lease_expires_at: claim.map(|claim| claim.lease_expires_at.micros()),
            heartbeat_at: claim.map(|claim| claim.heartbeat_at.micros()),
            claim_version: claim.map(|claim| signed(claim.claim_version)),
            held: row.held,
            lane: place.map(|place| &*place.lane),
            priority: place.map(|place| place.priority),
            sequence: place.map(|place| place.sequence),
            ready_at: place.map(|place| place.ready_at.micros()),
            ready: row.ready,
            due_at: row.due_at.map(Timestamp::micros),
            limit_at: row.limit_at.map(Timestamp::micros),
        }
    }

    /// The record's id as `$1`, then the columns as `$2` to `$15`.
    pub(crate) fn after<'b>(&'b self, id: &'b &'b str) -> [&'b dyn ToSql; 15] {
        [
            id,
            &self.version,
            self.checksum,
            &self.owner,
            &self.lease_expires_at,
            &self.heartbeat_at,
            &self.claim_version,
            &self.held,
            &self.lane,
            &self.priority,
            &self.sequence,
            &self.ready_at,
            &self.ready,
            &self.due_at,
            &self.limit_at,
        ]
    }
}

/// A fact as it is stored, before it is understood.
pub struct FactLine {
    /// Its place in the whole ledger.
    pub position: u64,
    /// The record's id.
    pub stream: String,
    /// Its place in the stream.
    pub version: u64,
    /// The caller's name for it.
    pub id: FactId,
    /// Its kind.
    pub kind: String,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: String,
    /// What caused it.
    pub causation_id: Option<String>,
    /// What joins it to other work.
    pub correlation_id: Option<String>,
    /// The rest, as JSON.
    pub payload: String,
    /// Over itself and its predecessor.
    pub checksum: Checksum,
}

/// Reads a fact's columns.
pub(crate) fn read_fact(row: &Row<'_>) -> rusqlite::Result<FactLine> {
    Ok(FactLine {
        position: unsigned(row, 0)?,
        stream: row.get(1)?,
        version: unsigned(row, 2)?,
        id: FactId(row.get(3)?),
        kind: row.get(4)?,
        at: time(row, 5)?,
        actor: row.get(6)?,
        causation_id: row.get(7)?,
        correlation_id: row.get(8)?,
        payload: row.get(9)?,
        checksum: Checksum(row.get(10)?),
    })
}

impl FactLine {
    /// Understands it.
    pub(crate) fn decode(self) -> Result<StoredFact, StoreError> {
        let place = format!("version {} of {}", self.version, self.stream);
        let fact = decode_fact(&self.kind, &self.payload)
            .map_err(|error| StoreError::Broken(format!("{place}: {error}")))?;
        let stream = RecordId::parse(&self.stream)
            .map_err(|refusal| StoreError::Broken(format!("{place}: {refusal}")))?;
        Ok(StoredFact {
            position: self.position,
            stream,
            version: self.version,
            id: self.id,
            at: self.at,
            actor: Arc::from(self.actor),
            causation_id: self.causation_id.map(Arc::from),
            correlation_id: self.correlation_id.map(Arc::from),
            fact,
            checksum: self.checksum,
        })
    }
}

/// A value that does not fit its column's meaning is told apart from a database that fails.
pub(crate) fn unless_undecodable<T>(read: rusqlite::Result<T>) -> rusqlite::Result<Result<T, String>> {
    match read {
        Ok(value) => Ok(Ok(value)),
        // Without a code it is not SQLite that failed.
        Err(error) if error.sqlite_error_code().is_none() => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}

/// The text of a column, as far as it can be read.
pub(crate) fn lossy(row: &Row<'_>, column: usize) -> String {
    match row.get_ref(column).map(|value| value.as_bytes().map(String::from_utf8_lossy)) {
        Ok(Ok(text)) => text.into_owned(),
        Ok(Err(_)) | Err(_) => "?".to_owned(),
    }
}

/// A count or version for a column.
pub(crate) fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(crate) fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let value: i64 = row.get(column)?;
    u64::try_from(value)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(column, Type::Integer, Box::new(error)))
}

fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Timestamp> {
    row.get(column).map(Timestamp::from_micros)
}

fn optional_time(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Timestamp>> {
    row.get::<_, Option<i64>>(column).map(|micros| micros.map(Timestamp::from_micros))
}
