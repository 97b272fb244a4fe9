//! An event as it is shown.

use api::{EventOrigin, EventProcessed, EventRoute, JsonObject};
use domain::Record;
use domain::event::{Disposition, Event, Origin, Processed, Routed, Settler};

use crate::clock_text::text;

/// The event behind a record that is known to be one.
pub(super) fn event_of(record: &Record) -> &Event {
    record.as_event().expect("an event's id names an event")
}

pub(super) fn shown(event: &Event, payload: Option<JsonObject>) -> api::Event {
    let (said, settled) = (&event.said, event.settled.as_ref());
    let settlement = settled.map(|settled| &settled.settlement);
    api::Event {
        event_id: event.id.as_str().to_owned(),
        kind: said.kind.clone(),
        status: event.status().as_str().to_owned(),
        origin: origin(&said.origin),
        source: said.source.clone(),
        dedupe_key: said.dedupe_key.clone(),
        circle: said.circle.clone(),
        depth: said.depth,
        correlation: said.correlation.as_ref().and_then(|json| JsonObject::parse(json.as_str()).ok()),
        published_at: text(event.published_at),
        settled_at: settled.map(|settled| text(settled.at)),
        routes: settlement.map_or_else(Vec::new, |settled| settled.routes.iter().map(route).collect()),
        moved_its_run: settlement.is_some_and(|settled| settled.moved_its_run),
        settled_by: match said.settled_by {
            Settler::Router => "router",
            Settler::Claimants => "claimants",
        }
        .to_owned(),
        processed: settlement.and_then(|settlement| settlement.processed.as_ref()).map(processed),
        payload,
    }
}

fn processed(processed: &Processed) -> EventProcessed {
    EventProcessed {
        reason: processed.reason.clone(),
        owner_id: processed.owner_id.clone(),
        work_order_id: processed.work_order_id.clone(),
    }
}

fn origin(origin: &Origin) -> EventOrigin {
    let of = |kind: &str| EventOrigin { kind: kind.to_owned(), ..EventOrigin::default() };
    match origin {
        Origin::Published { by } => EventOrigin { by: by.clone(), ..of("published") },
        Origin::Asked { pipeline, by } => {
            EventOrigin { by: by.clone(), pipeline: Some(pipeline.clone()), ..of("asked") }
        }
        Origin::Webhook { endpoint } => EventOrigin { endpoint: Some(endpoint.clone()), ..of("webhook") },
        Origin::Emitted { job_id, ordinal: _ } => {
            EventOrigin { job_id: Some(job_id.as_str().to_owned()), ..of("emitted") }
        }
        Origin::JobEnded { job_id } => {
            EventOrigin { job_id: Some(job_id.as_str().to_owned()), ..of("job_ended") }
        }
    }
}

fn route(routed: &Routed) -> EventRoute {
    let (run_id, reason) = match &routed.disposition {
        Disposition::Started(run_id) | Disposition::DuplicateOf(run_id) => {
            (Some(run_id.as_str().to_owned()), None)
        }
        Disposition::PredicateInvalid(why) | Disposition::Invalid(why) => (None, Some(why.clone())),
        Disposition::DepthExceeded(depth) => (None, Some(format!("{depth} events led to it"))),
        Disposition::OtherSource | Disposition::PredicateFalse => (None, None),
    };
    EventRoute {
        pipeline: routed.pipeline.clone(),
        disposition: routed.disposition.as_str().to_owned(),
        run_id,
        reason,
    }
}
