//! `/events`: what is published, and what came of it.
//!
//! Events and runs are listed alike (`routing.rs`); whoever does not see a circle does not see its events either.

mod publish;
mod shown;

use api::{EventAnswer, EventList, JsonObject};
use domain::RecordKind;
use domain::event::EventStatus;

pub(crate) use publish::{new_id, payload_of, publish};

use crate::access::visible::visible_record;
use crate::{Reply, RequestContext, Result, Server};
use shown::{event_of, shown};

/// `GET /events`.
pub(crate) async fn list(server: &Server, asked: RequestContext) -> Result<Reply> {
    let statuses = EventStatus::ALL.map(EventStatus::as_str);
    let (records, next_cursor) = super::page(server, &asked, RecordKind::Event, "type", &statuses).await?;
    let events = records.iter().map(|record| shown(event_of(record), None)).collect();
    Ok(Reply::json(&EventList { events, next_cursor }))
}

/// `GET /events/{id}`.
pub(crate) async fn read(server: &Server, asked: RequestContext) -> Result<Reply> {
    let loaded = visible_record(server, &asked, &[RecordKind::Event], &asked.id, &asked.id).await?;
    let event = event_of(&loaded.record);
    let payload = server.body(&event.id.clone().into(), event.said.payload).await?;
    let payload = payload.and_then(|bytes| JsonObject::parse(&String::from_utf8_lossy(&bytes)).ok());
    Ok(Reply::json(&EventAnswer { event: shown(event, payload) }))
}
