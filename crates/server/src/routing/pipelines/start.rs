//! `POST /pipelines/{name}/runs`: starts a pipeline by its name, in one commit with the event that stands for the request, and waits for
//! its end if the caller likes.

use std::time::Duration;

use api::{PipelineStarted, StartPipeline};
use domain::event::{Disposition, NewEvent, Origin};
use domain::{BodyName, EventId, Record, RunId};
use pipelines::{Pipeline, run_id_of};
use store::body_ref;

use super::named;
use crate::access::authorise;
use crate::jobs::{Begun, begin};
use crate::keyed::{self, Keyed};
use crate::problem::{no_such, of_engine, of_refusal};
use crate::reply::{Given, Reply, render};
use crate::routing::events::{new_id, payload_of};
use crate::routing::runs::{run_of, whole};
use crate::wait::{MAX_WAIT_SECONDS, until_record};
use crate::{RequestContext, Result, Server};

pub(crate) async fn start(server: &Server, mut asked: RequestContext) -> Result<Reply> {
    let slot = asked.slot.take();
    let sent: StartPipeline = asked.read_or_default()?;
    let within = Duration::from_secs(sent.wait_seconds.unwrap_or_default().min(MAX_WAIT_SECONDS));
    // Before anything begins: whoever cannot wait is told while nothing has happened.
    let place = if within.is_zero() { None } else { Some(server.slots.wait()?) };
    let event_id = new_id(server, &asked);
    let run_id = run_id_of(&event_id, &asked.id);
    let response = match begin(server, &asked).await? {
        Begun::Earlier(response) => response,
        Begun::New(keyed) => begun(server, &asked, sent, &event_id, keyed).await?,
    };
    if place.is_none() {
        return Ok(response.accepted());
    }
    drop(slot);
    let ended = |record: &Record| run_of(record).end.is_some();
    match until_record(server, &run_id.clone().into(), within, ended).await? {
        Some(record) => Ok(waited(&event_id, &run_id, &record)),
        // It was so long ago that the run is forgotten.
        None => Ok(response.accepted()),
    }
}

async fn begun(
    server: &Server,
    asked: &RequestContext,
    sent: StartPipeline,
    event_id: &EventId,
    keyed: Option<Keyed>,
) -> Result<Reply> {
    let pipeline = named(server, asked)?;
    let payload = payload_of(sent.payload.as_ref());
    let new = asked_for(asked, &pipeline, sent.circle, &payload)?;
    new.check().map_err(|refusal| of_refusal(&refusal, ""))?;
    let (router, engine, now) = (&server.pipelines, server.daemon.engine(), server.now());
    let actor = asked.principal.actor.clone();
    let order = router.starting(server.store(), event_id, new, payload, actor, now).await;
    let mut order = order.map_err(|error| of_engine(&error, &asked.id))?;
    if let Some(keyed) = &keyed {
        order.keys.push(keyed.order_key(now, accepted));
    }
    match engine.execute(order).await {
        Ok(outcome) if started(outcome.record()).is_none() => Err(no_such("pipeline", &asked.id)),
        Ok(outcome) => {
            let sent = keyed.as_ref().and_then(Keyed::sent);
            Ok(Reply::rendered(sent.unwrap_or_else(|| accepted(outcome.record())), Given::Now))
        }
        Err(error) => keyed::refused(keyed.as_ref(), &error, &asked.id),
    }
}

/// The event that stands for the request for a pipeline.
pub(crate) fn asked_for(
    asked: &RequestContext,
    pipeline: &Pipeline,
    circle: Option<String>,
    payload: &[u8],
) -> Result<NewEvent> {
    let by = Some(asked.principal.actor.to_string());
    let origin = Origin::Asked { pipeline: pipeline.name.clone(), by };
    let circle = authorise::circle_of_new(&asked.principal, circle)?;
    let payload = body_ref(BodyName::Payload, payload);
    Ok(NewEvent { circle, ..NewEvent::new(pipeline.trigger.kind(), payload, origin) })
}

/// The run that an event has started, if it has.
fn started(record: &Record) -> Option<(&EventId, &RunId)> {
    let Record::Event(event) = record else { return None };
    let routes = &event.settled.as_ref()?.settlement.routes;
    routes.iter().find_map(|routed| {
        let Disposition::Started(run_id) = &routed.disposition else { return None };
        Some((&event.id, run_id))
    })
}

/// The answer to whoever does not wait: nothing in it ever changes.
fn accepted(record: &Record) -> Vec<u8> {
    let (event_id, run_id) = started(record)
        .map_or_else(Default::default, |(event, run)| (event.as_str().to_owned(), run.as_str().to_owned()));
    render(&PipelineStarted { event_id, run_id, timeout_exceeded: None, run: None })
}

fn waited(event_id: &EventId, run_id: &RunId, record: &Record) -> Reply {
    let run = run_of(record);
    let exceeded = run.end.is_none();
    let response = Reply::json(&PipelineStarted {
        event_id: event_id.as_str().to_owned(),
        run_id: run_id.as_str().to_owned(),
        timeout_exceeded: Some(exceeded),
        run: Some(whole(run)),
    });
    if exceeded { response.accepted() } else { response }
}
