//! `GET /events` and `GET /events/{id}`.

use api::{EventAnswer, EventList, JsonObject, Problem};
use domain::RecordKind;
use domain::event::EventStatus;

use super::shown::{event_of, shown};
use crate::access::visible::visible_record;
use crate::problem::of_store;
use crate::reply::Reply;
use crate::request_context::RequestContext;
use crate::routing::routed;
use crate::server::Server;

pub(crate) async fn list(server: &Server, asked: RequestContext) -> Result<Reply, Problem> {
    let statuses = EventStatus::ALL.map(EventStatus::as_str);
    let (records, next_cursor) = routed::page(server, &asked, RecordKind::Event, "type", &statuses).await?;
    let events = records.iter().map(|record| shown(event_of(record), None)).collect();
    Ok(Reply::json(&EventList { events, next_cursor }))
}

pub(crate) async fn read(server: &Server, asked: RequestContext) -> Result<Reply, Problem> {
    let loaded = visible_record(server, &asked, &[RecordKind::Event], &asked.id, &asked.id).await?;
    let event = event_of(&loaded.record);
    let payload = server.store().body(&event.id.clone().into(), event.said.payload).await;
    let payload = payload.map_err(|error| of_store(&error))?;
    let payload = payload.and_then(|bytes| JsonObject::parse(&String::from_utf8_lossy(&bytes)).ok());
    Ok(Reply::json(&EventAnswer { event: shown(event, payload) }))
}
