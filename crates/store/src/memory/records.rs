//! Lists of records in memory.

use std::sync::Arc;

use domain::{Record, RecordId, RecordKind};

use super::Tables;
use crate::{PageWalk, RecordCursor, RecordPage, RecordQuery};

impl Tables {
    /// The records of a kind.
    fn of_kind(&self, kind: RecordKind) -> impl Iterator<Item = (&RecordId, &Arc<Record>)> {
        self.views.iter().filter(move |(id, _)| id.kind() == kind)
    }

    pub(super) fn records(&self, query: &RecordQuery) -> RecordPage {
        let mut records: Vec<(RecordCursor, &Arc<Record>)> = self
            .of_kind(query.kind)
            .filter(|(_, record)| query.name.as_deref().is_none_or(|name| name == record.summary().name))
            .map(|(id, record)| {
                let began_at = record.summary().began_at;
                (RecordCursor { began_at, id: id.as_str().to_owned() }, record)
            })
            .filter(|(cursor, _)| query.after.as_ref().is_none_or(|after| cursor < after))
            .collect();
        records.sort_by(|(a, _), (b, _)| b.cmp(a));
        let mut walk = PageWalk::new(query.limit);
        for (cursor, record) in records {
            let summary = record.summary();
            let fits = query.fits(summary.status, summary.circle);
            if !walk.look_at(cursor, fits.then(|| record.clone())) {
                break;
            }
        }
        let (records, next) = walk.finish();
        RecordPage { records, next }
    }

    pub(super) fn newest_record(&self, kind: RecordKind, name: &str, key: &str) -> Option<Arc<Record>> {
        let newest = self
            .of_kind(kind)
            .map(|(id, record)| (id, record.summary(), record))
            .filter(|(_, summary, _)| summary.name == name && summary.key == Some(key))
            .max_by_key(|(id, summary, _)| (summary.began_at, id.as_str()));
        newest.map(|(_, _, record)| record.clone())
    }
}
