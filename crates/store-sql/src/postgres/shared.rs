//! What nodes that share the store ask of it besides: each is a statement outside of any batch.

use std::sync::Arc;

use domain::RecordId;
use domain::timeline::Anchor;
use store::{Correction, Node, Pulse, Reply, SharedStore, Sight, StoreError};

use super::failure::PostgresError;
use super::nodes::Heard;
use super::session::Session;
use super::{PostgresStore, clock, nodes};

impl SharedStore for PostgresStore {
    fn beat(&self, node: Node) -> Reply<'_, Pulse> {
        Box::pin(async move {
            node.check()?;
            let node = &node;
            let beat = |session: Arc<Session>| async move { self.hear(nodes::beat(&session, node).await) };
            self.pool.read(beat).await
        })
    }

    fn pulse<'a>(&'a self, node_id: &'a str) -> Reply<'a, Pulse> {
        let pulse =
            move |session: Arc<Session>| async move { self.hear(nodes::pulse(&session, node_id).await) };
        Box::pin(self.pool.read(pulse))
    }

    fn see_step<'a>(&'a self, node_id: &'a str, by_micros: Option<i64>) -> Reply<'a, Vec<Sight>> {
        let see = move |session: Arc<Session>| async move {
            clock::see_step(&session, node_id, by_micros).await.map_err(PostgresError::told)
        };
        Box::pin(self.pool.read(see))
    }

    fn keep_anchor(&self, anchor: Anchor, revision: i64) -> Reply<'_, ()> {
        let keep = move |session: Arc<Session>| async move {
            clock::keep_anchor(&session, anchor, revision).await.map_err(PostgresError::told)
        };
        Box::pin(self.pool.read(keep))
    }

    fn correct_clock(&self, correction: Correction) -> Reply<'_, bool> {
        Box::pin(async move {
            let correction = &correction;
            let correct = |session: Arc<Session>| async move { clock::correct(&session, correction).await };
            let corrected = self.pool.read(correct).await;
            self.recent.forget_all();
            corrected
        })
    }

    fn versions<'a>(&'a self, ids: &'a [RecordId]) -> Reply<'a, Vec<(RecordId, u64)>> {
        let read = move |session: Arc<Session>| async move {
            nodes::versions(&session, ids).await.map_err(PostgresError::told)
        };
        Box::pin(self.pool.read(read))
    }
}

impl PostgresStore {
    /// What was heard is the time; a database that has become another's is the end.
    fn hear(&self, heard: Result<Heard, PostgresError>) -> Result<Pulse, StoreError> {
        match heard {
            Ok(heard) => {
                self.time.send_replace(Some(heard.time));
                Ok(heard.pulse)
            }
            Err(error) => {
                if let PostgresError::Skewed(told) = &error {
                    self.stop.send_replace(Some(told.clone()));
                }
                Err(error.told())
            }
        }
    }
}
