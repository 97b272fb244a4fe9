//! What the store asks of a connection, whatever the database: one statement at a time, values in, rows by column out.
//!
//! Reads, walks and rebuilds are written once against this. A connection to a file answers before it returns, so that its
//! callers never wait (`at_once`); a connection to a server is awaited. Writing in batches is each database's own.

use std::fmt;

use futures::FutureExt;
use store::StoreError;

use crate::dialect::Sql;

/// A connection that statements are asked of.
#[allow(async_fn_in_trait, reason = "who needs `Send` has a connection whose answers are")]
pub trait Database {
    /// What it says when it fails.
    type Error: From<Unfit>;

    /// The rows of a statement, each as `read` understands it.
    async fn query<T>(
        &self,
        sql: &'static Sql,
        given: &[Given<'_>],
        read: impl FnMut(&dyn Columns) -> Result<T, Unfit>,
    ) -> Result<Vec<T>, Self::Error>;

    /// Carries a statement out; how many rows it touched.
    async fn execute(&self, sql: &'static Sql, given: &[Given<'_>]) -> Result<u64, Self::Error>;

    /// Everything up to `end` is read as it is at one moment, or written together.
    async fn begin(&self, purpose: Purpose) -> Result<(), Self::Error>;

    /// Ends what was begun.
    async fn end(&self, ending: Ending) -> Result<(), Self::Error>;

    /// Counts anew what is kept beside the views, in a transaction for rebuilding. A file keeps no counts.
    async fn count_anew(&self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Which of the counts that are kept beside the views are wrong.
    async fn miscounts(&self) -> Result<Vec<String>, Self::Error> {
        Ok(Vec::new())
    }

    /// What is wrong with how the rows are kept, where that is a file of ours: pages, and indexes that lead elsewhere.
    async fn damage(&self) -> Result<Vec<String>, Self::Error> {
        Ok(Vec::new())
    }

    /// What the caller of a read is told.
    fn read_failed(error: Self::Error) -> StoreError;
}

/// What a transaction is begun for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To read at one moment.
    Read,
    /// To write every view anew, alone.
    Rebuild,
}

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// What was written stays.
    Commit,
    /// Nothing was written, or nothing of it stays.
    RollBack,
}

/// A value for a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given<'a> {
    /// Nothing.
    Null,
    /// A number, a time, yes or no.
    Integer(i64),
    /// A text.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
}

/// A value of a row, whatever it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// A number, a time, yes or no.
    Integer(i64),
    /// A text.
    Text(String),
}

/// A row.
pub trait Columns {
    /// A number, a time, yes or no.
    fn integer(&self, column: usize) -> Result<Option<i64>, Unfit>;
    /// A text.
    fn text(&self, column: usize) -> Result<Option<&str>, Unfit>;
    /// Bytes.
    fn bytes(&self, column: usize) -> Result<Option<&[u8]>, Unfit>;
    /// Whatever it is.
    fn value(&self, column: usize) -> Result<Value, Unfit>;
    /// A text, as far as it can be read.
    fn lossy(&self, column: usize) -> String;
}

/// A value that does not fit its column's meaning: the database works, what is stored is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {reason}")]
pub struct Unfit {
    /// Counted from 0.
    pub column: usize,
    /// What is wrong with it.
    pub reason: String,
}

impl Unfit {
    /// Why a column does not fit.
    pub fn new(column: usize, reason: impl fmt::Display) -> Self {
        Self { column, reason: reason.to_string() }
    }
}

/// The answer of a connection that never waits.
pub(crate) fn at_once<T>(answer: impl Future<Output = T>) -> T {
    answer.now_or_never().expect("a connection to a file answers before it returns")
}

/// The one row that a statement has, if it has one.
pub(crate) async fn one<D: Database, T>(
    database: &D,
    sql: &'static Sql,
    given: &[Given<'_>],
    read: impl FnMut(&dyn Columns) -> Result<T, Unfit>,
) -> Result<Option<T>, D::Error> {
    Ok(database.query(sql, given, read).await?.into_iter().next())
}

/// A number that must be there.
pub(crate) fn integer(row: &dyn Columns, column: usize) -> Result<i64, Unfit> {
    row.integer(column)?.ok_or_else(|| Unfit::new(column, "it is null"))
}

/// A count or version that must be there.
pub(crate) fn unsigned(row: &dyn Columns, column: usize) -> Result<u64, Unfit> {
    u64::try_from(integer(row, column)?).map_err(|error| Unfit::new(column, error))
}

/// A text that must be there.
pub(crate) fn text(row: &dyn Columns, column: usize) -> Result<String, Unfit> {
    optional_text(row, column)?.ok_or_else(|| Unfit::new(column, "it is null"))
}

/// A text, if it is there.
pub(crate) fn optional_text(row: &dyn Columns, column: usize) -> Result<Option<String>, Unfit> {
    Ok(row.text(column)?.map(str::to_owned))
}

/// Bytes that must be there.
pub(crate) fn bytes(row: &dyn Columns, column: usize) -> Result<&[u8], Unfit> {
    row.bytes(column)?.ok_or_else(|| Unfit::new(column, "it is null"))
}

/// Exactly so many bytes.
pub(crate) fn digest<const N: usize>(row: &dyn Columns, column: usize) -> Result<[u8; N], Unfit> {
    let bytes = bytes(row, column)?;
    bytes.try_into().map_err(|_| Unfit::new(column, format_args!("it has {} bytes, not {N}", bytes.len())))
}

impl From<i64> for Given<'_> {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<bool> for Given<'_> {
    fn from(value: bool) -> Self {
        Self::Integer(i64::from(value))
    }
}

impl<'a> From<&'a str> for Given<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(value)
    }
}

impl<'a> From<&'a [u8]> for Given<'a> {
    fn from(value: &'a [u8]) -> Self {
        Self::Bytes(value)
    }
}

impl<'a, T: Into<Given<'a>>> From<Option<T>> for Given<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
