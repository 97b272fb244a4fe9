//! Statements that do not wait for each other's answers, sent together.

use tokio_postgres::{Row, Statement};

use super::super::columnar::Columnar;
use super::super::failure::PostgresError;
use super::super::session::{Parameter, Session};

/// What came of statements that were sent together.
pub(super) struct Sent {
    /// How many rows the last one touched.
    pub(super) last: u64,
    /// The rows that any of them returned.
    pub(super) returned: Vec<Row>,
}

/// Statements that are sent together.
pub(super) struct Writes<'a> {
    session: &'a Session,
    statements: Vec<(Statement, Vec<Parameter<'a>>)>,
}

impl<'a> Writes<'a> {
    pub(super) fn on(session: &'a Session) -> Self {
        Self { session, statements: Vec::new() }
    }

    pub(super) async fn all<const N: usize>(
        &mut self,
        statement: &'static str,
        rows: &'a Columnar<'_, N>,
    ) -> Result<(), PostgresError> {
        if rows.is_empty() { Ok(()) } else { self.one(statement, rows.parameters()).await }
    }

    pub(super) async fn one(
        &mut self,
        statement: &'static str,
        given: Vec<Parameter<'a>>,
    ) -> Result<(), PostgresError> {
        self.statements.push((self.session.prepare(statement).await?, given));
        Ok(())
    }

    /// In this order. After the first that fails the server refuses the rest; the first says why.
    pub(super) async fn send(self) -> Result<Sent, PostgresError> {
        let sent = self.statements.iter().map(|(statement, given)| async {
            if statement.columns().is_empty() {
                return Ok((self.session.execute(statement, given).await?, Vec::new()));
            }
            let rows = self.session.rows(statement, given).await?;
            Ok::<_, PostgresError>((rows.len() as u64, rows))
        });
        let mut all = Sent { last: 0, returned: Vec::new() };
        for one in futures::future::join_all(sent).await {
            let (touched, rows) = one?;
            all.last = touched;
            all.returned.extend(rows);
        }
        Ok(all)
    }
}
