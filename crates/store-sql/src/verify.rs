//! Verify: every view, column, agenda row, checksum and body compared with what the facts say.
//!
//! It reads a page at a time, each in one short transaction, and may run beside a daemon. One thread reads while another folds.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::mpsc;

use domain::attention::{Holding, Retention, attention};
use domain::{Record, Timestamp};
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params};
use store::{AgendaRow, JobColumns, OperationColumns, encode_view, sha256};

use crate::dialect::Sql;
use crate::rows::{agenda_columns, read_agenda};
use crate::walk::{FactPage, Place, Stream, next_page};

/// Differences that are kept with their text; more are only counted.
const KEPT_DIFFERENCES: usize = 100;
/// Pages that may be read ahead.
const PAGES_AHEAD: usize = 4;

/// What was verified, and what differs.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    /// Facts read.
    pub facts: u64,
    /// Records compared.
    pub records: u64,
    /// How many differences there are.
    pub difference_count: u64,
    /// The first of them.
    pub differences: Vec<Difference>,
}

/// One thing that is not as the facts say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The record.
    pub record: String,
    /// What differs.
    pub what: String,
}

/// One short read: facts, and what is stored of the records that end among them.
struct Page {
    facts: FactPage,
    stored: Stored,
    /// The stream that the page before ended in has gone since.
    retired: bool,
}

/// What is stored beside the facts, by record.
#[derive(Default)]
struct Stored {
    views: BTreeMap<String, StoredView>,
    agenda: BTreeMap<String, AgendaRow>,
    bodies: Vec<StoredBody>,
}

struct StoredView {
    columns: Vec<Value>,
    view: String,
}

struct StoredBody {
    record: String,
    name: String,
    sha256: [u8; 32],
    bytes: Vec<u8>,
}

/// Walks the whole store.
pub fn verify(connection: &Connection) -> rusqlite::Result<Verified> {
    let (send, receive) = mpsc::sync_channel(PAGES_AHEAD);
    std::thread::scope(|scope| {
        let judge = scope.spawn(move || judge(receive));
        let read = read_pages(connection, &send);
        drop(send);
        let verified = judge.join().expect("comparing does not panic");
        read.map(|()| verified)
    })
}

fn read_pages(connection: &Connection, send: &mpsc::SyncSender<Page>) -> rusqlite::Result<()> {
    let mut place = Place::default();
    let mut compared = String::new();
    loop {
        connection.execute_batch("BEGIN")?;
        let page = read_page(connection, &mut place, &mut compared);
        connection.execute_batch("ROLLBACK")?;
        let page = page?;
        let last = page.facts.last;
        if send.send(page).is_err() || last {
            return Ok(());
        }
    }
}

/// The records that end within the page: all but the last stream, which may go on in the next one. What is stored is read
/// from the stream compared last up to that one: a record made behind the walk is the next verify's to see.
fn read_page(connection: &Connection, place: &mut Place, compared: &mut String) -> rusqlite::Result<Page> {
    /// Above every id.
    const END: &str = "\u{10ffff}";
    let begun = place.stream().to_owned();
    let facts = next_page(connection, place)?;
    let goes_on = facts.facts.first().is_some_and(|fact| fact.stream == begun);
    let retired = !begun.is_empty() && !goes_on && !has_facts(connection, &begun)?;
    let until = match facts.facts.last() {
        Some(open) if !facts.last => open.stream.clone(),
        Some(_) | None => END.to_owned(),
    };
    let stored = Stored {
        views: views(connection, compared, &until)?,
        agenda: agenda(connection, compared, &until)?,
        bodies: bodies(connection, compared, &until)?,
    };
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

fn views(connection: &Connection, from: &str, until: &str) -> rusqlite::Result<BTreeMap<String, StoredView>> {
    let mut views = BTreeMap::new();
    for (sql, columns) in [(&JOB_VIEWS, 2..8), (&OPERATION_VIEWS, 2..6)] {
        let mut statement = connection.prepare_cached(sql.sqlite())?;
        let mut rows = statement.query(params![from, until])?;
        while let Some(row) = rows.next()? {
            let columns = columns.clone().map(|column| row.get(column)).collect::<Result<_, _>>()?;
            views.insert(row.get(0)?, StoredView { columns, view: row.get(1)? });
        }
    }
    Ok(views)
}

static AGENDA: Sql = Sql::new(concat!(
    "SELECT record_id, ",
    agenda_columns!(),
    " FROM agenda WHERE record_id >= $1 AND record_id < $2"
));

fn agenda(connection: &Connection, from: &str, until: &str) -> rusqlite::Result<BTreeMap<String, AgendaRow>> {
    let with_id = |row: &Row<'_>| Ok((row.get(0)?, read_agenda(row, 1)?));
    connection.prepare_cached(AGENDA.sqlite())?.query_map(params![from, until], with_id)?.collect()
}

static BODIES: Sql =
    Sql::new("SELECT record_id, name, sha256, bytes FROM bodies WHERE record_id >= $1 AND record_id < $2");

fn bodies(connection: &Connection, from: &str, until: &str) -> rusqlite::Result<Vec<StoredBody>> {
    let body = |row: &Row<'_>| {
        Ok(StoredBody { record: row.get(0)?, name: row.get(1)?, sha256: row.get(2)?, bytes: row.get(3)? })
    };
    connection.prepare_cached(BODIES.sqlite())?.query_map(params![from, until], body)?.collect()
}

