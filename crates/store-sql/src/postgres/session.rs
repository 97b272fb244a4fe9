//! One connection to the server: statements prepared once, every answer within a time limit, nothing hidden behind it.
//!
//! A session that was lost, or that did not answer in time, is never used again.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, pin_mut};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, NoTls, Notification, Row, Statement};

use super::address::PostgresAddress;
use super::failure::PostgresError;
use super::tls;
use crate::OpenError;
use crate::database::Given;

/// The server gives up a statement after this long ...
const STATEMENT_LIMIT: Duration = Duration::from_secs(30);
/// ... and a wait for a lock after this long: nobody holds one across anything but statements.
const LOCK_LIMIT: Duration = Duration::from_secs(10);
/// Whoever holds a transaction open and does nothing is dead: its locks go after this long.
const IDLE_LIMIT: Duration = Duration::from_secs(10);
/// What is acknowledged is synced, whatever the server, the database or the user was set to; whoever needs less says so by itself.
const SYNCED: &str = "SELECT set_config('synchronous_commit', 'local', false) WHERE current_setting('synchronous_commit') = 'off'";
/// A server that says nothing at all is given up after this long.
const ANSWER_LIMIT: Duration = Duration::from_secs(40);

/// A value for a statement.
pub(super) type Parameter<'a> = &'a (dyn ToSql + Sync);

/// One connection.
pub(crate) struct Session {
    client: Client,
    statements: Mutex<HashMap<&'static str, Statement>>,
    lost: AtomicBool,
    /// Whether a write was refused because the session may only read.
    read_only: AtomicBool,
    driver: JoinHandle<()>,
}

impl Session {
    /// Connects, and says in which terms. What the server tells besides goes to `notifications`.
    pub(super) async fn connect(
        address: &PostgresAddress,
        notifications: Option<mpsc::UnboundedSender<Notification>>,
    ) -> Result<Self, OpenError> {
        let failed = |error: tokio_postgres::Error| refused(address, error);
        let (client, driver) = match tls::connector(address)? {
            None => {
                let (client, connection) = address.config.connect(NoTls).await.map_err(failed)?;
                (client, tokio::spawn(drive(connection, notifications)))
            }
            Some(connector) => {
                let (client, connection) = address.config.connect(connector).await.map_err(failed)?;
                (client, tokio::spawn(drive(connection, notifications)))
            }
        };
        let session = Self {
            client,
            statements: Mutex::default(),
            lost: AtomicBool::new(false),
            read_only: AtomicBool::new(false),
            driver,
        };
        let settings = format!(
            "SET statement_timeout = {}; SET lock_timeout = {}; SET idle_in_transaction_session_timeout = {}; \
             SET standard_conforming_strings = on; SET client_min_messages = warning",
            STATEMENT_LIMIT.as_millis(),
            LOCK_LIMIT.as_millis(),
            IDLE_LIMIT.as_millis(),
        );
        let settings = format!("{settings}; {SYNCED}");
        session.run(&settings).await.map_err(|error| OpenError::refused(address, &error))?;
        Ok(session)
    }

    /// The same, for batches: everything that they touch they name. Statements are planned once, for any number of rows (a plan for
    /// just these rows costs the server more than carrying it out), while the tables may be empty; a plan that looks at all of a small
    /// table would be kept while it grows.
    pub(super) async fn connect_to_write(address: &PostgresAddress) -> Result<Self, OpenError> {
        let session = Self::connect(address, None).await?;
        let by_index = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; \
                        SET plan_cache_mode = force_generic_plan; SET jit = off";
        session.run(by_index).await.map_err(|error| OpenError::refused(address, &error))?;
        Ok(session)
    }

