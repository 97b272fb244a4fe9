//! Rebuild: views and agenda written anew from the facts, in one transaction, or not at all.
//!
//! Claims are not in the facts: the ones that are there stay. A record without an agenda row gets one whose claim version is
//! above any that was ever given, so that no old owner is let in.

use domain::attention::{Retention, attention};
use domain::{Claim, Lease, OwnerId, Timestamp};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};
use store::{AgendaRow, StoreError, VIEW_FORMAT, encode_view};

use crate::dialect::Sql;
use crate::floor::{keep_time, newest_fact};
use crate::sqlite::{Failure, agenda_row, insert_agenda, insert_view, locked, update_agenda};
use crate::walk::{Place, Stream, next_page};

/// What was rebuilt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rebuilt {
    /// Facts read.
    pub facts: u64,
    /// Records written.
    pub records: u64,
}

/// Writes every view and the agenda anew. If any stream is damaged nothing is changed, and the error names it.
pub fn rebuild(
    connection: &mut Connection,
    retention: Retention,
    now: Timestamp,
) -> Result<Rebuilt, StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    // The agenda is written at this time: not before anything that it is about.
    let now = now.max(newest_fact(&transaction).map_err(failed)?);
    let mut newest = Timestamp::default();
    transaction.execute_batch("DELETE FROM jobs; DELETE FROM operations").map_err(failed)?;
    let mut rebuilt = Rebuilt::default();
    let mut place = Place::default();
    let mut open: Option<Stream> = None;
    loop {
        let page = next_page(&transaction, &mut place).map_err(failed)?;
        for fact in &page.facts {
            let fact = fact.as_ref().map_err(|unreadable| damaged(&unreadable.stream, &unreadable.what))?;
            if open.as_ref().is_none_or(|stream| stream.id.as_str() != fact.stream) {
                if let Some(done) = open.take() {
                    write(&transaction, &done, retention, now)
                        .map_err(failed)?
                        .map_err(|what| damaged(done.id.as_str(), &what))?;
                    rebuilt.records += 1;
                }
                open = Some(Stream::begin(&fact.stream).map_err(|what| damaged(&fact.stream, &what))?);
            }
            if let Some(stream) = &mut open {
                stream.fold(fact).map_err(|what| damaged(&fact.stream, &what))?;
            }
            rebuilt.facts += 1;
            newest = newest.max(fact.at);
        }
        if page.last {
            break;
        }
    }
    if let Some(done) = open {
        write(&transaction, &done, retention, now)
            .map_err(failed)?
            .map_err(|what| damaged(done.id.as_str(), &what))?;
        rebuilt.records += 1;
    }
    transaction.execute(DROP_STRAY_AGENDA.sqlite(), []).map_err(failed)?;
    keep_time(&transaction, newest).map_err(failed)?;
    transaction.execute(SET_VIEW_FORMAT.sqlite(), [VIEW_FORMAT]).map_err(failed)?;
    transaction.commit().map_err(failed)?;
    Ok(rebuilt)
}

static DROP_STRAY_AGENDA: Sql =
    Sql::new("DELETE FROM agenda WHERE NOT EXISTS (SELECT 1 FROM facts WHERE stream = record_id)");
static SET_VIEW_FORMAT: Sql = Sql::new(
    "INSERT INTO meta (name, value) VALUES ('view_format', $1) \
     ON CONFLICT (name) DO UPDATE SET value = excluded.value",
);

/// Writes one record. The outer error is the database's, the inner one says what is damaged.
fn write(
    connection: &Connection,
    stream: &Stream,
    retention: Retention,
    now: Timestamp,
) -> rusqlite::Result<Result<(), String>> {
    let Some(record) = &stream.record else { return Ok(Ok(())) };
    insert_view(connection, record, &stream.id, &encode_view(record))?;
    let entry = attention(record, retention).entry(now);
    if let Some(mut row) = agenda_row(connection, &stream.id)? {
        let beyond = row.head.version > stream.head.version;
        let beside = row.head.version == stream.head.version && row.head.checksum != stream.head.checksum;
        if beyond || beside {
            // The agenda remembers facts that are not there any more: that is a loss, and not ours to cover up.
            return Ok(Err(format!(
                "its agenda stands at {:?}, its facts end at {:?}",
                row.head, stream.head
            )));
        }
        row.commit(stream.head, entry, now, Lease::DEFAULT);
        return update_agenda(connection, &stream.id, &row).map(Ok);
    }
    let mut row = AgendaRow::new(stream.head, entry, now, Lease::DEFAULT);
    row.claim = Some(Claim {
        owner: OwnerId::new("rebuild"),
        lease_expires_at: now,
        heartbeat_at: now,
        // Counts stay far below microseconds since 1970.
        claim_version: u64::try_from(now.micros()).unwrap_or_default(),
    });
    insert_agenda(connection, &stream.id, &row).map(Ok)
}

static VIEW_FORMAT_OF: Sql = Sql::new("SELECT value FROM meta WHERE name = 'view_format'");

/// The format of the views that are there; none before the first.
pub(crate) fn view_format(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    connection.query_row(VIEW_FORMAT_OF.sqlite(), [], |row| row.get(0)).optional()
}

/// What the caller is told when the database fails.
fn failed(error: rusqlite::Error) -> StoreError {
    match Failure::from(error) {
        Failure::Full | Failure::FullInDoubt => StoreError::Full,
        Failure::Locked => locked(),
        Failure::Fatal(reason) | Failure::Statement(reason) => StoreError::Broken(reason),
    }
}

fn damaged(stream: &str, what: &str) -> StoreError {
    StoreError::Broken(format!("{stream}: {what}"))
}
