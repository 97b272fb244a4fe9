//! Rows as they are, of any table: read from one run, written again by raw SQL, many at once.

use anyhow::{Context, Result};
use bytes::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Row, Statement};

/// A value of a column.
#[derive(Clone, Debug)]
pub enum Value {
    /// Nothing.
    Null,
    /// A number.
    Integer(i64),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl ToSql for Value {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Integer(value) => value.to_sql(kind, out),
            Self::Text(text) => text.as_str().to_sql(kind, out),
            Self::Bytes(bytes) => bytes.as_slice().to_sql(kind, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl rusqlite::ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        match self {
            Self::Null => Ok(rusqlite::types::Null.into()),
            Self::Integer(value) => Ok((*value).into()),
            Self::Text(text) => rusqlite::ToSql::to_sql(text),
            Self::Bytes(bytes) => rusqlite::ToSql::to_sql(bytes),
        }
    }
}

/// The rows that a statement finds.
pub async fn rows(client: &Client, statement: &str, given: &[Value]) -> Result<Vec<Vec<Value>>> {
    let given: Vec<&(dyn ToSql + Sync)> = given.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
    Ok(client.query(statement, &given).await?.iter().map(row).collect())
}

fn row(row: &Row) -> Vec<Value> {
    let value = |(place, column): (usize, &tokio_postgres::Column)| match *column.type_() {
        Type::INT8 => row.get::<_, Option<i64>>(place).map_or(Value::Null, Value::Integer),
        Type::BYTEA => row.get::<_, Option<Vec<u8>>>(place).map_or(Value::Null, Value::Bytes),
        _ => row.get::<_, Option<String>>(place).map_or(Value::Null, Value::Text),
    };
    row.columns().iter().enumerate().map(value).collect()
}

/// A statement that writes many rows at once, one array for each column.
pub struct Many {
    statement: Statement,
    columns: Vec<Vec<Value>>,
}

impl Many {
    /// Inserts into all columns of a table.
    pub async fn insert(client: &Client, table: &str) -> Result<Self> {
        let kinds = client.prepare(&format!("SELECT * FROM {table}")).await?;
        let kinds: Vec<Type> = kinds.columns().iter().map(|column| column.type_().clone()).collect();
        let arrays = arrays(&kinds);
        Self::new(client, &format!("INSERT INTO {table} SELECT * FROM UNNEST({arrays})"), kinds.len()).await
    }

    /// Sets these columns of a table where the first of them is the same.
    pub async fn update(client: &Client, table: &str, columns: &[&str]) -> Result<Self> {
        let kinds = client.prepare(&format!("SELECT {} FROM {table}", columns.join(", "))).await?;
        let kinds: Vec<Type> = kinds.columns().iter().map(|column| column.type_().clone()).collect();
        let (key, set) = columns.split_first().context("rows have a key")?;
        let set: Vec<String> = set.iter().map(|column| format!("{column} = given.{column}")).collect();
        let statement = format!(
            "UPDATE {table} SET {} FROM UNNEST({}) AS given ({}) WHERE {table}.{key} = given.{key}",
            set.join(", "),
            arrays(&kinds),
            columns.join(", "),
        );
        Self::new(client, &statement, kinds.len()).await
    }

    async fn new(client: &Client, statement: &str, columns: usize) -> Result<Self> {
        let statement = client.prepare(statement).await.with_context(|| statement.to_owned())?;
        Ok(Self { statement, columns: vec![Vec::new(); columns] })
    }

    /// One more row.
    pub fn push(&mut self, row: Vec<Value>) {
        debug_assert_eq!(row.len(), self.columns.len());
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.push(value);
        }
    }

    /// Sends what was pushed, if anything was.
    pub async fn send(&self, client: &Client) -> Result<u64, tokio_postgres::Error> {
        if self.columns.first().is_none_or(Vec::is_empty) {
            return Ok(0);
        }
        let given: Vec<&(dyn ToSql + Sync)> =
            self.columns.iter().map(|column| column as &(dyn ToSql + Sync)).collect();
        client.execute(&self.statement, &given).await
    }

    /// Forgets it.
    pub fn clear(&mut self) {
        self.columns.iter_mut().for_each(Vec::clear);
    }
}

fn arrays(kinds: &[Type]) -> String {
    let arrays: Vec<String> =
        kinds.iter().enumerate().map(|(place, kind)| format!("${}::{}[]", place + 1, kind.name())).collect();
    arrays.join(", ")
}
