//! `POST /jobs`: accepts a job. It is on stable storage when this answers.

use std::borrow::Cow;

use api::{CreateJob, JobCreated, Problem, ProblemCode};
use axum::response::Response;
use domain::job::{Job, JobCommand, Reporter};
use domain::{JobId, Record};
use engine::{EngineError, Executors, Order, OrderBody};
use store::limits::MAX_ANSWER_BYTES;

use super::draft::{Draft, check_first, check_fit, draft};
use super::visible::job_of;
use crate::answer::{self, Given};
use crate::asked::{Asked, check_key};
use crate::gate::Principal;
use crate::keyed::{self, Keyed};
use crate::operation::Operation;
use crate::peers;
use crate::render::{Bodies, Extent, status};
use crate::serve::Server;

pub(crate) async fn create(server: &Server, asked: Asked) -> Result<Response, Problem> {
    let create: CreateJob = asked.read()?;
    let key = key_of(asked.key.as_deref(), create.idempotency_key.as_deref())?;
    let body = asked.body.as_deref().unwrap_or_default();
    let principal = &asked.principal;
    let keyed = key.map(|key| Keyed::new(principal, Operation::CreateJob, key, "", body));
    match accept(server, principal, keyed.as_ref(), create).await? {
        Ok(accepted) => {
            store::failpoint("answer.before");
            Ok(answer::bytes(accepted.answer, Given::Now))
        }
        Err(error) => keyed::refused(keyed.as_ref(), &error, ""),
    }
}

/// A job that was accepted, and the answer to whoever sent it.
pub(super) struct Accepted {
    pub(super) id: JobId,
    pub(super) answer: Vec<u8>,
}

/// Checks and accepts one job.
pub(super) async fn accept(
    server: &Server,
    principal: &Principal,
    keyed: Option<&Keyed>,
    create: CreateJob,
) -> Result<Result<Accepted, EngineError>, Problem> {
    check_first(principal, server.daemon.executors(), &create)?;
    let Draft { new, bodies, texts, instead: _ } = match drafted(server, principal, create).await {
        Ok(draft) => draft,
        Err(problem) => {
            // What was answered under a key stands, whoever is called so or works there by now.
            let kept = match keyed {
                Some(keyed) => keyed.kept(server.store()).await?,
                None => None,
            };
            return kept.map(|kept| Err(EngineError::KeyTaken(Box::new(kept)))).ok_or(problem);
        }
    };
    let engine = server.daemon.engine();
    let id = engine.ids().job_id();
    let mut order = Order::new(id.clone(), JobCommand::Create(Box::new(new)), principal.actor.clone());
    order.bodies = bodies.into_iter().map(|body| OrderBody { record: id.clone().into(), body }).collect();
    if let Some(keyed) = keyed {
        let (texts, daemon) = (texts.clone(), server.daemon.clone());
        let render = move |record: &Record| stored_answer(daemon.executors(), job_of(record), &texts);
        order.keys.push(keyed.order_key(server.now(), render));
    }
    Ok(match engine.execute(order).await {
        Ok(outcome) => {
            server.metrics.accepted();
            let sent = keyed.and_then(Keyed::sent);
            let job = job_of(outcome.record());
            let executors = server.daemon.executors();
            let answer = sent.unwrap_or_else(|| rendered(executors, job, &texts, Extent::Whole));
            Ok(Accepted { id, answer })
        }
        Err(error) => Err(error),
    })
}

/// The job, once it is known which peer is meant, and whether one is there that does it.
async fn drafted(server: &Server, principal: &Principal, mut create: CreateJob) -> Result<Draft, Problem> {
    peers::assign(server, principal, &mut create).await?;
    let draft = draft(principal, server.daemon.executors(), create)?;
    let Some(instead) = &draft.instead else { return Ok(draft) };
    // Who is there now may not be when it is due.
    let is_due = draft.new.due_at.is_none_or(|due_at| due_at <= server.now());
    if is_due && peers::works_there(server, &draft.new.spec, &instead.backend).await? {
        return Ok(draft.left_to_peers());
    }
    check_fit(server.daemon.executors(), &draft.new.spec)?;
    Ok(draft)
}

/// The one key of a request that may name it in two places.
pub(crate) fn key_of(header: Option<&str>, body: Option<&str>) -> Result<Option<String>, Problem> {
    if let Some(key) = body {
        check_key(key, "body")?;
    }
    match (header, body) {
        (Some(header), Some(body)) if header != body => Err(ProblemCode::InvalidIdempotencyKey
            .because("the header and the body name different idempotency keys; send one")),
        (header, body) => Ok(header.or(body).map(str::to_owned)),
    }
}

fn rendered(executors: &Executors, job: &Job, texts: &Bodies, extent: Extent) -> Vec<u8> {
    let id = Cow::Borrowed(job.id.as_str());
    // A new job has no attempt whose id could be told.
    let status = status(executors, job, None, texts, extent, &Reporter::Daemon);
    answer::render(&JobCreated { job_id: id.clone(), work_id: id, status })
}

/// An answer that fits into the store.
fn stored_answer(executors: &Executors, job: &Job, texts: &Bodies) -> Vec<u8> {
    let whole = rendered(executors, job, texts, Extent::Whole);
    if whole.len() <= MAX_ANSWER_BYTES {
        return whole;
    }
    rendered(executors, job, &Bodies::default(), Extent::Cut)
}
