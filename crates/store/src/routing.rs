//! Events and runs as they are listed: newest first, by name.

use std::sync::Arc;

use domain::{EventId, Record, RecordId, RecordKind, RunId, Timestamp};

use crate::Reply;
use crate::commit::limits::{MAX_EXAMINED, MAX_PAGE};
use crate::view::RoutingColumns;

/// What is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoutedKind {
    /// Events, by type.
    Events,
    /// Runs, by pipeline.
    Runs,
}

/// Which events or runs, and from where on: a page looks at no more than `limits::MAX_EXAMINED` of them.
#[derive(Clone, Debug)]
pub struct RoutingQuery {
    /// Which of the two.
    pub kind: RoutedKind,
    /// Of this type, or of this pipeline.
    pub name: Option<String>,
    /// In this state.
    pub status: Option<String>,
    /// Of this circle.
    pub circle: Option<String>,
    /// After this one.
    pub after: Option<RoutingCursor>,
    /// The most; at most `limits::MAX_PAGE`.
    pub limit: usize,
}

/// A place in such a list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RoutingCursor {
    /// When the record there was published or began.
    pub begun_at: Timestamp,
    /// The record there.
    pub id: String,
}

/// One page: the last one has no `next`, any other may be short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutingPage {
    /// The records, newest first.
    pub records: Vec<Arc<Record>>,
    /// Where the next page begins, if there may be one.
    pub next: Option<RoutingCursor>,
}

/// Reads events and runs.
pub trait RoutingStore {
    /// Those that fit, newest first, a page at a time.
    fn routing(&self, query: RoutingQuery) -> Reply<'_, RoutingPage>;

    /// The newest run of a pipeline that was begun under a dedupe key.
    fn newest_run<'a>(&'a self, pipeline: &'a str, dedupe_key: &'a str) -> Reply<'a, Option<Arc<Record>>>;
}

impl RoutedKind {
    /// The kind of record.
    pub const fn record_kind(self) -> RecordKind {
        match self {
            Self::Events => RecordKind::Event,
            Self::Runs => RecordKind::Run,
        }
    }

    /// The id of one of them.
    pub fn record_id(self, text: &str) -> RecordId {
        match self {
            Self::Events => EventId::new(text).into(),
            Self::Runs => RunId::new(text).into(),
        }
    }
}

impl RoutingQuery {
    /// Whether a record with these columns fits, as far as it is not the name.
    pub fn fits(&self, status: &str, circle: Option<&str>) -> bool {
        self.status.as_deref().is_none_or(|wanted| wanted == status)
            && (self.circle.is_none() || self.circle.as_deref() == circle)
    }
}

/// The columns of an event or a run.
pub fn routing_columns(record: &Record) -> Option<RoutingColumns<'_>> {
    match record {
        Record::Event(event) => Some(RoutingColumns::from(&**event)),
        Record::Run(run) => Some(RoutingColumns::from(&**run)),
        Record::Job(_) | Record::Operation(_) => None,
    }
}

/// A page as it is put together: the same rule for every store.
#[derive(Debug)]
pub struct RoutingWalk<T> {
    limit: usize,
    examined: usize,
    found: Vec<T>,
    last: Option<RoutingCursor>,
    more: bool,
}

impl<T> RoutingWalk<T> {
    /// A page of at most so many.
    pub fn new(limit: usize) -> Self {
        Self { limit: limit.min(MAX_PAGE), examined: 0, found: Vec::new(), last: None, more: false }
    }

    /// Looks at the next one; whether another one is wanted.
    pub fn look_at(&mut self, cursor: RoutingCursor, found: Option<T>) -> bool {
        if self.examined == MAX_EXAMINED || (found.is_some() && self.found.len() == self.limit) {
            self.more = true;
            return false;
        }
        self.examined += 1;
        self.found.extend(found);
        self.last = Some(cursor);
        true
    }

    /// What was found, and where the next page begins, if there may be one.
    pub fn finish(self) -> (Vec<T>, Option<RoutingCursor>) {
        (self.found, self.last.filter(|_| self.more))
    }
}
