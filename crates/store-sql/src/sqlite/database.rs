//! A connection to a file, as every store is read: it answers before it returns.

use rusqlite::types::{ToSqlOutput, Type, ValueRef};
use rusqlite::{Connection, Row, ToSql, params_from_iter};
use store::StoreError;

use super::failure::read_failed;
use crate::database::{Columns, Database, Ending, Given, Purpose, Unfit, Value};
use crate::dialect::Sql;

impl Database for Connection {
    type Error = rusqlite::Error;

    async fn query<T>(
        &self,
        sql: &'static Sql,
        given: &[Given<'_>],
        mut read: impl FnMut(&dyn Columns) -> Result<T, Unfit>,
    ) -> rusqlite::Result<Vec<T>> {
        let mut statement = self.prepare_cached(sql.sqlite())?;
        let mut rows = statement.query(params_from_iter(given))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(read(row)?);
        }
        Ok(found)
    }

    async fn execute(&self, sql: &'static Sql, given: &[Given<'_>]) -> rusqlite::Result<u64> {
        let touched = self.prepare_cached(sql.sqlite())?.execute(params_from_iter(given))?;
        Ok(touched as u64)
    }

    async fn begin(&self, purpose: Purpose) -> rusqlite::Result<()> {
        self.execute_batch(match purpose {
            Purpose::Read => "BEGIN",
            Purpose::Rebuild => "BEGIN IMMEDIATE",
        })
    }

    async fn end(&self, ending: Ending) -> rusqlite::Result<()> {
        match ending {
            Ending::Commit => self.execute_batch("COMMIT"),
            // A transaction that failed may be over already.
            Ending::RollBack if self.is_autocommit() => Ok(()),
            Ending::RollBack => self.execute_batch("ROLLBACK"),
        }
    }

    async fn damage(&self) -> rusqlite::Result<Vec<String>> {
        let mut statement = self.prepare("PRAGMA integrity_check")?;
        let told = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
        Ok(told.into_iter().filter(|told| told != "ok").collect())
    }

    fn read_failed(error: rusqlite::Error) -> StoreError {
        read_failed(error)
    }
}

impl Columns for Row<'_> {
    fn integer(&self, column: usize) -> Result<Option<i64>, Unfit> {
        self.get(column).map_err(|error| Unfit::new(column, error))
    }

    fn text(&self, column: usize) -> Result<Option<&str>, Unfit> {
        let value = self.get_ref(column).map_err(|error| Unfit::new(column, error))?;
        value.as_str_or_null().map_err(|error| Unfit::new(column, error))
    }

    fn bytes(&self, column: usize) -> Result<Option<&[u8]>, Unfit> {
        let value = self.get_ref(column).map_err(|error| Unfit::new(column, error))?;
        value.as_blob_or_null().map_err(|error| Unfit::new(column, error))
    }

    fn value(&self, column: usize) -> Result<Value, Unfit> {
        let unfit = |reason: &dyn std::fmt::Display| Unfit::new(column, reason);
        match self.get_ref(column).map_err(|error| unfit(&error))? {
            ValueRef::Null => Ok(Value::Null),
            ValueRef::Integer(value) => Ok(Value::Integer(value)),
            ValueRef::Text(text) => {
                let text = std::str::from_utf8(text).map_err(|error| unfit(&error))?;
                Ok(Value::Text(text.to_owned()))
            }
            other @ (ValueRef::Real(_) | ValueRef::Blob(_)) => {
                Err(unfit(&format_args!("a {} is in no column of ours", other.data_type())))
            }
        }
    }

    fn lossy(&self, column: usize) -> String {
        match self.get_ref(column).map(|value| value.as_bytes().map(String::from_utf8_lossy)) {
            Ok(Ok(text)) => text.into_owned(),
            Ok(Err(_)) | Err(_) => "?".to_owned(),
        }
    }
}

impl ToSql for Given<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match *self {
            Self::Null => ValueRef::Null,
            Self::Integer(value) => ValueRef::Integer(value),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl From<Unfit> for rusqlite::Error {
    fn from(unfit: Unfit) -> Self {
        Self::FromSqlConversionFailure(unfit.column, Type::Null, Box::new(unfit))
    }
}
