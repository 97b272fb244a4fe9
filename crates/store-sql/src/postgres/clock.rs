//! The time of a store that nodes share: the correction of the server's clock, and what nodes see of it.
//!
//! A step is adopted while nobody else writes to the agenda: whoever comes after reads the steps after it has locked its rows, and is
//! carried over the step.

use domain::timeline::Anchor;
use store::{Correction, MAX_NODES, SideWrite, Sight, StoreError};
use tokio_postgres::Row;

use super::failure::PostgresError;
use super::session::Session;
use crate::clock;
use crate::database::{Columns, Unfit, text};
use crate::rows::{signed, time};
use crate::side_writes;

/// Begins a change of the clock. Batches lock rows of the agenda first, and wait here: it is not looked at as a whole, whatever is due.
const ALONE: &str = "BEGIN; SET LOCAL enable_seqscan = off; LOCK TABLE agenda IN EXCLUSIVE MODE";

/// Keeps where the time stands, or how far timers were moved.
pub(super) async fn change(session: &Session, write: &SideWrite) -> Result<bool, StoreError> {
    alone(session, side_writes::carry_out(session, write)).await?
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

const KEEP_NUMBER: &str = "INSERT INTO meta (name, value) VALUES ($1::text, $2::bigint) \
     ON CONFLICT (name) DO UPDATE SET value = excluded.value";
// The offset of a machine is the time at which it was started: those that were started last are kept.
const FORGET_ANCHORS: &str = "DELETE FROM meta WHERE name >= 'clock_anchor_' AND name < 'clock_anchor`' AND name NOT IN (\
     SELECT name FROM meta WHERE name >= 'clock_anchor_' AND name < 'clock_anchor`' ORDER BY value DESC LIMIT $1::bigint)";
const SEE_NONE: &str = "DELETE FROM meta WHERE name = $1::text";
const SIGHTS: &str = "SELECT nodes.id, nodes.heartbeat_at, meta.value FROM nodes \
     LEFT JOIN meta ON meta.name = $1::text || nodes.id ORDER BY nodes.id";

/// Keeps where the time stands to the clock of a machine.
pub(super) async fn keep_anchor(
    session: &Session,
    anchor: Anchor,
    revision: i64,
) -> Result<(), PostgresError> {
    let name = clock::anchor_name(anchor.boot, revision);
    let statement = session.prepare(KEEP_NUMBER).await?;
    Session::execute(session, &statement, &[&name, &anchor.offset_micros]).await?;
    let statement = session.prepare(FORGET_ANCHORS).await?;
    Session::execute(session, &statement, &[&signed(MAX_NODES as u64)]).await?;
    Ok(())
}

/// Writes down what a node sees, and reads what all have written down. Which of them live is not for this clock to say.
pub(super) async fn see_step(
    session: &Session,
    node_id: &str,
    by_micros: Option<i64>,
) -> Result<Vec<Sight>, PostgresError> {
    let name = format!("{}{node_id}", clock::SEEN);
    match by_micros {
        Some(by_micros) => {
            let statement = session.prepare(KEEP_NUMBER).await?;
            Session::execute(session, &statement, &[&name, &by_micros]).await?;
        }
        None => {
            let statement = session.prepare(SEE_NONE).await?;
            Session::execute(session, &statement, &[&name]).await?;
        }
    }
    sights(session).await
}

/// What all have written down.
pub(super) async fn sights(session: &Session) -> Result<Vec<Sight>, PostgresError> {
    let statement = session.prepare(SIGHTS).await?;
    let read = |row: &Row| {
        Ok::<_, Unfit>(Sight {
            node_id: text(row, 0)?,
            heartbeat_at: time(row, 1)?,
            by_micros: Columns::integer(row, 2)?,
        })
    };
    session.each_row(&statement, &[&clock::SEEN], read).await
}
