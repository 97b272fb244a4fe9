//! A walk over all streams in order of their ids, a page of facts at a time, folding as it goes.
//!
//! Facts are only ever appended, and go only before a checkpoint, so pages may be read at different times. Memory stays constant: the facts of
//! one page and the state of one stream. A fact that cannot be read is told in its place, and the walk goes on.

use domain::record::apply;
use domain::{Fact, Record, RecordId};
use store::{FactText, Head, decode_fact};

use crate::database::{Columns, Database};
use crate::dialect::Sql;
use crate::rows::{FactLine, fact_columns, read_fact, signed};

/// Rows of one page: no read is longer.
pub(crate) const PAGE: usize = 1_000;

/// Facts in the order of streams.
pub(crate) struct FactPage {
    pub(crate) facts: Vec<Result<FactLine, Unreadable>>,
    /// Whether there is nothing after it.
    pub(crate) last: bool,
}

/// A fact that is there and cannot be read.
pub(crate) struct Unreadable {
    /// The stream, as far as its name can be read.
    pub(crate) stream: String,
    pub(crate) what: String,
}

/// Where a walk stands: the fact read last.
#[derive(Clone, Default)]
pub(crate) struct Place {
    stream: String,
    version: i64,
    /// Facts read after it whose own place cannot be named.
    beyond: usize,
}

impl Place {
    /// The stream of the fact read last.
    pub(crate) fn stream(&self) -> &str {
        &self.stream
    }

    /// The first name that is above every stream that cannot go on after this place.
    pub(crate) fn end(&self) -> String {
        // The name after the stream's own: something that cannot be named follows it, so the stream has ended.
        if self.beyond > 0 { format!("{}\0", self.stream) } else { self.stream.clone() }
    }

    fn advance(&mut self, row: &dyn Columns) {
        match (row.text(1), row.integer(2)) {
            (Ok(Some(stream)), Ok(Some(version))) => {
                *self = Self { stream: stream.to_owned(), version, beyond: 0 };
            }
            _ => self.beyond += 1,
        }
    }
}

static FACTS_BY_STREAM: Sql = Sql::new(concat!(
    "SELECT ",
    fact_columns!(),
    " FROM facts WHERE (stream, version) > ($1, $2) ORDER BY stream, version LIMIT $3 OFFSET $4"
));

/// The next page.
pub(crate) async fn next_page<D: Database>(database: &D, place: &mut Place) -> Result<FactPage, D::Error> {
    let from = place.clone();
    let given = [
        from.stream.as_str().into(),
        from.version.into(),
        signed(PAGE as u64).into(),
        signed(from.beyond as u64).into(),
    ];
    let facts = database
        .query(&FACTS_BY_STREAM, &given, |row| {
            place.advance(row);
            Ok(read_line(row))
        })
        .await?;
    let last = facts.len() < PAGE;
    Ok(FactPage { facts, last })
}

fn read_line(row: &dyn Columns) -> Result<FactLine, Unreadable> {
    let unreadable =
        |unfit| Unreadable { stream: row.lossy(1), what: format!("a fact cannot be read: {unfit}") };
    read_fact(row).map_err(unreadable)
}

static FACTS_OF_STREAM: Sql = Sql::new(concat!(
    "SELECT ",
    fact_columns!(),
    " FROM facts WHERE stream = $1 AND version > $2 ORDER BY version LIMIT $3"
));

/// The next page of one stream after a version, which goes on with it.
pub(crate) async fn stream_page<D: Database>(
    database: &D,
    stream: &str,
    version: &mut i64,
) -> Result<FactPage, D::Error> {
    let given = [stream.into(), (*version).into(), signed(PAGE as u64).into()];
    let facts = database
        .query(&FACTS_OF_STREAM, &given, |row| {
            if let Ok(Some(read)) = row.integer(2) {
                *version = read;
            }
            Ok(read_line(row))
        })
        .await?;
    let last = facts.len() < PAGE;
    Ok(FactPage { facts, last })
}

/// One stream as far as it has been folded.
pub(crate) struct Stream {
    pub(crate) id: RecordId,
    pub(crate) head: Head,
    pub(crate) record: Option<Record>,
    last_at: i64,
    last_position: u64,
}

impl Stream {
    /// The beginning of a stream with this name.
    pub(crate) fn begin(name: &str) -> Result<Self, String> {
        let id = RecordId::parse(name).map_err(|refusal| refusal.to_string())?;
        Ok(Self { id, head: Head::default(), record: None, last_at: i64::MIN, last_position: 0 })
    }

    /// Folds the next fact, or says what is wrong with it.
    pub(crate) fn fold(&mut self, fact: &FactLine) -> Result<(), String> {
        let mut expected = self.head.version + 1;
        if fact.version != expected {
            // What was before a checkpoint has gone with it, perhaps behind this very walk.
            let checkpoint = fact.checkpoint().filter(|_| fact.version > expected);
            let Some(checkpoint) = checkpoint else {
                return Err(format!("fact {expected} is missing, the next is {}", fact.version));
            };
            expected = fact.version;
            self.head = Head { version: fact.version - 1, checksum: checkpoint.previous };
            self.record = None;
        }
        let checksum = fact.text().checksum(self.head.checksum);
        if checksum != fact.checksum {
            return Err(format!(
                "fact {expected} has checksum {}, its content gives {checksum}",
                fact.checksum
            ));
        }
        if fact.position <= self.last_position {
            return Err(format!("fact {expected} stands before the one before it in the ledger"));
        }
        let decoded =
            decode_fact(&fact.kind, &fact.payload).map_err(|error| format!("fact {expected}: {error}"))?;
        // The clock was set back: time goes back in a stream at such a fact and nowhere else.
        if fact.at.micros() < self.last_at && !decoded.moves_back() {
            return Err(format!("fact {expected} is older than the one before it"));
        }
        if let Fact::Checkpointed { checkpointed } = &decoded
            && checkpointed.previous != self.head.checksum
        {
            return Err(format!("fact {expected} is a checkpoint after another fact"));
        }
        apply(&mut self.record, &self.id, &decoded, fact.at)
            .map_err(|misfold| format!("fact {expected}: {misfold}"))?;
        self.head = Head { version: fact.version, checksum };
        self.last_at = fact.at.micros();
        self.last_position = fact.position;
        Ok(())
    }
}

impl FactLine {
    pub(crate) fn text(&self) -> FactText<'_> {
        FactText {
            stream: &self.stream,
            version: self.version,
            id: self.id,
            kind: &self.kind,
            at: self.at,
            actor: &self.actor,
            causation_id: self.causation_id.as_deref(),
            correlation_id: self.correlation_id.as_deref(),
            payload: &self.payload,
        }
    }
}