    /// Whether it must not be used again.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed) || self.client.is_closed()
    }

    /// Whether a new session may be able to write what this one could not.
    pub(super) fn is_read_only(&self) -> bool {
        self.read_only.load(Ordering::Relaxed)
    }

    /// Statements without values or rows.
    pub(super) async fn run(&self, statements: &str) -> Result<(), PostgresError> {
        self.within(self.client.batch_execute(statements)).await
    }

    /// The same, however long it takes: for a change of the schema, or of all views.
    pub(super) async fn run_without_limit(&self, statements: &str) -> Result<(), PostgresError> {
        self.client.batch_execute(statements).await.map_err(PostgresError::from)
    }

    /// A statement, prepared once.
    pub(super) async fn prepare(&self, text: &'static str) -> Result<Statement, PostgresError> {
        let known = self.statements.lock().expect("no holder of the lock panics").get(text).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.within(self.client.prepare(text)).await?;
        let mut statements = self.statements.lock().expect("no holder of the lock panics");
        statements.insert(text, statement.clone());
        Ok(statement)
    }

    /// Carries a statement out; how many rows it touched.
    pub(super) async fn execute(
        &self,
        statement: &Statement,
        given: &[Parameter<'_>],
    ) -> Result<u64, PostgresError> {
        self.within(self.client.execute(statement, given)).await
    }

    /// The rows of a statement.
    pub(super) async fn rows(
        &self,
        statement: &Statement,
        given: &[Parameter<'_>],
    ) -> Result<Vec<Row>, PostgresError> {
        self.within(self.client.query(statement, given)).await
    }

    /// Waits for a statement however long it takes: a lock that another node holds.
    pub(super) async fn wait_for(&self, statement: &Statement) -> Result<(), PostgresError> {
        self.client.query(statement, &[]).await.map(|_| ()).map_err(PostgresError::from)
    }

    /// The rows of a statement, each read as it comes.
    pub(super) async fn each_row<T, E: Into<PostgresError>>(
        &self,
        statement: &Statement,
        given: &[Parameter<'_>],
        mut read: impl FnMut(&Row) -> Result<T, E>,
    ) -> Result<Vec<T>, PostgresError> {
        let rows = self.within(self.client.query_raw(statement, given.iter().copied())).await?;
        pin_mut!(rows);
        let mut found = Vec::new();
        while let Some(row) = self.within(rows.try_next()).await? {
            found.push(read(&row).map_err(Into::into)?);
        }
        Ok(found)
    }

    /// The rows of a statement that is asked once, each given on as it comes.
    pub(super) async fn stream<E: From<PostgresError>>(
        &self,
        text: &str,
        mut take: impl FnMut(&Row) -> Result<(), E>,
    ) -> Result<(), E> {
        let statement = self.within(self.client.prepare(text)).await?;
        let rows = self.client.query_raw(&statement, std::iter::empty::<Parameter<'_>>());
        let rows = rows.await.map_err(PostgresError::from)?;
        pin_mut!(rows);
        while let Some(row) = rows.try_next().await.map_err(PostgresError::from)? {
            take(&row)?;
        }
        Ok(())
    }

    /// Begins to take rows into a table, however many they are.
    pub(super) async fn copy_in(&self, text: &str, kinds: &[Type]) -> Result<CopyIn, PostgresError> {
        let sink = self.within(self.client.copy_in(text)).await?;
        Ok(CopyIn { writer: Box::pin(BinaryCopyInWriter::new(sink, kinds)) })
    }

    async fn within<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, PostgresError> {
        let answer = match tokio::time::timeout(ANSWER_LIMIT, answer).await {
            Ok(answer) => answer.map_err(PostgresError::from),
            Err(_) => Err(PostgresError::Lost("the server does not answer".to_owned())),
        };
        match &answer {
            Err(PostgresError::Lost(_)) => self.lost.store(true, Ordering::Relaxed),
            Err(error) if error.is_of_the_session() => self.read_only.store(true, Ordering::Relaxed),
            Err(_) | Ok(_) => {}
        }
        answer
    }
}

/// Rows on their way into a table.
pub(super) struct CopyIn {
    writer: Pin<Box<BinaryCopyInWriter>>,
}

impl CopyIn {
    pub(super) async fn write(&mut self, row: &[Given<'_>]) -> Result<(), PostgresError> {
        let row = row.iter().map(|value| value as Parameter<'_>);
        self.writer.as_mut().write_raw(row).await.map_err(PostgresError::from)
    }

    /// All of them are there.
    pub(super) async fn finish(mut self) -> Result<(), PostgresError> {
        self.writer.as_mut().finish().await.map(|_| ()).map_err(PostgresError::from)
    }
}

/// A connection with nothing of ours but that it syncs too: for whoever measures the server itself.
pub(super) async fn bare(address: &PostgresAddress) -> Result<Client, OpenError> {
    let failed = |error: tokio_postgres::Error| refused(address, error);
    let client = match tls::connector(address)? {
        None => {
            let (client, connection) = address.config.connect(NoTls).await.map_err(failed)?;
            tokio::spawn(drive(connection, None));
            client
        }
        Some(connector) => {
            let (client, connection) = address.config.connect(connector).await.map_err(failed)?;
            tokio::spawn(drive(connection, None));
            client
        }
    };
    client.batch_execute(SYNCED).await.map_err(failed)?;
    Ok(client)
}

impl Drop for Session {
    /// What was asked and not answered is given up with the connection.
    fn drop(&mut self) {
        self.driver.abort();
    }
}

async fn drive<S, T>(
    mut connection: tokio_postgres::Connection<S, T>,
    notifications: Option<mpsc::UnboundedSender<Notification>>,
) where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let mut messages = futures::stream::poll_fn(move |context| connection.poll_message(context));
    while let Some(message) = messages.next().await {
        match message {
            Ok(AsyncMessage::Notification(notification)) => {
                if let Some(notifications) = &notifications {
                    // Whoever listened has gone: then nobody is told.
                    let _ = notifications.send(notification);
                }
            }
            Ok(_) => {}
            // Whoever waits for an answer is told by the answer.
            Err(_) => return,
        }
    }
}

/// Why a server cannot be spoken to, and what to do about it.
fn refused(address: &PostgresAddress, error: tokio_postgres::Error) -> OpenError {
    if error.as_db_error().is_none() {
        let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
        let (address, reason) = (address.to_string(), format!("{error}{}", source.unwrap_or_default()));
        // The driver tells these apart in words alone.
        return if reason.contains("TLS") {
            OpenError::Encryption { address, reason }
        } else if reason.contains("password missing") {
            OpenError::Rights { address, reason }
        } else {
            OpenError::Unreachable { address, reason }
        };
    }
    OpenError::refused(address, &PostgresError::from(error))
}
