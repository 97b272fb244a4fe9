//! What stands in a store, read behind its back: rows as they are, on either database.

use anyhow::{Context, Result};
use rusqlite::types::ValueRef;
use tokio::runtime::Handle;
use tokio_postgres::Client;

use crate::raw::rows::{self, Value};

/// A row of any table.
pub type Row = Vec<Value>;

/// A connection that knows nothing of the store's rules. Nothing of it may be called from within a runtime.
pub enum Books {
    /// To a file.
    Sqlite(rusqlite::Connection),
    /// To a schema.
    Postgres(Handle, Client),
}

impl Books {
    /// The rows that a statement with `$1`, ... finds.
    pub fn rows(&self, statement: &str, given: &[Value]) -> Result<Vec<Row>> {
        match self {
            Self::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(statement)?;
                let columns = statement.column_count();
                let mut found = statement.query(rusqlite::params_from_iter(given))?;
                let mut rows = Vec::new();
                while let Some(row) = found.next()? {
                    rows.push((0..columns).map(|at| Ok(value(row.get_ref(at)?))).collect::<Result<_>>()?);
                }
                Ok(rows)
            }
            Self::Postgres(runtime, client) => runtime.block_on(rows::rows(client, statement, given)),
        }
    }

    /// The one number that a statement finds; 0 if it finds none.
    pub fn number(&self, statement: &str) -> Result<i64> {
        match self.rows(statement, &[])?.first().and_then(|row| row.first()) {
            Some(Value::Integer(number)) => Ok(*number),
            Some(Value::Null | Value::Text(_) | Value::Bytes(_)) | None => Ok(0),
        }
    }

    /// The names of a table's columns, in their order.
    pub fn columns(&self, table: &str) -> Result<Vec<String>> {
        let statement = format!("SELECT * FROM {table}");
        match self {
            Self::Sqlite(connection) => {
                Ok(connection.prepare(&statement)?.column_names().map(str::to_owned).collect())
            }
            Self::Postgres(runtime, client) => {
                let statement = runtime.block_on(client.prepare(&statement))?;
                Ok(statement.columns().iter().map(|column| column.name().to_owned()).collect())
            }
        }
    }

    /// The position of the newest fact.
    pub fn position(&self) -> Result<i64> {
        self.number("SELECT max(position) FROM facts")
    }

    /// How large the store is, with its indexes.
    pub fn bytes(&self) -> Result<i64> {
        match self {
            Self::Sqlite(_) => {
                let page = self.number("PRAGMA page_size")?;
                Ok(page * (self.number("PRAGMA page_count")? - self.number("PRAGMA freelist_count")?))
            }
            Self::Postgres(..) => self.number(
                "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class \
                 WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace",
            ),
        }
    }
}

fn value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        // No table of ours has one.
        ValueRef::Real(_) => Value::Null,
        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
    }
}

/// A text of a row.
pub fn text(row: &Row, column: usize) -> Result<&str> {
    match row.get(column) {
        Some(Value::Text(text)) => Some(text.as_str()),
        Some(Value::Null | Value::Integer(_) | Value::Bytes(_)) | None => None,
    }
    .with_context(|| format!("column {column} is no text"))
}

/// A number of a row.
pub fn number(row: &Row, column: usize) -> Result<i64> {
    match row.get(column) {
        Some(Value::Integer(number)) => Some(*number),
        Some(Value::Null | Value::Text(_) | Value::Bytes(_)) | None => None,
    }
    .with_context(|| format!("column {column} is no number"))
}