/// Folds page after page and compares each record where its stream ends.
fn judge(pages: mpsc::Receiver<Page>) -> Verified {
    let mut verified = Verified::default();
    let mut open: Option<Result<Stream, String>> = None;
    for Page { facts: page, mut stored, retired } in pages {
        if retired {
            open = None;
        }
        for fact in &page.facts {
            verified.facts += 1;
            let goes_on = match &open {
                Some(Ok(stream)) => stream.id.as_str() == fact.stream,
                Some(Err(damaged)) => *damaged == fact.stream,
                None => false,
            };
            if !goes_on {
                verified.close(open.take(), &mut stored);
                open = Some(Stream::begin(&fact.stream).map_err(|what| {
                    verified.differs(&fact.stream, what);
                    fact.stream.clone()
                }));
            }
            if let Some(Ok(stream)) = &mut open
                && let Err(what) = stream.fold(fact)
            {
                verified.differs(&fact.stream, what);
                open = Some(Err(fact.stream.clone()));
            }
        }
        if page.last {
            verified.close(open.take(), &mut stored);
        }
        verified.leftovers(stored);
    }
    verified
}

impl Verified {
    /// Compares a record whose stream has ended with what is stored of it.
    fn close(&mut self, stream: Option<Result<Stream, String>>, stored: &mut Stored) {
        let stream = match stream {
            None => return,
            Some(Ok(stream)) => stream,
            Some(Err(damaged)) => {
                stored.views.remove(&damaged);
                stored.agenda.remove(&damaged);
                return;
            }
        };
        self.records += 1;
        let id = stream.id.as_str();
        let Some(record) = &stream.record else { return self.differs(id, "it has no state".to_owned()) };
        match stored.views.remove(id) {
            None => self.differs(id, "it has no view".to_owned()),
            Some(found) => {
                if found.columns != columns(record) {
                    let what =
                        format!("its columns are {:?}, the facts give {:?}", found.columns, columns(record));
                    self.differs(id, what);
                }
                let folded = encode_view(record);
                if found.view != folded {
                    self.differs(id, format!("its view is {}, the facts give {folded}", found.view));
                }
            }
        }
        match stored.agenda.remove(id) {
            None => self.differs(id, "it has no agenda row".to_owned()),
            Some(row) => self.compare_agenda(&stream, record, &row),
        }
    }

    fn compare_agenda(&mut self, stream: &Stream, record: &Record, row: &AgendaRow) {
        let id = stream.id.as_str();
        if row.head != stream.head {
            self.differs(id, format!("its agenda stands at {:?}, the facts at {:?}", row.head, stream.head));
        }
        let asked = attention(record, Retention::DEFAULT);
        if row.place != asked.place {
            self.differs(id, format!("it queues at {:?}, the facts say {:?}", row.place, asked.place));
        }
        let open = match record {
            Record::Job(job) => !job.state.name().is_terminal(),
            Record::Operation(operation) => operation.ended.is_none(),
        };
        // How long ended records are kept is a setting, not a fact.
        if open && row.limit_at != asked.limit_at {
            self.differs(id, format!("its limit is {:?}, the facts say {:?}", row.limit_at, asked.limit_at));
        }
        let waits_for_someone =
            asked.holding == Holding::Free && asked.place.is_none() && asked.due_at.is_none();
        if open && row.due_at.is_none() && !row.ready && !waits_for_someone {
            self.differs(id, "nothing would ever bring it back".to_owned());
        }
    }

    /// What is stored without a fact to stand on, and bodies that are not what they say.
    fn leftovers(&mut self, stored: Stored) {
        for id in stored.views.into_keys() {
            self.differs(&id, "it has a view and no facts".to_owned());
        }
        for id in stored.agenda.into_keys() {
            self.differs(&id, "it has an agenda row and no facts".to_owned());
        }
        for body in stored.bodies {
            if sha256(&body.bytes).0 != body.sha256 {
                self.differs(&body.record, format!("its {} is not what its digest says", body.name));
            }
        }
    }

    fn differs(&mut self, record: &str, what: String) {
        self.difference_count += 1;
        if self.differences.len() < KEPT_DIFFERENCES {
            self.differences.push(Difference { record: record.to_owned(), what });
        }
    }
}

fn columns(record: &Record) -> Vec<Value> {
    let text = |text: Option<&str>| text.map_or(Value::Null, |text| Value::Text(text.to_owned()));
    match record {
        Record::Job(job) => {
            let columns = JobColumns::from(&**job);
            vec![
                text(Some(columns.state.as_str())),
                Value::Integer(columns.updated_at.micros()),
                text(columns.owner_peer_id),
                text(columns.created_by_peer_id),
                text(columns.session_id),
                text(columns.circle),
            ]
        }
        Record::Operation(operation) => {
            let columns = OperationColumns::from(&**operation);
            vec![
                text(Some(columns.job_id)),
                text(Some(columns.status.as_str())),
                Value::Integer(columns.updated_at.micros()),
                columns.orphaned_at.map(Timestamp::micros).map_or(Value::Null, Value::Integer),
            ]
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.record, self.what)
    }
}
