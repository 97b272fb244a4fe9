//! Rows of the tables as Rust values, and back.

use std::fmt::Write as _;
use std::sync::Arc;

use domain::attention::Place;
use domain::checkpoint::{Checkpoint, is_checkpoint};
use domain::{Claim, Fact, OwnerId, Record, RecordId, Summary, Timestamp};
use store::{
    AgendaRow, Checksum, FactId, Head, JobColumns, OperationColumns, StoreError, StoredFact, decode_fact,
};

use crate::database::{Columns, Given, Unfit, digest, integer, optional_text, text, unsigned};

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

/// The columns of a job's view, in the order of `job_values`.
macro_rules! job_columns {
    () => {
        "id, state, updated_at, owner_peer_id, created_by_peer_id, session_id, circle, view"
    };
}
pub(crate) use job_columns;

/// The columns of an operation's view, in the order of `operation_values`.
macro_rules! operation_columns {
    () => {
        "id, job_id, status, updated_at, orphaned_at, view"
    };
}
pub(crate) use operation_columns;

/// The columns of the view of any other record, in the order of `ViewValues`.
macro_rules! record_columns {
    () => {
        "id, kind, status, name, circle, key, began_at, updated_at, view"
    };
}
pub(crate) use record_columns;

/// Reads an agenda row from these columns on.
pub(crate) fn read_agenda(row: &dyn Columns, first: usize) -> Result<AgendaRow, Unfit> {
    let claim = match optional_text(row, first + 2)? {
        None => None,
        Some(owner) => Some(Claim {
            owner: OwnerId::new(owner),
            lease_expires_at: time(row, first + 3)?,
            heartbeat_at: time(row, first + 4)?,
            claim_version: unsigned(row, first + 5)?,
        }),
    };
    let place = match row.text(first + 7)? {
        None => None,
        Some(lane) => Some(Place {
            lane: Arc::from(lane),
            priority: integer(row, first + 8)?.try_into().map_err(|error| Unfit::new(first + 8, error))?,
            sequence: integer(row, first + 9)?,
            ready_at: time(row, first + 10)?,
        }),
    };
    Ok(AgendaRow {
        head: Head { version: unsigned(row, first)?, checksum: Checksum(digest(row, first + 1)?) },
        claim,
        held: yes(row, first + 6)?,
        place,
        ready: yes(row, first + 11)?,
        due_at: optional_time(row, first + 12)?,
        limit_at: optional_time(row, first + 13)?,
    })
}

/// A record's id, then its agenda row.
pub(crate) fn agenda_with_id(row: &dyn Columns) -> Result<(String, AgendaRow), Unfit> {
    Ok((text(row, 0)?, read_agenda(row, 1)?))
}

/// The record's id as `$1`, then the columns of its agenda row as `$2` to `$15`.
pub(crate) fn agenda_values<'a>(id: &'a RecordId, row: &'a AgendaRow) -> [Given<'a>; 15] {
    let claim = row.claim.as_ref();
    let place = row.place.as_ref();
    [
        id.as_str().into(),
        signed(row.head.version).into(),
        row.head.checksum.0[..].into(),
        claim.map(|claim| claim.owner.as_str()).into(),
        claim.map(|claim| claim.lease_expires_at.micros()).into(),
        claim.map(|claim| claim.heartbeat_at.micros()).into(),
        claim.map(|claim| signed(claim.claim_version)).into(),
        row.held.into(),
        place.map(|place| &*place.lane).into(),
        place.map(|place| i64::from(place.priority)).into(),
        place.map(|place| place.sequence).into(),
        place.map(|place| place.ready_at.micros()).into(),
        row.ready.into(),
        row.due_at.map(Timestamp::micros).into(),
        row.limit_at.map(Timestamp::micros).into(),
    ]
}

/// The same, and the kind of the record as `$16`.
pub(crate) fn new_agenda_values<'a>(id: &'a RecordId, row: &'a AgendaRow) -> [Given<'a>; 16] {
    let mut all = [Given::from(id.kind().as_str()); 16];
    all[..15].copy_from_slice(&agenda_values(id, row));
    all
}

