//! `POST /hooks/{path}`: a message from outside that is signed becomes an event. It is told nothing that is not signed, and whoever
//! sends the same message again gets the same event and starts nothing.
//!
//! The body is the payload and never an envelope: what type the event has says the operator alone.

mod endpoint;
mod message;

use std::collections::BTreeMap;
use std::sync::Arc;

use api::ductile::WebhookTaken;
use api::{Problem, ProblemCode};
use domain::event::{MAX_PAYLOAD_BYTES, NewEvent, Origin};
use domain::{BodyName, EventId, Refusal, Timestamp};
use engine::{EngineError, OrderKey};
use pipelines::{Router, event_id_of_key};
use store::{IdempotencyKey, body_ref};

pub use endpoint::{Endpoint, SignedTime};

use crate::problem::of_engine;
use crate::reply::{Given, Reply, render};
use crate::{RequestContext, Result, Server};
use message::{Message, payload_of};

/// Endpoints of one server.
const MAX_ENDPOINTS: usize = 100;
/// The route of the keys that remember signatures.
const ROUTE: &str = "take_webhook";

/// The endpoints of a server.
#[derive(Default)]
pub struct Webhooks {
    by_path: BTreeMap<String, Endpoint>,
}

impl std::fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Where they are, and nothing of what they are signed with.
        f.debug_set().entries(self.by_path.keys()).finish()
    }
}

impl Webhooks {
    /// Also this endpoint, or why not.
    pub fn add(&mut self, endpoint: Endpoint) -> Result<(), String> {
        endpoint.check()?;
        if self.by_path.len() == MAX_ENDPOINTS {
            return Err(format!("there may be at most {MAX_ENDPOINTS} webhooks"));
        }
        if self.by_path.values().any(|other| other.name == endpoint.name) {
            return Err(format!("there are two webhooks named {:?}", endpoint.name));
        }
        if let Some(other) = self.by_path.get(&endpoint.path) {
            return Err(format!("{:?} has the path {:?} of {:?}", endpoint.name, other.path, other.name));
        }
        self.by_path.insert(endpoint.path.clone(), endpoint);
        Ok(())
    }
}

pub(crate) async fn take(server: &Server, asked: RequestContext) -> Result<Reply> {
    let Some(endpoint) = server.webhooks.by_path.get(&asked.id) else {
        return Err(ProblemCode::NotFound.because("there is no such webhook"));
    };
    let raw = asked.raw.unwrap_or_default();
    if raw.body.len() > endpoint.max_body_bytes {
        return Err(too_large(endpoint.max_body_bytes));
    }
    let now = server.now();
    let message = Message::read(endpoint, &raw.headers, &raw.body, now).map_err(|unsigned| {
        tracing::warn!(webhook = endpoint.name, "message refused: {}", unsigned);
        ProblemCode::Forbidden.because("forbidden")
    })?;
    let id = event_id(endpoint, &message);
    let payload = payload_of(&raw.body)?;
    if payload.len() > MAX_PAYLOAD_BYTES {
        return Err(too_large(MAX_PAYLOAD_BYTES));
    }
    let origin = Origin::Webhook { endpoint: endpoint.name.clone() };
    let new = NewEvent {
        source: Some(source_of(endpoint)),
        circle: endpoint.circle.clone(),
        settled_by: server.pipelines.settler_of(&endpoint.event),
        ..NewEvent::new(&endpoint.event, body_ref(BodyName::Payload, &payload), origin)
    };
    let answer = render(&WebhookTaken { event_id: id.as_str().to_owned() });
    let mut order = Router::publishing(&id, new, payload, source_of(endpoint).into());
    order.keys.extend(remembered(endpoint, &message, &answer, now, &raw.body));
    let answer = match server.daemon.engine().execute(order).await {
        // The same message, or another one that its sender says is the same.
        Ok(_) | Err(EngineError::Refused(Refusal::AlreadyExists)) => answer,
        Err(EngineError::KeyTaken(kept)) => kept.answer.to_vec(),
        Err(error) => return Err(of_engine(&error, id.as_str())),
    };
    Ok(Reply::rendered(answer, Given::Now).accepted())
}

fn too_large(limit: usize) -> Problem {
    ProblemCode::BodyTooLarge.because(format!("the body may have at most {limit} bytes"))
}

fn source_of(endpoint: &Endpoint) -> String {
    format!("webhook:{}", endpoint.name)
}

/// Made from what makes a message the same: what its sender says, or else its signature, which holds its time and its body.
fn event_id(endpoint: &Endpoint, message: &Message<'_>) -> EventId {
    match message.dedupe {
        Some(value) => event_id_of_key(&source_of(endpoint), "dedupe", value),
        None => event_id_of_key(&source_of(endpoint), "signature", &message.signature),
    }
}

/// What its sender says is the same is not signed: where messages have a time, a signature is good for one event all the same.
fn remembered(
    endpoint: &Endpoint,
    message: &Message<'_>,
    answer: &[u8],
    now: Timestamp,
    body: &[u8],
) -> Option<OrderKey> {
    let time = endpoint.time.as_ref().filter(|_| message.dedupe.is_some())?;
    let answer = answer.to_vec();
    Some(OrderKey {
        key: IdempotencyKey {
            principal: source_of(endpoint),
            route: ROUTE.to_owned(),
            key: message.signature.clone(),
        },
        request_sha256: store::sha256(body),
        // A time may be as far ahead of ours as behind it.
        keep_until: now.plus_seconds(time.max_age_seconds.saturating_mul(2).saturating_add(1)),
        render: Arc::new(move |_| answer.clone()),
    })
}
