//! Rebuild: views and agenda written anew from the facts, in one transaction, or not at all.
//!
//! Claims are not in the facts: the ones that are there stay. A record without an agenda row gets one whose claim version is
//! above any that was ever given, so that no old owner is let in.

use domain::attention::Retention;
use domain::{Claim, Lease, OwnerId, Timestamp};
use store::{AgendaRow, StoreError, VIEW_FORMAT, encode_view, seal_view};

use crate::agenda::{AGENDA_ROW, INSERT_AGENDA, UPDATE_AGENDA};
use crate::database::{Database, Ending, Purpose, integer, one};
use crate::dialect::Sql;
use crate::floor::{keep_time, newest_fact};
use crate::rows::{ViewValues, agenda_values, new_agenda_values, read_agenda};
use crate::views::{INSERT_JOB, INSERT_OPERATION, INSERT_RECORD};
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
pub(crate) async fn rebuild<D: Database>(
    database: &D,
    retention: Retention,
    now: Timestamp,
) -> Result<Rebuilt, StoreError> {
    database.begin(Purpose::Rebuild).await.map_err(D::read_failed)?;
    let rebuilt = write_all(database, retention, now).await;
    let ending = if rebuilt.is_ok() { Ending::Commit } else { Ending::RollBack };
    if let Err(error) = database.end(ending).await {
        // It may be open still; whether this works says nothing more.
        let _ = database.end(Ending::RollBack).await;
        return Err(D::read_failed(error));
    }
    rebuilt
}

static DROP_JOBS: Sql = Sql::new("DELETE FROM jobs");
static DROP_OPERATIONS: Sql = Sql::new("DELETE FROM operations");
static DROP_RECORDS: Sql = Sql::new("DELETE FROM records");

async fn write_all<D: Database>(
    database: &D,
    retention: Retention,
    now: Timestamp,
) -> Result<Rebuilt, StoreError> {
    // The agenda is written at this time: not before anything that it is about.
    let now = now.max(newest_fact(database).await.map_err(D::read_failed)?);
    let mut newest = Timestamp::default();
    for statement in [&DROP_JOBS, &DROP_OPERATIONS, &DROP_RECORDS] {
        database.execute(statement, &[]).await.map_err(D::read_failed)?;
    }
    let mut rebuilt = Rebuilt::default();
    let mut place = Place::default();
    let mut open: Option<Stream> = None;
    loop {
        let page = next_page(database, &mut place).await.map_err(D::read_failed)?;
        for fact in &page.facts {
            let fact = fact.as_ref().map_err(|unreadable| damaged(&unreadable.stream, &unreadable.what))?;
            if open.as_ref().is_none_or(|stream| stream.id.as_str() != fact.stream) {
                if let Some(done) = open.take() {
                    write(database, &done, retention, now).await?;
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
        write(database, &done, retention, now).await?;
        rebuilt.records += 1;
    }
    database.execute(&DROP_STRAY_AGENDA, &[]).await.map_err(D::read_failed)?;
    database.count_anew().await.map_err(D::read_failed)?;
    keep_time(database, newest).await.map_err(D::read_failed)?;
    database.execute(&SET_VIEW_FORMAT, &[VIEW_FORMAT.into()]).await.map_err(D::read_failed)?;
    Ok(rebuilt)
}

static DROP_STRAY_AGENDA: Sql =
    Sql::new("DELETE FROM agenda WHERE NOT EXISTS (SELECT 1 FROM facts WHERE stream = record_id)");
static SET_VIEW_FORMAT: Sql = Sql::new(
    "INSERT INTO meta (name, value) VALUES ('view_format', $1) \
     ON CONFLICT (name) DO UPDATE SET value = excluded.value",
);

/// Writes one record, or says what is damaged.
async fn write<D: Database>(
    database: &D,
    stream: &Stream,
    retention: Retention,
    now: Timestamp,
) -> Result<(), StoreError> {
    let Some(record) = &stream.record else { return Ok(()) };
    let view = seal_view(&stream.id, stream.head, encode_view(record));
    match ViewValues::of(&stream.id, record, &view) {
        ViewValues::Job(values) => database.execute(&INSERT_JOB, &values).await,
        ViewValues::Operation(values) => database.execute(&INSERT_OPERATION, &values).await,
        ViewValues::Record(values) => database.execute(&INSERT_RECORD, &values).await,
    }
    .map_err(D::read_failed)?;
    let entry = record.schedule(retention).entry(now);
    let found = one(database, &AGENDA_ROW, &[stream.id.as_str().into()], |row| read_agenda(row, 0)).await;
    if let Some(mut row) = found.map_err(D::read_failed)? {
        let beyond = row.head.version > stream.head.version;
        let beside = row.head.version == stream.head.version && row.head.checksum != stream.head.checksum;
        if beyond || beside {
            // The agenda remembers facts that are not there any more: that is a loss, and not ours to cover up.
            let what = format!("its agenda stands at {:?}, its facts end at {:?}", row.head, stream.head);
            return Err(damaged(stream.id.as_str(), &what));
        }
        row.commit(stream.head, entry, now, Lease::DEFAULT);
        let written = database.execute(&UPDATE_AGENDA, &agenda_values(&stream.id, &row)).await;
        return written.map(|_| ()).map_err(D::read_failed);
    }
    let mut row = AgendaRow::new(stream.head, entry, now, Lease::DEFAULT);
    row.claim = Some(Claim {
        owner: OwnerId::new("rebuild"),
        lease_expires_at: now,
        heartbeat_at: now,
        // Counts stay far below microseconds since 1970.
        claim_version: u64::try_from(now.micros()).unwrap_or_default(),
    });
    let written = database.execute(&INSERT_AGENDA, &new_agenda_values(&stream.id, &row)).await;
    written.map(|_| ()).map_err(D::read_failed)
}

static VIEW_FORMAT_OF: Sql = Sql::new("SELECT value FROM meta WHERE name = 'view_format'");

/// The format of the views that are there; none before the first.
pub(crate) async fn view_format<D: Database>(database: &D) -> Result<Option<i64>, D::Error> {
    one(database, &VIEW_FORMAT_OF, &[], |row| integer(row, 0)).await
}

fn damaged(stream: &str, what: &str) -> StoreError {
    StoreError::Broken(format!("{stream}: {what}"))
}
