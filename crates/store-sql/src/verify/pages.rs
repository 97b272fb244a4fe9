//! The pages of a verify: facts, and what is stored of the records that end among them, each page read at one moment.
//!
//! Bodies travel ahead of their page, a bounded number of bytes at a time. A row that cannot be read is told in its place.

use std::collections::BTreeMap;
use std::sync::mpsc::SyncSender;

use store::AgendaRow;

use crate::database::{Columns, Database, Ending, Purpose, Unfit, Value, bytes, digest, integer, one, text};
use crate::dialect::Sql;
use crate::rows::{agenda_columns, read_agenda};
use crate::walk::{FactPage, Place, next_page};

/// Bytes of bodies that travel together: one body more may be in memory at each end.
const BODY_BYTES_AHEAD: usize = 1_048_576;

/// What is sent to whoever compares.
pub(super) enum Message {
    /// Some bodies of the records that end in the next page.
    Bodies(Vec<StoredBody>),
    /// The page, after all of its bodies.
    Page(Page),
}

/// Facts, and what is stored of the records that end among them.
pub(super) struct Page {
    pub(super) facts: FactPage,
    pub(super) stored: Stored,
    /// The stream that the page before ended in has gone since.
    pub(super) retired: bool,
}

/// What is stored beside the facts, by record; what cannot be read says why.
#[derive(Default)]
pub(super) struct Stored {
    pub(super) views: BTreeMap<String, Result<StoredView, String>>,
    pub(super) agenda: BTreeMap<String, Result<StoredAgenda, String>>,
}

pub(super) struct StoredView {
    pub(super) view: String,
    pub(super) columns: Vec<Value>,
}

pub(super) struct StoredAgenda {
    pub(super) row: AgendaRow,
    pub(super) kind: String,
}

pub(super) struct StoredBody {
    pub(super) record: String,
    pub(super) content: Result<BodyContent, String>,
}

pub(super) struct BodyContent {
    pub(super) name: String,
    pub(super) sha256: [u8; 32],
    pub(super) bytes: Vec<u8>,
}

/// Reads the whole store and sends it, page by page; ends early when nobody compares any more.
pub(super) async fn read_pages<D: Database>(
    database: &D,
    send: &SyncSender<Message>,
) -> Result<(), D::Error> {
    let mut place = Place::default();
    let mut compared = String::new();
    loop {
        database.begin(Purpose::Read).await?;
        let page = read_page(database, &mut place, &mut compared, send).await;
        database.end(Ending::RollBack).await?;
        let page = page?;
        let last = page.facts.last;
        if send.send(Message::Page(page)).is_err() || last {
            return Ok(());
        }
    }
}

/// The records that end within the page: all but the last stream, which may go on in the next one. What is stored is read
/// from the stream compared last up to that one: a record made behind the walk is the next verify's to see.
async fn read_page<D: Database>(
    database: &D,
    place: &mut Place,
    compared: &mut String,
    send: &SyncSender<Message>,
) -> Result<Page, D::Error> {
    /// Above every id.
    const END: &str = "\u{10ffff}";
    let begun = place.stream().to_owned();
    let facts = next_page(database, place).await?;
    let goes_on = facts.facts.first().is_some_and(|fact| match fact {
        Ok(fact) => fact.stream == begun,
        Err(unreadable) => unreadable.stream == begun,
    });
    let retired = !begun.is_empty() && !goes_on && !has_facts(database, &begun).await?;
    let until = if facts.last { END.to_owned() } else { place.end() };
    let stored = Stored {
        views: views(database, compared, &until).await?,
        agenda: agenda(database, compared, &until).await?,
    };
    send_bodies(database, compared, &until, send).await?;
    *compared = until;
    Ok(Page { facts, stored, retired })
}

static HAS_FACTS: Sql = Sql::new("SELECT EXISTS (SELECT 1 FROM facts WHERE stream = $1)");

