//! A session, as every store is read.

use bytes::BytesMut;
use store::StoreError;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use super::failure::PostgresError;
use super::session::{Parameter, Session};
use super::tally;
use crate::database::{Columns, Database, Ending, Given, Purpose, Unfit, Value};
use crate::dialect::Sql;

impl Database for Session {
    type Error = PostgresError;

    async fn query<T>(
        &self,
        sql: &'static Sql,
        given: &[Given<'_>],
        mut read: impl FnMut(&dyn Columns) -> Result<T, Unfit>,
    ) -> Result<Vec<T>, PostgresError> {
        let statement = self.prepare(sql.postgres()).await?;
        self.each_row(&statement, &parameters(given), |row| read(row)).await
    }

    async fn execute(&self, sql: &'static Sql, given: &[Given<'_>]) -> Result<u64, PostgresError> {
        let statement = self.prepare(sql.postgres()).await?;
        Session::execute(self, &statement, &parameters(given)).await
    }

    async fn begin(&self, purpose: Purpose) -> Result<(), PostgresError> {
        match purpose {
            Purpose::Read => self.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await,
            // Nodes that run wait until all is written, or are told that the store is busy; nothing of theirs gets in between.
            Purpose::Rebuild => {
                self.run("BEGIN").await?;
                self.run(
                    "SET LOCAL statement_timeout = 0; LOCK TABLE agenda, jobs, operations, records IN EXCLUSIVE MODE",
                )
                .await
            }
        }
    }

    async fn end(&self, ending: Ending) -> Result<(), PostgresError> {
        match ending {
            Ending::Commit => self.run_without_limit("COMMIT").await,
            Ending::RollBack => self.run("ROLLBACK").await,
        }
    }

    async fn count_anew(&self) -> Result<(), PostgresError> {
        tally::count_anew(self).await
    }

    async fn miscounts(&self) -> Result<Vec<String>, PostgresError> {
        tally::miscounts(self).await
    }

    fn read_failed(error: PostgresError) -> StoreError {
        error.told()
    }
}

fn parameters<'a>(given: &'a [Given<'_>]) -> Vec<Parameter<'a>> {
    given.iter().map(|value| value as Parameter<'a>).collect()
}

impl Columns for Row {
    fn integer(&self, column: usize) -> Result<Option<i64>, Unfit> {
        let Some(kind) = self.columns().get(column).map(tokio_postgres::Column::type_) else {
            return Err(Unfit::new(column, "there is no such column"));
        };
        let found = if *kind == Type::BOOL {
            self.try_get::<_, Option<bool>>(column).map(|value| value.map(i64::from))
        } else if *kind == Type::INT4 {
            self.try_get::<_, Option<i32>>(column).map(|value| value.map(i64::from))
        } else {
            self.try_get::<_, Option<i64>>(column)
        };
        found.map_err(|error| Unfit::new(column, error))
    }

    fn text(&self, column: usize) -> Result<Option<&str>, Unfit> {
        self.try_get(column).map_err(|error| Unfit::new(column, error))
    }

    fn bytes(&self, column: usize) -> Result<Option<&[u8]>, Unfit> {
        self.try_get(column).map_err(|error| Unfit::new(column, error))
    }

    fn value(&self, column: usize) -> Result<Value, Unfit> {
        match self.columns().get(column).map(tokio_postgres::Column::type_) {
            Some(kind) if <&str as FromSql<'_>>::accepts(kind) => {
                Ok(self.text(column)?.map_or(Value::Null, |text| Value::Text(text.to_owned())))
            }
            Some(_) | None => Ok(self.integer(column)?.map_or(Value::Null, Value::Integer)),
        }
    }

    fn lossy(&self, column: usize) -> String {
        match self.text(column) {
            Ok(Some(text)) => text.to_owned(),
            Ok(None) | Err(_) => "?".to_owned(),
        }
    }
}

impl ToSql for Given<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match *self {
            Self::Null => Ok(IsNull::Yes),
            Self::Integer(value) if *kind == Type::INT4 => i32::try_from(value)?.to_sql(kind, out),
            Self::Integer(value) => value.to_sql(kind, out),
            Self::Text(text) => text.to_sql(kind, out),
            Self::Bytes(bytes) => bytes.to_sql(kind, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        // Which of them fits is known only with the value.
        true
    }

    to_sql_checked!();
}
