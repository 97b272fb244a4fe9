//! Verify: every view, column, agenda row, checksum and body compared with what the facts say.
//!
//! It reads a page at a time, each in one short transaction, and may run beside a daemon. One thread reads while another folds.
//! What cannot be read is a difference too, and the walk goes on.

mod compare;
mod pages;
mod touched;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::mpsc;

use domain::timeline::Steps;
use store::{StoreError, sha256};

use crate::clock;
use crate::database::Database;
use crate::walk::Stream;
use compare::{Bodies, Tell};
use pages::{Message, Page, Stored, StoredBody, read_pages};
use touched::read_touched;

/// Differences that are kept with their text; more are only counted.
const KEPT_DIFFERENCES: usize = 100;
/// Pages or bundles of bodies that may be read ahead.
const MESSAGES_AHEAD: usize = 4;

/// What was verified, and what differs.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    /// Facts read.
    pub facts: u64,
    /// Records compared.
    pub records: u64,
    /// How far the ledger was looked at for what was touched; 0 after a walk over everything.
    pub position: u64,
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

/// Walks the whole store.
pub(crate) async fn verify<D: Database>(database: &D) -> Result<Verified, StoreError> {
    let judging = Judging::begin(steps(database).await)?;
    let read = read_pages(database, &judging.send).await;
    let mut verified = judging.end();
    read.map_err(D::read_failed)?;
    // A view that differs is counted where it says that it is: only its own difference is told.
    if verified.difference_count == 0 {
        for what in database.miscounts().await.map_err(D::read_failed)? {
            verified.differs("the counts of jobs", what);
        }
        // Reads in the order of streams do not meet every index; whoever asks by state or by time is led by another one.
        for what in database.damage().await.map_err(D::read_failed)? {
            verified.differs("the file", what);
        }
    }
    Ok(verified)
}

/// Compares the records that facts after this position are about, each from its beginning. What stands without any fact, and what
/// is counted, only the whole walk sees.
pub(crate) async fn verify_since<D: Database>(database: &D, position: u64) -> Result<Verified, StoreError> {
    let judging = Judging::begin(steps(database).await)?;
    let read = read_touched(database, position, &judging.send).await;
    let mut verified = judging.end();
    verified.position = read.map_err(D::read_failed)?;
    Ok(verified)
}

/// Where the time of the store has jumped. What cannot be read explains nothing: the walk goes on.
async fn steps<D: Database>(database: &D) -> Steps {
    clock::clock(database).await.map(|clock| clock.steps).unwrap_or_default()
}

/// The thread that compares, and the way to it.
struct Judging {
    send: mpsc::SyncSender<Message>,
    judge: std::thread::JoinHandle<Verified>,
}

impl Judging {
    fn begin(steps: Steps) -> Result<Self, StoreError> {
        let (send, receive) = mpsc::sync_channel(MESSAGES_AHEAD);
        let thread = std::thread::Builder::new().name("longhaul-verify".to_owned());
        let judge = thread.spawn(move || judge(receive, steps));
        let judge =
            judge.map_err(|error| StoreError::Unavailable(format!("no thread to compare with: {error}")))?;
        Ok(Self { send, judge })
    }

    /// What was found in all that was sent.
    fn end(self) -> Verified {
        drop(self.send);
        self.judge.join().expect("comparing does not panic")
    }
}

/// Folds page after page and compares each record where its stream ends.
fn judge(messages: mpsc::Receiver<Message>, steps: Steps) -> Verified {
    let mut judge = Judge { steps, ..Judge::default() };
    for message in messages {
        match message {
            Message::Bodies(bodies) => judge.hash(bodies),
            Message::Page(page) => judge.compare(page),
        }
    }
    judge.verified
}

#[derive(Default)]
struct Judge {
    verified: Verified,
    /// Where the time of the store has jumped.
    steps: Steps,
    /// The stream that may go on, or the name of one that is damaged.
    open: Option<Result<Stream, String>>,
    /// The bodies of the records that end in the next page.
    bodies: BTreeMap<String, Bodies>,
}

