//! Records as they are listed by their summaries: newest first, by name. Jobs and operations have lists of their own.

use std::sync::Arc;

use domain::{Record, RecordKind, Timestamp};

/// Which records, and from where on: a page looks at no more than `limits::MAX_EXAMINED` of them.
#[derive(Clone, Debug)]
pub struct RecordQuery {
    /// Of this kind, which has no table of its own.
    pub kind: RecordKind,
    /// Of this name: the type of events, the pipeline of runs.
    pub name: Option<String>,
    /// In this state.
    pub status: Option<String>,
    /// Of this circle.
    pub circle: Option<String>,
    /// After this one.
    pub after: Option<RecordCursor>,
    /// The most; at most `limits::MAX_PAGE`.
    pub limit: usize,
}

/// A place in such a list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordCursor {
    /// When the record there was published or began.
    pub began_at: Timestamp,
    /// The record there.
    pub id: String,
}

/// One page: the last one has no `next`, any other may be short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordPage {
    /// The records, newest first.
    pub records: Vec<Arc<Record>>,
    /// Where the next page begins, if there may be one.
    pub next: Option<RecordCursor>,
}

impl RecordQuery {
    /// Whether a record with this summary fits, as far as it is not the name.
    pub fn fits(&self, status: &str, circle: Option<&str>) -> bool {
        self.status.as_deref().is_none_or(|wanted| wanted == status)
            && (self.circle.is_none() || self.circle.as_deref() == circle)
    }
}
