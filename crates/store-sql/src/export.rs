//! Export: the ledger and the claims as they are stored, a page at a time, for whoever writes them elsewhere.

use domain::{Claim, RecordId};
use store::StoreError;

use crate::database::Database;
use crate::dialect::Sql;
use crate::rows::{FactLine, agenda_columns, agenda_with_id, fact_columns, read_fact, signed};
use crate::walk::PAGE;

static FACTS_AFTER: Sql = Sql::new(concat!(
    "SELECT ",
    fact_columns!(),
    " FROM facts WHERE position > $1 ORDER BY position LIMIT $2"
));

/// The next page of the ledger after a position, not interpreted; empty at its end.
pub(crate) async fn facts_after<D: Database>(
    database: &D,
    position: u64,
) -> Result<Vec<FactLine>, StoreError> {
    fact_lines(database, position, PAGE).await
}

/// So many facts after a position.
pub(crate) async fn fact_lines<D: Database>(
    database: &D,
    position: u64,
    limit: usize,
) -> Result<Vec<FactLine>, StoreError> {
    let given = [signed(position).into(), signed(limit as u64).into()];
    database.query(&FACTS_AFTER, &given, read_fact).await.map_err(D::read_failed)
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
pub(crate) async fn claims_after<D: Database>(
    database: &D,
    record_id: &str,
) -> Result<Vec<ClaimLine>, StoreError> {
    let given = [record_id.into(), signed(PAGE as u64).into()];
    let rows = database.query(&CLAIMS_AFTER, &given, agenda_with_id).await.map_err(D::read_failed)?;
    let line = |(id, row): (String, store::AgendaRow)| {
        Some(ClaimLine { id: RecordId::parse(&id).ok()?, claim: row.claim? })
    };
    Ok(rows.into_iter().filter_map(line).collect())
}
