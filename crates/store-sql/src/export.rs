//! Export: the ledger and the claims as they are stored, a page at a time, for whoever writes them elsewhere.

use domain::{Claim, RecordId};
use rusqlite::{Connection, params};

use crate::dialect::Sql;
use crate::rows::{RawFact, agenda_columns, fact_columns, read_agenda, read_fact, signed};
use crate::walk::PAGE;

/// One line of the ledger, not interpreted.
pub struct FactLine {
    /// Its place in the whole ledger.
    pub position: u64,
    /// The record's id.
    pub stream: String,
    /// Its place in the stream.
    pub version: u64,
    /// The caller's name for it.
    pub fact_id: String,
    /// Its kind.
    pub kind: String,
    /// When.
    pub at: domain::Timestamp,
    /// Who.
    pub actor: String,
    /// What caused it.
    pub causation_id: Option<String>,
    /// What joins it to other work.
    pub correlation_id: Option<String>,
    /// The rest, as JSON.
    pub payload: String,
    /// Over itself and its predecessor.
    pub checksum: String,
}

static FACTS_AFTER: Sql = Sql::new(concat!(
    "SELECT ",
    fact_columns!(),
    " FROM facts WHERE position > $1 ORDER BY position LIMIT $2"
));

/// The next page of the ledger after a position; empty at its end.
pub fn facts_after(connection: &Connection, position: u64) -> rusqlite::Result<Vec<FactLine>> {
    connection
        .prepare_cached(FACTS_AFTER.sqlite())?
        .query_map(params![signed(position), signed(PAGE as u64)], |row| read_fact(row).map(FactLine::from))?
        .collect()
}

/// One claim: who holds a record, or held it last.
pub struct ClaimLine {
    /// The record.
    pub id: RecordId,
    /// Its claim.
    pub claim: Claim,
}

static CLAIMS_AFTER: Sql = Sql::new(concat!(
    "SELECT record_id, ",
    agenda_columns!(),
    " FROM agenda WHERE record_id > $1 AND owner IS NOT NULL ORDER BY record_id LIMIT $2"
));

/// The next page of claims after a record; empty at the end.
pub fn claims_after(connection: &Connection, record_id: &str) -> rusqlite::Result<Vec<ClaimLine>> {
    let lines: Vec<Option<ClaimLine>> = connection
        .prepare_cached(CLAIMS_AFTER.sqlite())?
        .query_map(params![record_id, signed(PAGE as u64)], |row| {
            let id: String = row.get(0)?;
            let claim = read_agenda(row, 1)?.claim;
            Ok(RecordId::parse(&id).ok().zip(claim).map(|(id, claim)| ClaimLine { id, claim }))
        })?
        .collect::<Result<_, _>>()?;
    Ok(lines.into_iter().flatten().collect())
}

impl From<RawFact> for FactLine {
    fn from(fact: RawFact) -> Self {
        Self {
            position: fact.position,
            stream: fact.stream,
            version: fact.version,
            fact_id: fact.id.to_string(),
            kind: fact.kind,
            at: fact.at,
            actor: fact.actor,
            causation_id: fact.causation_id,
            correlation_id: fact.correlation_id,
            payload: fact.payload,
            checksum: fact.checksum.to_string(),
        }
    }
}
