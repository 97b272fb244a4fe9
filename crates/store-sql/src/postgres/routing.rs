//! Events and runs on a database: only read here; they are written with their facts.

use std::sync::Arc;

use domain::Record;
use store::{Reply, RoutingPage, RoutingQuery, RoutingStore};

use super::PostgresStore;
use crate::routing;

impl RoutingStore for PostgresStore {
    fn routing(&self, query: RoutingQuery) -> Reply<'_, RoutingPage> {
        let query = Arc::new(query);
        Box::pin(self.pool.read(move |session| {
            let query = query.clone();
            async move { routing::page(&*session, &query).await }
        }))
    }

    fn newest_run<'a>(&'a self, pipeline: &'a str, dedupe_key: &'a str) -> Reply<'a, Option<Arc<Record>>> {
        Box::pin(
            self.pool.read(move |session| async move {
                routing::newest_run(&*session, pipeline, dedupe_key).await
            }),
        )
    }
}
