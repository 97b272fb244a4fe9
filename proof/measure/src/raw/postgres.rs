//! Raw SQL on PostgreSQL: one prepared statement per table and kind of write, many rows at once, all of a transaction sent together.

use anyhow::{Context, Result};
use tokio::runtime::Handle;
use tokio_postgres::Client;

use super::pattern::{AGENDA_CHANGES, Pattern, Sink, state_column};
use super::rows::Many;
use crate::books::Row;

/// Statements are planned once, while the tables may be empty; as our store does.
const BY_INDEX: &str = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off";

/// The statements of a transaction.
pub struct Batch<'a> {
    runtime: &'a Handle,
    client: &'a Client,
    /// In the order in which they are sent: new rows, claims, other states, and last the facts.
    many: Vec<(Kind, Many)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Insert(&'static str),
    Claim,
    View(&'static str),
    Agenda,
}

impl<'a> Batch<'a> {
    pub fn new(runtime: &'a Handle, client: &'a Client, pattern: &Pattern) -> Result<Self> {
        let many = runtime.block_on(async {
            client.batch_execute(BY_INDEX).await?;
            let mut many = Vec::new();
            for table in pattern.tables().into_iter().chain(["agenda"]) {
                many.push((Kind::Insert(table), Many::insert(client, table).await?));
            }
            many.push((Kind::Claim, Many::update(client, "agenda", &AGENDA_CHANGES).await?));
            for table in pattern.tables() {
                let changes = ["id", state_column(table), "updated_at", "view"];
                many.push((Kind::View(table), Many::update(client, table, &changes).await?));
            }
            many.push((Kind::Agenda, Many::update(client, "agenda", &AGENDA_CHANGES).await?));
            for table in ["bodies", "facts"] {
                many.push((Kind::Insert(table), Many::insert(client, table).await?));
            }
            anyhow::Ok(many)
        })?;
        Ok(Self { runtime, client, many })
    }

    fn push(&mut self, kind: Kind, row: Row) -> Result<()> {
        let found = self.many.iter_mut().find(|(other, _)| *other == kind);
        found.context("the pattern has this table")?.1.push(row);
        Ok(())
    }
}

impl Sink for Batch<'_> {
    fn insert(&mut self, table: &'static str, row: Row) -> Result<()> {
        self.push(Kind::Insert(table), row)
    }

    fn view(&mut self, table: &'static str, row: Row) -> Result<()> {
        self.push(Kind::View(table), row)
    }

    fn agenda(&mut self, row: Row) -> Result<()> {
        self.push(Kind::Agenda, row)
    }

    fn claim(&mut self, row: Row) -> Result<()> {
        self.push(Kind::Claim, row)
    }

    fn commit(&mut self) -> Result<()> {
        let (client, many) = (self.client, &self.many);
        self.runtime.block_on(async {
            let (begun, written, committed) = futures::join!(
                client.batch_execute("BEGIN"),
                futures::future::join_all(many.iter().map(|(_, many)| many.send(client))),
                client.batch_execute("COMMIT"),
            );
            begun?;
            written.into_iter().collect::<Result<Vec<u64>, _>>()?;
            committed
        })?;
        self.many.iter_mut().for_each(|(_, many)| many.clear());
        Ok(())
    }
}