impl Judge {
    fn hash(&mut self, bodies: Vec<StoredBody>) {
        for StoredBody { record, content } in bodies {
            let of_record = self.bodies.entry(record.clone()).or_default();
            match content {
                Err(what) => self.verified.differs(&record, format!("a body cannot be read: {what}")),
                Ok(content) => {
                    if sha256(&content.bytes).0 != content.sha256 {
                        let what = format!("its {} is not what its digest says", content.name);
                        self.verified.differs(&record, what);
                    }
                    of_record.insert((content.name, content.sha256));
                }
            }
        }
    }

    fn compare(&mut self, Page { facts: page, mut stored, retired }: Page) {
        if retired {
            self.open = None;
        }
        for fact in &page.facts {
            self.verified.facts += 1;
            let stream = match fact {
                Ok(fact) => &fact.stream,
                Err(unreadable) => &unreadable.stream,
            };
            let goes_on = match &self.open {
                Some(Ok(open)) => open.id.as_str() == stream,
                Some(Err(damaged)) => damaged == stream,
                None => false,
            };
            if !goes_on {
                self.close(&mut stored);
                self.open = Some(Stream::begin(stream).map_err(|what| {
                    self.verified.differs(stream, what);
                    stream.clone()
                }));
            }
            if let Some(Ok(open)) = &mut self.open {
                let folded = match fact {
                    Ok(fact) => open.fold(fact),
                    Err(unreadable) => Err(unreadable.what.clone()),
                };
                if let Err(what) = folded {
                    self.verified.differs(stream, what);
                    self.open = Some(Err(stream.clone()));
                }
            }
        }
        if page.last {
            self.close(&mut stored);
        }
        self.leftovers(stored);
    }

    /// Compares the record whose stream has ended with what is stored of it.
    fn close(&mut self, stored: &mut Stored) {
        let stream = match self.open.take() {
            None => return,
            Some(Ok(stream)) => stream,
            Some(Err(damaged)) => {
                stored.views.remove(&damaged);
                stored.agenda.remove(&damaged);
                self.bodies.remove(&damaged);
                return;
            }
        };
        self.verified.records += 1;
        let id = stream.id.as_str();
        let bodies = self.bodies.remove(id).unwrap_or_default();
        let differs: Tell<'_> = &mut |what| self.verified.differs(id, what);
        let Some(record) = &stream.record else { return differs("it has no state".to_owned()) };
        match stored.views.remove(id) {
            None => differs("it has no view".to_owned()),
            Some(Err(what)) => differs(format!("its view cannot be read: {what}")),
            Some(Ok(found)) => compare::view(&stream, record, &found, differs),
        }
        match stored.agenda.remove(id) {
            None => differs("it has no agenda row".to_owned()),
            Some(Err(what)) => differs(format!("its agenda row cannot be read: {what}")),
            Some(Ok(found)) => compare::agenda(&stream, record, &found, &self.steps, differs),
        }
        compare::bodies(record, &bodies, differs);
    }

    /// What is stored without a fact to stand on.
    fn leftovers(&mut self, stored: Stored) {
        for id in stored.views.into_keys() {
            self.verified.differs(&id, "it has a view and no facts".to_owned());
        }
        for id in stored.agenda.into_keys() {
            self.verified.differs(&id, "it has an agenda row and no facts".to_owned());
        }
        for id in std::mem::take(&mut self.bodies).into_keys() {
            self.verified.differs(&id, "it has bodies and no facts".to_owned());
        }
    }
}

impl Verified {
    fn differs(&mut self, record: &str, what: String) {
        self.difference_count += 1;
        if self.differences.len() < KEPT_DIFFERENCES {
            self.differences.push(Difference { record: record.to_owned(), what });
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.record, self.what)
    }
}
