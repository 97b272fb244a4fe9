//! The pages of a verify: facts, and what is stored of the records that end among them, each page read at one moment.
//!
//! Bodies travel ahead of their page, a bounded number of bytes at a time. A row that cannot be read is told in its place.

use std::collections::BTreeMap;
use std::sync::mpsc::SyncSender;

use rusqlite::types::Value;
use rusqlite::{Connection, Row, params};
use store::AgendaRow;

use crate::dialect::Sql;
use crate::rows::{agenda_columns, lossy, read_agenda, unless_undecodable};
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
pub(super) fn read_pages(connection: &Connection, send: &SyncSender<Message>) -> rusqlite::Result<()> {
    let mut place = Place::default();
    let mut compared = String::new();
    loop {
        connection.execute_batch("BEGIN")?;
        let page = read_page(connection, &mut place, &mut compared, send);
        connection.execute_batch("ROLLBACK")?;
        let page = page?;
        let last = page.facts.last;
        if send.send(Message::Page(page)).is_err() || last {
            return Ok(());
        }
    }
}

/// The records that end within the page: all but the last stream, which may go on in the next one. What is stored is read
/// from the stream compared last up to that one: a record made behind the walk is the next verify's to see.
fn read_page(
    connection: &Connection,
    place: &mut Place,
    compared: &mut String,
    send: &SyncSender<Message>,
) -> rusqlite::Result<Page> {
    /// Above every id.
    const END: &str = "\u{10ffff}";
    let begun = place.stream().to_owned();
    let facts = next_page(connection, place)?;
    let goes_on = facts.facts.first().is_some_and(|fact| match fact {
        Ok(fact) => fact.stream == begun,
        Err(unreadable) => unreadable.stream == begun,
    });
    let retired = !begun.is_empty() && !goes_on && !has_facts(connection, &begun)?;
    let until = if facts.last { END.to_owned() } else { place.end() };
    let stored =
        Stored { views: views(connection, compared, &until)?, agenda: agenda(connection, compared, &until)? };
    send_bodies(connection, compared, &until, send)?;
    *compared = until;
    Ok(Page { facts, stored, retired })
}

static HAS_FACTS: Sql = Sql::new("SELECT EXISTS (SELECT 1 FROM facts WHERE stream = $1)");

fn has_facts(connection: &Connection, stream: &str) -> rusqlite::Result<bool> {
    connection.prepare_cached(HAS_FACTS.sqlite())?.query_row([stream], |row| row.get(0))
}

static JOB_VIEWS: Sql = Sql::new(
    "SELECT id, view, state, updated_at, owner_peer_id, created_by_peer_id, session_id, circle FROM jobs \
     WHERE id >= $1 AND id < $2",
);
static OPERATION_VIEWS: Sql = Sql::new(
    "SELECT id, view, job_id, status, updated_at, orphaned_at FROM operations WHERE id >= $1 AND id < $2",
);

fn views(
    connection: &Connection,
    from: &str,
    until: &str,
) -> rusqlite::Result<BTreeMap<String, Result<StoredView, String>>> {
    let mut views = BTreeMap::new();
    for (sql, columns) in [(&JOB_VIEWS, 2..8), (&OPERATION_VIEWS, 2..6)] {
        let view = |row: &Row<'_>| {
            let columns = columns.clone().map(|column| row.get(column)).collect::<Result<_, _>>()?;
            Ok(StoredView { view: row.get(1)?, columns })
        };
        let mut statement = connection.prepare_cached(sql.sqlite())?;
        let mut rows = statement.query(params![from, until])?;
        while let Some(row) = rows.next()? {
            views.insert(lossy(row, 0), unless_undecodable(view(row))?);
        }
    }
    Ok(views)
}

static AGENDA: Sql = Sql::new(concat!(
    "SELECT record_id, kind, ",
    agenda_columns!(),
    " FROM agenda WHERE record_id >= $1 AND record_id < $2"
));

fn agenda(
    connection: &Connection,
    from: &str,
    until: &str,
) -> rusqlite::Result<BTreeMap<String, Result<StoredAgenda, String>>> {
    let stored = |row: &Row<'_>| Ok(StoredAgenda { kind: row.get(1)?, row: read_agenda(row, 2)? });
    let mut agenda = BTreeMap::new();
    let mut statement = connection.prepare_cached(AGENDA.sqlite())?;
    let mut rows = statement.query(params![from, until])?;
    while let Some(row) = rows.next()? {
        agenda.insert(lossy(row, 0), unless_undecodable(stored(row))?);
    }
    Ok(agenda)
}

static BODIES: Sql = Sql::new(
    "SELECT record_id, name, sha256, bytes FROM bodies WHERE record_id >= $1 AND record_id < $2 \
     ORDER BY record_id",
);

fn send_bodies(
    connection: &Connection,
    from: &str,
    until: &str,
    send: &SyncSender<Message>,
) -> rusqlite::Result<()> {
    let content =
        |row: &Row<'_>| Ok(BodyContent { name: row.get(1)?, sha256: row.get(2)?, bytes: row.get(3)? });
    let mut statement = connection.prepare_cached(BODIES.sqlite())?;
    let mut rows = statement.query(params![from, until])?;
    let mut together = Vec::new();
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let content = unless_undecodable(content(row))?;
        bytes += content.as_ref().map_or(0, |content| content.bytes.len());
        together.push(StoredBody { record: lossy(row, 0), content });
        if bytes >= BODY_BYTES_AHEAD {
            bytes = 0;
            // If nobody compares any more, the page after them says so.
            let _ = send.send(Message::Bodies(std::mem::take(&mut together)));
        }
    }
    if !together.is_empty() {
        let _ = send.send(Message::Bodies(together));
    }
    Ok(())
}
