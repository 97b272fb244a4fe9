//! Export: the ledger as it is stored, a page at a time, for whoever writes it elsewhere.

use rusqlite::{Connection, params};

use crate::dialect::Sql;
use crate::rows::{RawFact, fact_columns, read_fact, signed};
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
