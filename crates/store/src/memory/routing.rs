//! Events and runs in memory.

use std::sync::Arc;

use domain::{Record, RecordId, RecordKind};

use super::{MemoryStore, Tables, ready};
use crate::{
    Reply, RoutingColumns, RoutingCursor, RoutingPage, RoutingQuery, RoutingStore, RoutingWalk,
    routing_columns,
};

impl Tables {
    /// Events or runs, with their columns.
    fn routed(
        &self,
        kind: RecordKind,
    ) -> impl Iterator<Item = (&RecordId, RoutingColumns<'_>, &Arc<Record>)> {
        self.views
            .iter()
            .filter(move |(id, _)| id.kind() == kind)
            .filter_map(|(id, record)| Some((id, routing_columns(record)?, record)))
    }
}

impl RoutingStore for MemoryStore {
    fn routing(&self, query: RoutingQuery) -> Reply<'_, RoutingPage> {
        let tables = self.tables();
        let mut records: Vec<(RoutingCursor, &Arc<Record>)> = tables
            .routed(query.kind.record_kind())
            .filter(|(_, columns, _)| query.name.as_deref().is_none_or(|name| name == columns.name))
            .map(|(id, columns, record)| {
                (RoutingCursor { begun_at: columns.begun_at, id: id.as_str().to_owned() }, record)
            })
            .filter(|(cursor, _)| query.after.as_ref().is_none_or(|after| cursor < after))
            .collect();
        records.sort_by(|(a, _), (b, _)| b.cmp(a));
        let mut walk = RoutingWalk::new(query.limit);
        for (cursor, record) in records {
            let columns =
                routing_columns(record).filter(|columns| query.fits(columns.status, columns.circle));
            if !walk.look_at(cursor, columns.map(|_| record.clone())) {
                break;
            }
        }
        let (records, next) = walk.finish();
        ready(Ok(RoutingPage { records, next }))
    }

    fn newest_run<'a>(&'a self, pipeline: &'a str, dedupe_key: &'a str) -> Reply<'a, Option<Arc<Record>>> {
        let tables = self.tables();
        let newest = tables
            .routed(RecordKind::Run)
            .filter(|(_, columns, _)| columns.name == pipeline && columns.dedupe_key == Some(dedupe_key))
            .max_by_key(|(id, columns, _)| (columns.begun_at, id.as_str()));
        ready(Ok(newest.map(|(_, _, record)| record.clone())))
    }
}
