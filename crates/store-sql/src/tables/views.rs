//! The tables of views, and the statements that write one view.

use domain::RecordKind;

use crate::dialect::Sql;
use crate::rows::{job_columns, operation_columns, record_columns};

/// A table of views.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ViewTable {
    Jobs,
    Operations,
    /// All other kinds.
    Records,
}

impl ViewTable {
    /// Where the views of a kind are.
    pub(crate) fn of(kind: RecordKind) -> Self {
        if kind == RecordKind::Job {
            Self::Jobs
        } else if kind == RecordKind::Operation {
            Self::Operations
        } else {
            Self::Records
        }
    }
}

pub(crate) static INSERT_JOB: Sql =
    Sql::new(concat!("INSERT INTO jobs (", job_columns!(), ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"));
pub(crate) static INSERT_OPERATION: Sql =
    Sql::new(concat!("INSERT INTO operations (", operation_columns!(), ") VALUES ($1, $2, $3, $4, $5, $6)"));

pub(crate) static INSERT_RECORD: Sql = Sql::new(concat!(
    "INSERT INTO records (",
    record_columns!(),
    ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
));

// What was asked for never changes, but the statement stays one: a column that may change later is written already.
pub(crate) static UPDATE_JOB: Sql = Sql::new(
    "UPDATE jobs SET state = $2, updated_at = $3, owner_peer_id = $4, created_by_peer_id = $5, session_id = $6, \
     circle = $7, view = $8 WHERE id = $1",
);
pub(crate) static UPDATE_OPERATION: Sql = Sql::new(
    "UPDATE operations SET job_id = $2, status = $3, updated_at = $4, orphaned_at = $5, view = $6 WHERE id = $1",
);
pub(crate) static UPDATE_RECORD: Sql = Sql::new(
    "UPDATE records SET kind = $2, status = $3, name = $4, circle = $5, key = $6, began_at = $7, \
     updated_at = $8, view = $9 WHERE id = $1",
);
