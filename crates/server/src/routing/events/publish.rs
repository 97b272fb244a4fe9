//! `POST /events`: writes an event down. What it starts is decided right after, by whoever takes it.

use api::{EventPublished, JsonObject, PublishEvent};
use domain::event::{MAX_TYPE_BYTES, NewEvent, Origin};
use domain::{BodyName, EventId, Json, Record};
use pipelines::{Router, event_id_of_key};
use store::body_ref;

use super::shown::event_of;
use crate::access::authorise;
use crate::clock_text::text;
use crate::jobs::{Begun, begin};
use crate::keyed;
use crate::problem::{at_field, of_refusal};
use crate::reply::{Reply, render};
use crate::{RequestContext, Result, Server};

pub(crate) async fn publish(server: &Server, asked: RequestContext) -> Result<Reply> {
    let sent: PublishEvent = asked.read()?;
    let keyed = match begin(server, &asked).await? {
        Begun::Earlier(response) => return Ok(response.accepted()),
        Begun::New(keyed) => keyed,
    };
    let id = new_id(server, &asked);
    let payload = payload_of(sent.payload.as_ref());
    let mut new = new_event(&asked, sent, &payload)?;
    new.settled_by = server.pipelines.settler_of(&new.kind);
    let order = Router::publishing(&id, new, payload, asked.principal.actor.clone());
    Ok(keyed::give(server, keyed.as_ref(), order, id.as_str(), published).await?.accepted())
}

/// The bytes of a payload as they are kept.
pub(crate) fn payload_of(sent: Option<&JsonObject>) -> Vec<u8> {
    sent.map_or("{}", JsonObject::as_str).as_bytes().to_vec()
}

/// An id for a new event. Under a key it is made of the key: the same request never makes a second event.
pub(crate) fn new_id(server: &Server, asked: &RequestContext) -> EventId {
    match &asked.key {
        Some(key) => event_id_of_key(&asked.principal.token_id, asked.operation.name, key),
        None => EventId::new(format!("event-{:032x}", server.daemon.engine().ids().next())),
    }
}

fn new_event(asked: &RequestContext, sent: PublishEvent, payload: &[u8]) -> Result<NewEvent> {
    if sent.kind.is_empty()
        || sent.kind.chars().count() > MAX_TYPE_BYTES
        || sent.kind.chars().any(char::is_control)
    {
        let told = format!("a type has 1 to {MAX_TYPE_BYTES} characters, none of them a control character");
        return Err(at_field("type", "value_error", told));
    }
    if sent.dedupe_key.as_deref() == Some("") {
        return Err(at_field("dedupe_key", "value_error", "an empty key names nothing; leave it out"));
    }
    let correlation = sent.correlation.as_ref().map(|correlation| Json::parse(correlation.as_str()));
    let origin = Origin::Published { by: Some(asked.principal.actor.to_string()) };
    // Without a source: nobody who publishes passes for a plugin.
    let new = NewEvent {
        circle: authorise::circle_of_new(&asked.principal, sent.circle)?,
        dedupe_key: sent.dedupe_key,
        correlation: correlation.transpose().map_err(|refusal| of_refusal(&refusal, ""))?,
        ..NewEvent::new(&sent.kind, body_ref(BodyName::Payload, payload), origin)
    };
    new.check().map_err(|refusal| of_refusal(&refusal, ""))?;
    Ok(new)
}

/// The answer: nothing in it ever changes.
fn published(record: &Record) -> Vec<u8> {
    let event = event_of(record);
    render(&EventPublished {
        event_id: event.id.as_str().to_owned(),
        status: domain::event::EventStatus::Waiting.as_str().to_owned(),
        kind: event.said.kind.clone(),
        circle: event.said.circle.clone(),
        published_at: text(event.published_at),
    })
}