async fn has_facts<D: Database>(database: &D, stream: &str) -> Result<bool, D::Error> {
    let found = one(database, &HAS_FACTS, &[stream.into()], |row| integer(row, 0)).await?;
    Ok(found.unwrap_or_default() != 0)
}

static JOB_VIEWS: Sql = Sql::new(
    "SELECT id, view, state, updated_at, owner_peer_id, created_by_peer_id, session_id, circle FROM jobs \
     WHERE id >= $1 AND id < $2",
);
static OPERATION_VIEWS: Sql = Sql::new(
    "SELECT id, view, job_id, status, updated_at, orphaned_at FROM operations WHERE id >= $1 AND id < $2",
);

static RECORD_VIEWS: Sql = Sql::new(
    "SELECT id, view, kind, status, name, circle, key, began_at, updated_at FROM records \
     WHERE id >= $1 AND id < $2",
);

pub(super) async fn views<D: Database>(
    database: &D,
    from: &str,
    until: &str,
) -> Result<BTreeMap<String, Result<StoredView, String>>, D::Error> {
    let mut views = BTreeMap::new();
    for (sql, columns) in [(&JOB_VIEWS, 2..8), (&OPERATION_VIEWS, 2..6), (&RECORD_VIEWS, 2..9)] {
        let view = |row: &dyn Columns| -> Result<StoredView, Unfit> {
            let columns = columns.clone().map(|column| row.value(column)).collect::<Result<_, _>>()?;
            Ok(StoredView { view: text(row, 1)?, columns })
        };
        let read = |row: &dyn Columns| Ok((row.lossy(0), view(row).map_err(|unfit| unfit.to_string())));
        views.extend(database.query(sql, &[from.into(), until.into()], read).await?);
    }
    Ok(views)
}

static AGENDA: Sql = Sql::new(concat!(
    "SELECT record_id, kind, ",
    agenda_columns!(),
    " FROM agenda WHERE record_id >= $1 AND record_id < $2"
));

pub(super) async fn agenda<D: Database>(
    database: &D,
    from: &str,
    until: &str,
) -> Result<BTreeMap<String, Result<StoredAgenda, String>>, D::Error> {
    let stored = |row: &dyn Columns| -> Result<StoredAgenda, Unfit> {
        Ok(StoredAgenda { kind: text(row, 1)?, row: read_agenda(row, 2)? })
    };
    let read = |row: &dyn Columns| Ok((row.lossy(0), stored(row).map_err(|unfit| unfit.to_string())));
    Ok(database.query(&AGENDA, &[from.into(), until.into()], read).await?.into_iter().collect())
}

static BODIES: Sql = Sql::new(
    "SELECT record_id, name, sha256, bytes FROM bodies WHERE record_id >= $1 AND record_id < $2 \
     ORDER BY record_id",
);

/// Sent as they are read: all bodies of a page may be more than memory should hold.
pub(super) async fn send_bodies<D: Database>(
    database: &D,
    from: &str,
    until: &str,
    send: &SyncSender<Message>,
) -> Result<(), D::Error> {
    let content = |row: &dyn Columns| -> Result<BodyContent, Unfit> {
        Ok(BodyContent { name: text(row, 1)?, sha256: digest(row, 2)?, bytes: bytes(row, 3)?.to_vec() })
    };
    let mut together = Vec::new();
    let mut weight = 0;
    database
        .query(&BODIES, &[from.into(), until.into()], |row| {
            let content = content(row).map_err(|unfit| unfit.to_string());
            weight += content.as_ref().map_or(0, |content| content.bytes.len());
            together.push(StoredBody { record: row.lossy(0), content });
            if weight >= BODY_BYTES_AHEAD {
                weight = 0;
                // If nobody compares any more, the page after them says so.
                let _ = send.send(Message::Bodies(std::mem::take(&mut together)));
            }
            Ok(())
        })
        .await?;
    if !together.is_empty() {
        let _ = send.send(Message::Bodies(together));
    }
    Ok(())
}
