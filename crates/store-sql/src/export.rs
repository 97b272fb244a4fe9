//! Export: the ledger and the claims as they are stored, a page at a time, for whoever writes them elsewhere.

use domain::{Claim, RecordId};
use rusqlite::{Connection, params};
use store::StoreError;

use crate::dialect::Sql;
use crate::rows::{FactLine, agenda_columns, fact_columns, read_agenda, read_fact, signed};
use crate::sqlite::read_failed;
use crate::walk::PAGE;

static FACTS_AFTER: Sql = Sql::new(concat!(
    "SELECT ",
    fact_columns!(),
    " FROM facts WHERE position > $1 ORDER BY position LIMIT $2"
));

/// The next page of the ledger after a position, not interpreted; empty at its end.
pub fn facts_after(connection: &Connection, position: u64) -> Result<Vec<FactLine>, StoreError> {
    fact_lines(connection, position, PAGE).map_err(read_failed)
}

/// So many facts after a position.
pub(crate) fn fact_lines(
    connection: &Connection,
    position: u64,
    limit: usize,
) -> rusqlite::Result<Vec<FactLine>> {
    connection
        .prepare_cached(FACTS_AFTER.sqlite())?
        .query_map(params![signed(position), signed(limit as u64)], read_fact)?
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
pub fn claims_after(connection: &Connection, record_id: &str) -> Result<Vec<ClaimLine>, StoreError> {
    claim_lines(connection, record_id).map_err(read_failed)
}

fn claim_lines(connection: &Connection, record_id: &str) -> rusqlite::Result<Vec<ClaimLine>> {
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
