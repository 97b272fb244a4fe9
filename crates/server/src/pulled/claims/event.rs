//! Claims on events that wait: whoever holds one keeps it from the router, until it is given back or the lease ends. What is settled cannot
//! be claimed: doing it again would do nothing.

use std::sync::Arc;
use std::time::Duration;

use domain::event::MAX_TYPE_BYTES;
use domain::job::lane_of_events;
use domain::{RecordId, RecordKind};
use engine::{EngineError, PulledLane};
use store::{RecordQuery, StoreError, Taken};

use super::{Claimant, of_engine_claim};
use crate::access::visible::visible_record;
use crate::problem::{at_field, of_store};
use crate::wait::Patience;
use crate::{RequestContext, Result, Server};

/// Types that one claimant may name.
pub(crate) const MAX_TYPES: usize = 32;
/// Pages of waiting events that are looked at for the oldest.
const MAX_PAGES: usize = 20;
const PAGE: usize = 1_000;
/// How soon whoever waits for an event looks again.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);
/// Events that others hold before one that is free.
const MAX_TRIES: usize = 64;

/// The event of this id, if its caller sees it.
pub(super) async fn visible(server: &Server, asked: &RequestContext, id: &str) -> Result<RecordId> {
    Ok(visible_record(server, asked, &[RecordKind::Event], id, id).await?.record.id())
}

/// Where events wait that are left to claimants: those of the types that are asked for, else of all that the operator leaves to them.
/// None if that is no type: then whoever claims is in a race with the router.
pub(super) fn lanes(
    server: &Server,
    asked_for: &[String],
    circle: Option<&str>,
) -> Result<Option<Vec<PulledLane>>> {
    if asked_for.len() > MAX_TYPES {
        return Err(at_field("event_types", "too_long", format!("at most {MAX_TYPES} types may be named")));
    }
    if asked_for.iter().any(|kind| kind.chars().count() > MAX_TYPE_BYTES) {
        let told = format!("a type has at most {MAX_TYPE_BYTES} characters");
        return Err(at_field("event_types", "too_long", told));
    }
    let routes = server.pipelines.routes();
    let types = if asked_for.is_empty() { &**routes.left_to_claimants() } else { asked_for };
    let mut lanes: Vec<PulledLane> = Vec::with_capacity(types.len());
    for kind in types {
        let lane = PulledLane { name: Arc::from(lane_of_events(kind, circle)), limit: None };
        // Each once: whoever names a type twice is given one event all the same.
        if !lanes.contains(&lane) {
            lanes.push(lane);
        }
    }
    Ok((!lanes.is_empty()).then_some(lanes))
}

impl Claimant<'_> {
    /// The oldest event that waits and that nobody holds, as soon as there is one.
    pub(super) async fn next_event(&self, circle: Option<String>) -> Result<Option<Taken>> {
        let mut ledger = self.server.daemon.ledger();
        let mut patience = Patience::new(self.server, self.within);
        loop {
            ledger.mark_unchanged();
            if let Some(taken) = self.oldest_event(circle.clone()).await? {
                return Ok(Some(taken));
            }
            // Much may be written that is no event: not every word of it is worth a look.
            let changed = async {
                let _ = ledger.changed().await;
                tokio::time::sleep(BETWEEN_LOOKS).await;
            };
            if patience.wait_for(changed).await.is_none() {
                return Ok(None);
            }
        }
    }

    /// The oldest that waits and that nobody holds.
    async fn oldest_event(&self, circle: Option<String>) -> Result<Option<Taken>> {
        let mut query = RecordQuery {
            kind: RecordKind::Event,
            name: None,
            status: Some("waiting".to_owned()),
            circle,
            after: None,
            limit: PAGE,
        };
        let mut waiting: Vec<RecordId> = Vec::new();
        for _ in 0..MAX_PAGES {
            let page = self.server.store().records(query.clone()).await.map_err(of_store)?;
            waiting.extend(page.records.iter().map(|record| record.id()));
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        for id in waiting.iter().rev().take(MAX_TRIES) {
            match self.server.daemon.pulls().take_named(id, self.owner.clone(), self.lease).await {
                Ok(taken) => return Ok(Some(taken)),
                // Somebody else has it, or it was settled meanwhile: the next one.
                Err(
                    EngineError::Store(StoreError::ClaimHeld | StoreError::UnknownRecord)
                    | EngineError::Refused(_),
                ) => {}
                Err(error) => return Err(of_engine_claim(&error, id.as_str())),
            }
        }
        Ok(None)
    }
}
