//! `POST /pipeline/{name}`: starts a pipeline by its name, whatever its condition says. Whoever starts a synchronous one waits.
//!
//! Whether there is a place to wait is settled before anything is written.

use std::sync::Arc;

use api::ductile::DuctileTriggered;
use api::{Problem, ProblemCode};
use config_file::hint;
use domain::event::{NewEvent, Origin};
use domain::run::{Readiness, RunCommand};
use domain::{BodyName, Command, EventId, RunId};
use engine::{EngineError, Order};
use pipelines::{Mode, Pipeline};
use pipelines::{event_id_of_key, run_id_of};
use store::body_ref;

use super::payload::payload_of;
use super::waited;
use crate::access::authorise;
use crate::keyed::Keyed;
use crate::problem::of_engine;
use crate::reply::{Given, Reply, render};
use crate::request_context::RequestContext;
use crate::server::Server;

pub(crate) async fn trigger_pipeline(
    server: &Arc<Server>,
    mut asked: RequestContext,
) -> Result<Reply, Problem> {
    let slot = asked.slot.take();
    let pipeline = named(server, &asked.id)?;
    let is_waited_for =
        pipeline.mode == Mode::Synchronous && asked.parameter("async").as_deref() != Some("true");
    let place = if is_waited_for { Some(server.slots.wait()?) } else { None };
    let (triggered, given) = start(server, &asked, &pipeline).await?;
    let Some(place) = place else {
        return Ok(Reply::rendered(render(&triggered), given).accepted());
    };
    // The place of the request is free while it waits.
    drop(slot);
    let answered = waited::outcome(server, triggered, &pipeline).await;
    drop(place);
    answered
}

fn named(server: &Server, name: &str) -> Result<Arc<Pipeline>, Problem> {
    let routes = server.pipelines.routes();
    routes.find(name).cloned().ok_or_else(|| {
        let known: Vec<&str> = routes.names().collect();
        let echoed: String = name.chars().take(128).collect();
        ProblemCode::NotFound.because(format!("no pipeline is named {echoed:?}{}", hint(name, &known)))
    })
}

/// Starts it, or finds what the same request has started.
async fn start(
    server: &Server,
    asked: &RequestContext,
    pipeline: &Pipeline,
) -> Result<(DuctileTriggered, Given), Problem> {
    let payload = payload_of(asked)?.get().as_bytes().to_vec();
    let keyed = asked.key.clone().map(|key| {
        let body = asked.body.as_deref().unwrap_or_default();
        Keyed::new(&asked.principal, asked.operation.name, key, &asked.id, body)
    });
    if let Some(keyed) = &keyed
        && let Some(kept) = keyed.kept(server.store()).await?
    {
        return earlier(&kept.answer);
    }
    let new = new_event(asked, pipeline, &payload)?;
    let (engine, actor) = (server.daemon.engine(), asked.principal.actor.clone());
    let id = match &asked.key {
        Some(key) => event_id_of_key(&asked.principal.token_id, asked.operation.name, key),
        None => EventId::new(format!("event-{:032x}", engine.ids().next())),
    };
    let run_id = run_id_of(&id, &pipeline.name);
    let router = &server.pipelines;
    let order = router.starting(engine.store(), &id, new, payload, actor, server.now()).await;
    let mut order = order.map_err(|error| of_engine(&error, &asked.id))?;
    let triggered = DuctileTriggered {
        job_id: first_job(&order, &run_id),
        status: "queued".to_owned(),
        plugin: "pipeline".to_owned(),
        command: pipeline.name.clone(),
        run_id: Some(run_id.as_str().to_owned()),
    };
    if let Some(keyed) = &keyed {
        let answer = render(&triggered);
        order.keys.push(keyed.order_key(server.now(), move |_| answer.clone()));
    }
    match engine.execute(order).await {
        Ok(_) => {
            server.metrics.accepted();
            Ok((triggered, Given::Now))
        }
        Err(EngineError::KeyTaken(kept)) => match &keyed {
            Some(keyed) => earlier(&keyed.kept_bytes(&kept)?),
            None => Err(of_engine(&EngineError::KeyTaken(kept), &asked.id)),
        },
        Err(error) => Err(of_engine(&error, &asked.id)),
    }
}

fn earlier(answer: &[u8]) -> Result<(DuctileTriggered, Given), Problem> {
    let told = "what was answered before cannot be read";
    let triggered = serde_json::from_slice(answer).map_err(|_| ProblemCode::Internal.because(told))?;
    Ok((triggered, Given::Before))
}

fn new_event(asked: &RequestContext, pipeline: &Pipeline, payload: &[u8]) -> Result<NewEvent, Problem> {
    let kind = pipeline.trigger.kind();
    let by = Some(asked.principal.actor.to_string());
    let origin = Origin::Asked { pipeline: pipeline.name.clone(), by };
    let circle = authorise::circle_of_new(&asked.principal, None)?;
    Ok(NewEvent { circle, ..NewEvent::new(kind, body_ref(BodyName::Payload, payload), origin) })
}

/// The job that the run begins with; the run itself if there is none, because a condition does not hold or a template fails.
fn first_job(order: &Order, run_id: &RunId) -> String {
    let prepared = order.also.iter().filter_map(|consequence| {
        if let Command::Run(RunCommand::Advance(prepared)) = &consequence.command {
            Some(prepared)
        } else {
            None
        }
    });
    let job_ids = prepared.flatten().filter_map(|prepared| match &prepared.readiness {
        Readiness::Job { job_id, .. } => Some(job_id.as_str()),
        Readiness::Enter | Readiness::Skip | Readiness::Fail { .. } => None,
    });
    job_ids.into_iter().next().unwrap_or(run_id.as_str()).to_owned()
}
