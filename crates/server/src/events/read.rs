//! `GET /events` and `GET /events/{id}`.

use api::{EventAnswer, EventList, JsonObject, Problem};
use axum::response::Response;
use domain::event::EventStatus;
use store::{Loaded, RoutedKind};

use super::shown::{event_of, shown};
use crate::answer;
use crate::asked::Asked;
use crate::problem::of_store;
use crate::routed;
use crate::serve::Server;

pub(crate) async fn list(server: &Server, asked: Asked) -> Result<Response, Problem> {
    let statuses = EventStatus::ALL.map(EventStatus::as_str);
    let (records, next_cursor) = routed::page(server, &asked, RoutedKind::Events, "type", &statuses).await?;
    let events = records.iter().map(|record| shown(event_of(record), None)).collect();
    Ok(answer::json(&EventList { events, next_cursor }))
}

pub(crate) async fn read(server: &Server, asked: Asked) -> Result<Response, Problem> {
    let loaded = visible_event(server, &asked, &asked.id).await?;
    let event = event_of(&loaded.record);
    let payload = server.store().body(&event.id.clone().into(), event.said.payload).await;
    let payload = payload.map_err(|error| of_store(&error))?;
    let payload = payload.and_then(|bytes| JsonObject::parse(&String::from_utf8_lossy(&bytes)).ok());
    Ok(answer::json(&EventAnswer { event: shown(event, payload) }))
}

/// The event with this id, if the caller sees it.
pub(crate) async fn visible_event(server: &Server, asked: &Asked, id: &str) -> Result<Loaded, Problem> {
    routed::visible(server, asked, RoutedKind::Events, id).await
}
