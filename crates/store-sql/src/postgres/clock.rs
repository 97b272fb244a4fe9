//! The time of a store that nodes share: the correction of the server's clock, and what nodes see of it.
//!
//! A step is adopted while nobody else writes to the agenda: whoever comes after reads the steps after it has locked its rows, and is
//! carried over the step.

use std::sync::Arc;

use domain::timeline::{Anchor, Step};
use domain::{RecordId, RecordKind, Timestamp};
use store::{
    ClockStore, Correction, DuePlace, Reply, SILENT_AFTER_SECONDS, SeenSteps, StoreClock, StoreError,
};
use tokio_postgres::Row;

use super::PostgresStore;
use super::failure::PostgresError;
use super::session::Session;
use crate::clock;
use crate::database::{Columns, Unfit, text};
use crate::request::ClockRequest;

/// Begins a change of the clock. Batches lock rows of the agenda first, and wait here.
const ALONE: &str = "BEGIN; LOCK TABLE agenda IN EXCLUSIVE MODE";

impl ClockStore for PostgresStore {
    fn clock(&self) -> Reply<'_, StoreClock> {
        let read =
            |session: Arc<Session>| async move { clock::clock(&*session).await.map_err(PostgresError::told) };
        Box::pin(self.pool.read(read))
    }

    fn keep_clock(&self, anchor: Anchor, step: Option<Step>) -> Reply<'_, ()> {
        Box::pin(async move {
            let request = &ClockRequest { anchor, step };
            let keep = |session: Arc<Session>| async move {
                alone(&session, async { clock::keep(&*session, request).await.map(|_| ()) }).await
            };
            let kept = self.pool.read(keep).await;
            self.recent.forget_all();
            kept
        })
    }

    fn due_between(
        &self,
        kind: RecordKind,
        after: DuePlace,
        until: Timestamp,
        limit: usize,
    ) -> Reply<'_, Vec<(Timestamp, RecordId)>> {
        Box::pin(async move {
            let after = &after;
            let read = |session: Arc<Session>| async move {
                clock::due_between(&*session, kind, after, until, limit).await
            };
            self.pool.read(read).await
        })
    }
}

/// Changes the correction, if nothing was changed since it was decided.
pub(super) async fn correct(session: &Session, correction: &Correction) -> Result<bool, StoreError> {
    alone(session, clock::correct(session, correction)).await
}

async fn alone<T>(
    session: &Session,
    change: impl Future<Output = Result<T, PostgresError>>,
) -> Result<T, StoreError> {
    let changed = async {
        session.run(ALONE).await?;
        let changed = change.await?;
        session.run("COMMIT").await?;
        Ok::<_, PostgresError>(changed)
    };
    let changed = changed.await;
    if changed.is_err() {
        // On a connection that is lost there is nothing to roll back.
        let _ = session.run("ROLLBACK").await;
    }
    changed.map_err(PostgresError::told)
}

const SEE: &str = "INSERT INTO meta (name, value) VALUES ($1::text, $2::bigint) \
     ON CONFLICT (name) DO UPDATE SET value = excluded.value";
const SEE_NONE: &str = "DELETE FROM meta WHERE name = $1::text";
const SEEN: &str = "SELECT nodes.id, meta.value FROM nodes LEFT JOIN meta ON meta.name = $1::text || nodes.id \
     WHERE nodes.heartbeat_at >= (SELECT max(heartbeat_at) FROM nodes) - $2::bigint";

/// Writes down what a node sees, and reads what those that live see.
pub(super) async fn see_step(
    session: &Session,
    node_id: &str,
    by_micros: Option<i64>,
) -> Result<SeenSteps, PostgresError> {
    let name = format!("{}{node_id}", clock::SEEN);
    match by_micros {
        Some(by_micros) => {
            let statement = session.prepare(SEE).await?;
            Session::execute(session, &statement, &[&name, &by_micros]).await?;
        }
        None => {
            let statement = session.prepare(SEE_NONE).await?;
            Session::execute(session, &statement, &[&name]).await?;
        }
    }
    let lately = i64::try_from(SILENT_AFTER_SECONDS).unwrap_or(i64::MAX).saturating_mul(1_000_000);
    let statement = session.prepare(SEEN).await?;
    let read = |row: &Row| Ok::<_, Unfit>((text(row, 0)?, Columns::integer(row, 1)?));
    let nodes = session.each_row(&statement, &[&clock::SEEN, &lately], read).await?;
    let live_nodes = nodes.len();
    Ok(SeenSteps { live_nodes, seen_micros: nodes.into_iter().filter_map(|(_, seen)| seen).collect() })
}
