//! `POST /pipeline/{name}`: starts a pipeline by its name, whatever its condition says. Whoever starts a synchronous one waits.
//!
//! Whether there is a place to wait is settled before anything is written.

use std::sync::Arc;
use std::time::Duration;

use api::ProblemCode;
use api::ductile::{DuctileJob, DuctileLate, DuctileOutcome, DuctileTriggered};
use config_file::hint;
use domain::run::{Readiness, Run, RunCommand, RunState};
use domain::{Command, Record, RecordId, RunId};
use engine::{EngineError, Order};
use pipelines::{Mode, Pipeline, run_id_of};

use super::plugin::payload_of;
use super::status;
use super::tree::tree;
use crate::keyed::Keyed;
use crate::problem::{echoed, of_engine};
use crate::reply::{Given, Reply, render};
use crate::routing::events::new_id;
use crate::routing::pipelines::asked_for;
use crate::routing::runs::run_of;
use crate::wait::{MAX_WAIT_SECONDS, until_record};
use crate::{RequestContext, Result, Server};

pub(crate) async fn trigger_pipeline(server: &Arc<Server>, mut asked: RequestContext) -> Result<Reply> {
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
    let answered = outcome(server, triggered, &pipeline).await;
    drop(place);
    answered
}

fn named(server: &Server, name: &str) -> Result<Arc<Pipeline>> {
    let routes = server.pipelines.routes();
    routes.find(name).cloned().ok_or_else(|| {
        let known: Vec<&str> = routes.names().collect();
        let near = hint(name, &known);
        ProblemCode::NotFound.because(format!("no pipeline is named {:?}{near}", echoed(name)))
    })
}

/// Starts it, or finds what the same request has started.
async fn start(
    server: &Server,
    asked: &RequestContext,
    pipeline: &Pipeline,
) -> Result<(DuctileTriggered, Given)> {
    let payload = payload_of(asked)?.get().as_bytes().to_vec();
    let keyed = Keyed::of(asked, &asked.id);
    if let Some(keyed) = &keyed
        && let Some(kept) = keyed.kept(server.store()).await?
    {
        return earlier(&kept.answer);
    }
    let new = asked_for(asked, pipeline, None, &payload)?;
    let (engine, actor) = (server.daemon.engine(), asked.principal.actor.clone());
    let id = new_id(server, asked);
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

fn earlier(answer: &[u8]) -> Result<(DuctileTriggered, Given)> {
    let told = "what was answered before cannot be read";
    let triggered = serde_json::from_slice(answer).map_err(|_| ProblemCode::Internal.because(told))?;
    Ok((triggered, Given::Before))
}

/// The job that the run begins with; the run itself if there is none, because a condition does not hold or a template fails.
fn first_job(order: &Order, run_id: &RunId) -> String {
    let prepared = order.also.iter().filter_map(|consequence| {
        let Command::Run(RunCommand::Advance(prepared)) = &consequence.command else { return None };
        Some(prepared)
    });
    let mut job_ids = prepared.flatten().filter_map(|prepared| {
        let Readiness::Job { job_id, .. } = &prepared.readiness else { return None };
        Some(job_id.as_str())
    });
    job_ids.next().unwrap_or(run_id.as_str()).to_owned()
}

/// What came of it within the longest wait of the server, or that it goes on.
async fn outcome(server: &Server, triggered: DuctileTriggered, pipeline: &Pipeline) -> Result<Reply> {
    let gone = || ProblemCode::NotFound.because("the run is not kept any more");
    let run_id = triggered.run_id.ok_or_else(gone)?;
    let id = RecordId::parse(&run_id).map_err(|_| gone())?;
    let within = Duration::from_secs(pipeline.timeout_seconds.min(MAX_WAIT_SECONDS));
    let is_over = |record: &Record| run_of(record).end.is_some();
    let record = until_record(server, &id, within, is_over).await?.ok_or_else(gone)?;
    let run = run_of(&record);
    if run.end.is_none() {
        let message = format!("the pipeline goes on; ask GET /job/{run_id} for its end");
        let job_id = triggered.job_id;
        let late =
            DuctileLate { job_id, run_id, status: "running".to_owned(), timeout_exceeded: true, message };
        return Ok(Reply::json(&late).accepted());
    }
    let tree = tree(server, run).await?;
    let took = run.ended_at.unwrap_or(run.updated_at).micros() - run.started_at.micros();
    Ok(Reply::json(&DuctileOutcome {
        job_id: triggered.job_id,
        run_id,
        status: ended_as(run, &tree).to_owned(),
        duration_ms: u64::try_from(took / 1_000).unwrap_or_default(),
        result: tree.iter().rev().find_map(|job| job.result.clone()),
        tree,
    }))
}

/// The word of the last job that came to nothing, if the run did.
fn ended_as<'t>(run: &Run, tree: &'t [DuctileJob]) -> &'t str {
    let unwell = tree.iter().rev().map(|job| job.status.as_str()).find(|status| *status != "succeeded");
    match run.state() {
        RunState::Failed => unwell.unwrap_or("failed"),
        RunState::Running | RunState::Cancelling | RunState::Completed | RunState::Cancelled => {
            status::of_run(run)
        }
    }
}
