//! The rows that one unit of work left in a store, as a pattern for all: its facts, and the views, agenda rows and bodies of the records
//! that they are about.

use std::collections::HashMap;

use anyhow::{Context, Result, ensure};
use domain::RecordId;
use store::{Head, decode_sealed_view, encode_view, seal_view};

use super::rows::Value;
use crate::books::{Books, Row, text};

/// The tables of views.
pub const VIEWS: [&str; 3] = ["jobs", "operations", "records"];
/// What of an agenda row changes from step to step; the first one finds it.
pub const AGENDA_CHANGES: [&str; 10] = [
    "record_id",
    "version",
    "checksum",
    "owner",
    "lease_expires_at",
    "heartbeat_at",
    "held",
    "lane",
    "ready",
    "due_at",
];
/// Later than whatever a clock of ours says.
const BASE_MICROS: i64 = 2_000_000_000_000_000;

/// Where rows go.
pub trait Sink {
    /// A new row of a table.
    fn insert(&mut self, table: &'static str, row: Row) -> Result<()>;
    /// Another state of a view: its id, its state, its time, its JSON.
    fn view(&mut self, table: &'static str, row: Row) -> Result<()>;
    /// Another state of an agenda row: see `AGENDA_CHANGES`.
    fn agenda(&mut self, row: Row) -> Result<()>;
    /// A claim: a write of its own.
    fn claim(&mut self, row: Row) -> Result<()>;
    /// Makes durable what came since the last time.
    fn commit(&mut self) -> Result<()>;
}

/// What one unit of work wrote.
pub struct Pattern {
    records: Vec<RecordPattern>,
    /// One for each fact, in the order of the ledger: which record, and the fact.
    steps: Vec<(usize, Row)>,
    names: HashMap<String, usize>,
}

/// What one record of it left.
struct RecordPattern {
    id: String,
    table: &'static str,
    columns: Columns,
    view: Row,
    /// What the view says, without its seal, and the fact that it is of.
    json: String,
    head: Head,
    agenda: Option<Row>,
    agenda_columns: Vec<usize>,
    bodies: Vec<Row>,
    facts: usize,
}

/// Where things are in a row of a view.
struct Columns {
    state: usize,
    updated_at: usize,
    view: usize,
}

impl Pattern {
    /// Of all facts after a position: one unit of work was done since.
    pub fn since(books: &Books, position: i64) -> Result<Self> {
        let facts = books
            .rows("SELECT * FROM facts WHERE position > $1 ORDER BY position", &[Value::Integer(position)])?;
        ensure!(!facts.is_empty(), "nothing was written");
        let agenda = books.columns("agenda")?;
        let agenda_columns: Vec<usize> = AGENDA_CHANGES
            .iter()
            .map(|name| agenda.iter().position(|column| column == name).context("the agenda has it"))
            .collect::<Result<_>>()?;
        let mut pattern = Self { records: Vec::new(), steps: Vec::new(), names: HashMap::new() };
        for fact in facts {
            let stream = text(&fact, 1)?.to_owned();
            let record = match pattern.names.get(&stream) {
                Some(record) => *record,
                None => {
                    let mut record = record(books, &stream)?;
                    record.agenda_columns.clone_from(&agenda_columns);
                    pattern.records.push(record);
                    pattern.names.insert(stream, pattern.records.len() - 1);
                    pattern.records.len() - 1
                }
            };
            pattern.records[record].facts += 1;
            pattern.steps.push((record, fact));
        }
        Ok(pattern)
    }

    /// Facts of one unit.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// Tables of views that it writes.
    pub fn tables(&self) -> Vec<&'static str> {
        VIEWS.into_iter().filter(|table| self.records.iter().any(|one| one.table == *table)).collect()
    }

    /// The rows of one step of one unit.
    pub fn write(&self, sink: &mut impl Sink, unit: usize, step: usize, position: i64) -> Result<()> {
        let (number, fact) = &self.steps[step];
        let record = &self.records[*number];
        let nth = self.steps[..step].iter().filter(|(other, _)| other == number).count();
        let (is_first, is_last) = (nth == 0, nth + 1 == record.facts);
        let now = Value::Integer(BASE_MICROS + position);
        let id = self.id(*number, unit);
        if is_first {
            let mut view = self.named(&record.view, unit);
            if !is_last {
                record.in_state(&mut view, "queued", "pending");
            }
            view[record.columns.updated_at] = now.clone();
            view[record.columns.view] = self.sealed(*number, unit)?;
            sink.insert(record.table, view)?;
            if let Some(agenda) = &record.agenda {
                let mut agenda = self.named(agenda, unit);
                if record.table == "jobs" && !is_last {
                    let at = &record.agenda_columns;
                    (agenda[at[7]], agenda[at[8]], agenda[at[9]]) =
                        (Value::Text("noop".to_owned()), Value::Integer(1), Value::Null);
                }
                sink.insert("agenda", agenda)?;
            }
        } else {
            let mut view = record.view.clone();
            if !is_last {
                record.in_state(&mut view, "running", "running");
            }
            let json = self.sealed(*number, unit)?;
            sink.view(record.table, vec![id.clone(), view[record.columns.state].clone(), now.clone(), json])?;
            if let Some(agenda) = &record.agenda {
                let row = record.changed(agenda, &id, &now, is_last);
                if record.table == "jobs" && nth == 1 {
                    sink.claim(row.clone())?;
                }
                sink.agenda(row)?;
            }
        }
        let (early, late) = record.bodies.split_at(record.bodies.len().min(1));
        let bodies = [(is_first, early), (is_last, late)];
        for body in bodies.into_iter().filter(|(is_now, _)| *is_now).flat_map(|(_, bodies)| bodies) {
            sink.insert("bodies", self.named(body, unit))?;
        }
        let mut fact = self.named(fact, unit);
        fact[0] = Value::Integer(position);
        sink.insert("facts", fact)
    }

    /// The view of a record of this unit. Lists read it, so its seal is that of its id: one hash more for each row.
    fn sealed(&self, record: usize, unit: usize) -> Result<Value> {
        let id = RecordId::parse(&self.name(record, unit))?;
        let RecordPattern { head, json, .. } = &self.records[record];
        Ok(Value::Text(seal_view(&id, *head, json.clone())))
    }

    /// What a record is called in this unit. It sorts behind all others, as new ids do.
    fn name(&self, record: usize, unit: usize) -> String {
        let prefix = self.records[record].id.split('-').next().unwrap_or_default();
        format!("{prefix}-ffff{unit:020x}{record:08x}")
    }

    fn id(&self, record: usize, unit: usize) -> Value {
        Value::Text(self.name(record, unit))
    }

    /// The same row, of this unit.
    fn named(&self, row: &Row, unit: usize) -> Row {
        let other = |value: &Value| match value {
            Value::Text(text) => self.names.get(text).map_or_else(|| value.clone(), |to| self.id(*to, unit)),
            Value::Null | Value::Integer(_) | Value::Bytes(_) => value.clone(),
        };
        row.iter().map(other).collect()
    }
}

impl RecordPattern {
    fn in_state(&self, view: &mut Row, job: &str, operation: &str) {
        let state = match self.table {
            "jobs" => job,
            "operations" => operation,
            // Nothing but the name of its state is looked up of an event or a run.
            _ => return,
        };
        view[self.columns.state] = Value::Text(state.to_owned());
    }

