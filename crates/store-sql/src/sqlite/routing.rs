//! Events and runs on a file: only read here; they are written with their facts.

use std::sync::Arc;

use domain::Record;
use store::{Reply, RoutingPage, RoutingQuery, RoutingStore};

use super::SqliteStore;
use crate::database::at_once;
use crate::routing;

impl RoutingStore for SqliteStore {
    fn routing(&self, query: RoutingQuery) -> Reply<'_, RoutingPage> {
        self.readers.read(move |connection| at_once(routing::page(connection, &query)))
    }

    fn newest_run<'a>(&'a self, pipeline: &'a str, dedupe_key: &'a str) -> Reply<'a, Option<Arc<Record>>> {
        let (pipeline, dedupe_key) = (pipeline.to_owned(), dedupe_key.to_owned());
        self.readers.read(move |connection| at_once(routing::newest_run(connection, &pipeline, &dedupe_key)))
    }
}
