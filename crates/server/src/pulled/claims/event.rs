//! Claims on events that wait: whoever holds one keeps it from the router, until it is given back or the lease ends. What is settled cannot
//! be claimed: doing it again would do nothing.

use std::sync::Arc;
use std::time::Duration;

use api::Problem;
use domain::event::MAX_TYPE_BYTES;
use domain::job::lane_of_events;
use domain::{Lease, OwnerId, RecordId, RecordKind};
use engine::{EngineError, PulledLane};
use store::{RecordQuery, StoreError, Taken};

use super::of_engine_claim;
use crate::access::visible::visible_record;
use crate::problem::{at_field, of_store};
use crate::request_context::RequestContext;
use crate::server::Server;

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
pub(super) async fn visible(server: &Server, asked: &RequestContext, id: &str) -> Result<RecordId, Problem> {
    Ok(visible_record(server, asked, &[RecordKind::Event], id, id).await?.record.id())
}

/// Where events wait that are left to claimants: those of the types that are asked for, else of all that the operator leaves to them.
/// None if that is no type: then whoever claims is in a race with the router.
pub(super) fn lanes(
    server: &Server,
    asked_for: &[String],
    circle: Option<&str>,
) -> Result<Option<Vec<PulledLane>>, Problem> {
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

/// The oldest that waits and that nobody holds, as soon as there is one, within this time.
pub(super) async fn next(
    server: &Server,
    circle: Option<String>,
    owner: &OwnerId,
    lease: Lease,
    within: Duration,
) -> Result<Option<Taken>, Problem> {
    let (mut ledger, mut closing) = (server.daemon.ledger(), server.closing.subscribe());
    let over = tokio::time::sleep(within);
    tokio::pin!(over);
    loop {
        ledger.mark_unchanged();
        if let Some(taken) = acquire_oldest(server, circle.clone(), owner, lease).await? {
            return Ok(Some(taken));
        }
        tokio::select! {
            // Much may be written that is no event: not every word of it is worth a look.
            () = async { let _ = ledger.changed().await; tokio::time::sleep(BETWEEN_LOOKS).await } => {}
            () = &mut over => return Ok(None),
            _ = closing.wait_for(|closing| *closing) => return Ok(None),
        }
    }
}

/// The oldest that waits and that nobody holds.
async fn acquire_oldest(
    server: &Server,
    circle: Option<String>,
    owner: &OwnerId,
    lease: Lease,
) -> Result<Option<Taken>, Problem> {
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
        let page = server.store().records(query.clone()).await.map_err(|error| of_store(&error))?;
        waiting.extend(page.records.iter().map(|record| record.id()));
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
    }
    for id in waiting.iter().rev().take(MAX_TRIES) {
        match server.daemon.pulls().take_named(id, owner.clone(), lease).await {
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
