//! The time of a store on a file: kept through the writer, read beside it.

use domain::timeline::{Anchor, Step};
use domain::{RecordId, RecordKind, Timestamp};
use store::{ClockStore, DuePlace, Reply, StoreClock, Urgency};

use super::SqliteStore;
use crate::clock;
use crate::database::{Database, at_once};
use crate::request::{Answer, ClockRequest, Request};

impl ClockStore for SqliteStore {
    fn clock(&self) -> Reply<'_, StoreClock> {
        self.readers.read(|connection| {
            at_once(clock::clock(connection)).map_err(<rusqlite::Connection as Database>::read_failed)
        })
    }

    fn keep_clock(&self, anchor: Anchor, step: Option<Step>) -> Reply<'_, ()> {
        self.write(Ok(Request::Clock(ClockRequest { anchor, step })), Urgency::Result, Answer::done)
    }

    fn due_between(
        &self,
        kind: RecordKind,
        after: DuePlace,
        until: Timestamp,
        limit: usize,
    ) -> Reply<'_, Vec<(Timestamp, RecordId)>> {
        self.readers
            .read(move |connection| at_once(clock::due_between(connection, kind, &after, until, limit)))
    }
}
