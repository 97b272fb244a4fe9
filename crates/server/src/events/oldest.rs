//! The oldest event that waits and that nobody holds, for whoever claims events.

use std::sync::Arc;

use api::{AcquireClaim, Problem};
use domain::event::EventStatus;
use domain::{Lease, OwnerId, Record};
use engine::EngineError;
use store::limits::MAX_PAGE;
use store::{RoutedKind, RoutingQuery, StoreError, Taken};

use super::shown::event_of;
use crate::asked::Asked;
use crate::authorise;
use crate::problem::{of_engine, of_store};
use crate::serve::Server;

/// Pages that are looked at; where more wait than fit in, the oldest of these is old enough.
const MAX_PAGES: usize = 16;

pub(crate) async fn take_oldest(
    server: &Server,
    asked: &Asked,
    sent: &AcquireClaim,
    owner: &OwnerId,
    lease: Lease,
) -> Result<Option<Taken>, Problem> {
    let circle = authorise::circle_of_new(&asked.principal, sent.circle.clone())?;
    for record in waiting(server, circle.clone()).await?.iter().rev() {
        let event = event_of(record);
        // Who names no circle means those that are in none, as for work.
        if event.said.circle != circle {
            continue;
        }
        let id = event.id.clone().into();
        match server.daemon.pulls().take_event(&id, owner.clone(), lease).await {
            Ok(Some(taken)) => return Ok(Some(taken)),
            Ok(None) | Err(EngineError::Store(StoreError::ClaimHeld)) => {}
            Err(error) => return Err(of_engine(&error, id.as_str())),
        }
    }
    Ok(None)
}

/// The events that wait, newest first.
async fn waiting(server: &Server, circle: Option<String>) -> Result<Vec<Arc<Record>>, Problem> {
    let status = Some(EventStatus::Waiting.as_str().to_owned());
    let (kind, limit) = (RoutedKind::Events, MAX_PAGE);
    let mut query = RoutingQuery { kind, name: None, status, circle, after: None, limit };
    let mut found = Vec::new();
    for _ in 0..MAX_PAGES {
        let page = server.store().routing(query.clone()).await.map_err(|error| of_store(&error))?;
        found.extend(page.records);
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
    }
    Ok(found)
}
