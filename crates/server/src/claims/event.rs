//! Claims on events that wait: whoever holds one keeps it from the router, until it is given back or the lease ends. What is settled cannot
//! be claimed: doing it again would do nothing.

use std::time::Duration;

use api::{Problem, ProblemCode};
use domain::{Lease, OwnerId, Record, RecordId};
use engine::EngineError;
use store::{RoutedKind, RoutingQuery, StoreError, Taken};

use super::of_engine_claim;
use crate::asked::Asked;
use crate::authorise;
use crate::problem::of_store;
use crate::serve::Server;

/// Pages of waiting events that are looked at for the oldest.
const MAX_PAGES: usize = 20;
const PAGE: usize = 1_000;
/// How soon whoever waits for an event looks again.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);
/// Events that others hold before one that is free.
const MAX_TRIES: usize = 64;

/// The event of this id, if its caller sees it.
pub(super) async fn visible(server: &Server, asked: &Asked, id: &str) -> Result<RecordId, Problem> {
    let not_there = || ProblemCode::NotFound.because(format!("there is no event {id}"));
    let Ok(record_id @ RecordId::Event(_)) = RecordId::parse(id) else { return Err(not_there()) };
    let loaded = server.store().load(&record_id).await.map_err(|error| of_store(&error))?;
    let circle = match loaded.as_ref().map(|loaded| &*loaded.record) {
        Some(Record::Event(event)) => event.said.circle.as_deref(),
        Some(Record::Job(_) | Record::Operation(_) | Record::Run(_)) | None => return Err(not_there()),
    };
    if authorise::sees(&asked.principal, circle) { Ok(record_id) } else { Err(not_there()) }
}

/// One by its id, if it waits and nobody holds it.
pub(super) async fn acquire(
    server: &Server,
    id: &RecordId,
    owner: OwnerId,
    lease: Lease,
) -> Result<Taken, EngineError> {
    server.daemon.pulls().take_named(id, owner, lease).await
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
    let mut query = RoutingQuery {
        kind: RoutedKind::Events,
        name: None,
        status: Some("waiting".to_owned()),
        circle,
        after: None,
        limit: PAGE,
    };
    let mut waiting: Vec<RecordId> = Vec::new();
    for _ in 0..MAX_PAGES {
        let page = server.store().routing(query.clone()).await.map_err(|error| of_store(&error))?;
        waiting.extend(page.records.iter().map(|record| record.id()));
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
    }
    for id in waiting.iter().rev().take(MAX_TRIES) {
        match acquire(server, id, owner.clone(), lease).await {
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