/// The values of a view, by its table.
pub(crate) enum ViewValues<'a> {
    Job([Given<'a>; 8]),
    Operation([Given<'a>; 6]),
    Record([Given<'a>; 9]),
}

impl<'a> ViewValues<'a> {
    pub(crate) fn of(id: &'a RecordId, record: &'a Record, view: &'a str) -> Self {
        if let Some(job) = record.as_job() {
            let columns = JobColumns::from(job);
            return Self::Job([
                id.as_str().into(),
                columns.state.as_str().into(),
                columns.updated_at.micros().into(),
                columns.owner_peer_id.into(),
                columns.created_by_peer_id.into(),
                columns.session_id.into(),
                columns.circle.into(),
                view.into(),
            ]);
        }
        if let Some(operation) = record.as_operation() {
            let columns = OperationColumns::from(operation);
            return Self::Operation([
                id.as_str().into(),
                columns.job_id.into(),
                columns.status.as_str().into(),
                columns.updated_at.micros().into(),
                columns.orphaned_at.map(Timestamp::micros).into(),
                view.into(),
            ]);
        }
        let Summary { status, name, circle, key, began_at, updated_at } = record.summary();
        Self::Record([
            id.as_str().into(),
            id.kind().as_str().into(),
            status.into(),
            name.into(),
            circle.into(),
            key.into(),
            began_at.micros().into(),
            updated_at.micros().into(),
            view.into(),
        ])
    }
}

/// The bodies that a state names, in the form in which the statements look for them that remove all others: `name digest;` of each.
pub(crate) fn named_bodies(record: &Record) -> String {
    let mut named = String::new();
    for body in record.named_bodies() {
        write!(named, "{} {};", body.name.as_str(), body.sha256).expect("a text takes everything");
    }
    named
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
pub(crate) fn read_fact(row: &dyn Columns) -> Result<FactLine, Unfit> {
    Ok(FactLine {
        position: unsigned(row, 0)?,
        stream: text(row, 1)?,
        version: unsigned(row, 2)?,
        id: FactId(digest(row, 3)?),
        kind: text(row, 4)?,
        at: time(row, 5)?,
        actor: text(row, 6)?,
        causation_id: optional_text(row, 7)?,
        correlation_id: optional_text(row, 8)?,
        payload: text(row, 9)?,
        checksum: Checksum(digest(row, 10)?),
    })
}

impl FactLine {
    /// What it holds if it is a checkpoint; what cannot be read is none.
    pub(crate) fn checkpoint(&self) -> Option<Box<Checkpoint>> {
        match is_checkpoint(&self.kind).then(|| decode_fact(&self.kind, &self.payload)) {
            Some(Ok(Fact::Checkpointed { checkpointed })) => Some(checkpointed),
            Some(_) | None => None,
        }
    }

    /// Understands it, after one with this checksum, if any is left before it: what was changed since it was written is refused.
    pub(crate) fn decode_after(self, before: Option<Checksum>) -> Result<StoredFact, StoreError> {
        let place = format!("version {} of {}", self.version, self.stream);
        let before = before.or_else(|| self.checkpoint().map(|checkpoint| checkpoint.previous));
        let checksum = self.text().checksum(before.unwrap_or_default());
        if checksum != self.checksum {
            let told = format!("{place} has checksum {}, its content gives {checksum}", self.checksum);
            return Err(StoreError::Broken(told));
        }
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

/// A count or version for a column.
pub(crate) fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A time that must be there.
pub(crate) fn time(row: &dyn Columns, column: usize) -> Result<Timestamp, Unfit> {
    integer(row, column).map(Timestamp::from_micros)
}

/// A time, if it is there.
pub(crate) fn optional_time(row: &dyn Columns, column: usize) -> Result<Option<Timestamp>, Unfit> {
    Ok(row.integer(column)?.map(Timestamp::from_micros))
}

fn yes(row: &dyn Columns, column: usize) -> Result<bool, Unfit> {
    match integer(row, column)? {
        0 => Ok(false),
        1 => Ok(true),
        // The indexes of what is ready and held know no other word.
        other => Err(Unfit::new(column, format_args!("{other} is neither yes nor no"))),
    }
}