    /// An agenda row on its way: held by somebody until it is over.
    fn changed(&self, agenda: &Row, id: &Value, now: &Value, is_last: bool) -> Row {
        let mut row: Row = self.agenda_columns.iter().map(|column| agenda[*column].clone()).collect();
        row[0] = id.clone();
        if !is_last {
            (row[4], row[5], row[6]) = (now.clone(), now.clone(), Value::Integer(1));
            (row[8], row[9]) = (Value::Integer(0), now.clone());
        }
        row
    }
}

fn record(books: &Books, id: &str) -> Result<RecordPattern> {
    let given = [Value::Text(id.to_owned())];
    let mut found = None;
    for table in VIEWS {
        if let Some(view) = books.rows(&format!("SELECT * FROM {table} WHERE id = $1"), &given)?.pop() {
            found = Some((table, view));
        }
    }
    let (table, view) = found.with_context(|| format!("{id} has no view"))?;
    let columns = books.columns(table)?;
    let column = |names: &[&str]| {
        let place = columns.iter().position(|column| names.contains(&column.as_str()));
        place.with_context(|| format!("{table} has no {names:?}"))
    };
    let stored = text(&view, column(&["view"])?)?;
    let (known, head) = decode_sealed_view(&RecordId::parse(id)?, stored)?;
    Ok(RecordPattern {
        id: id.to_owned(),
        json: encode_view(&known),
        head,
        table,
        columns: Columns {
            state: column(&["state", "status"])?,
            updated_at: column(&["updated_at"])?,
            view: column(&["view"])?,
        },
        view,
        agenda: books.rows("SELECT * FROM agenda WHERE record_id = $1", &given)?.pop(),
        agenda_columns: Vec::new(),
        bodies: books.rows("SELECT * FROM bodies WHERE record_id = $1 ORDER BY name", &given)?,
        facts: 0,
    })
}

/// The column of a view's state.
pub fn state_column(table: &str) -> &'static str {
    if table == "jobs" { "state" } else { "status" }
}
