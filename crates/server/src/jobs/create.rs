//! `POST /jobs`: accepts a job. It is on stable storage when this answers.

use std::borrow::Cow;

use api::{CreateJob, JobCreated, ProblemCode};
use domain::job::{Job, Reporter};
use domain::{JobId, Record};
use engine::accept::AcceptedJob;
use engine::{EngineError, Executors};

use super::new_job::{check_first, check_fit, read_new_job};
use super::order::fit_for_store;
use super::visible::job_of;
use crate::access::authenticate::Principal;
use crate::keyed::{self, Keyed};
use crate::peers;
use crate::render::{Bodies, Extent, RawObject, status};
use crate::reply::{Given, Reply, render};
use crate::request_context::{RequestContext, check_key};
use crate::{Result, Server};

/// The route of its keys, also of those in a batch.
pub(super) const CREATE_JOB: &str = "create_job";

pub(crate) async fn create(server: &Server, asked: RequestContext) -> Result<Reply> {
    let create: CreateJob = asked.read()?;
    let key = key_of(asked.key.as_deref(), create.idempotency_key.as_deref())?;
    let body = without_key(asked.body.as_deref().unwrap_or_default());
    let principal = &asked.principal;
    let keyed = key.map(|key| Keyed::new(principal, CREATE_JOB, key, "", &body));
    match accept(server, principal, keyed.as_ref(), create).await? {
        Ok(accepted) => {
            store::failpoint("answer.before");
            Ok(Reply::rendered(accepted.answer, Given::Now))
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
) -> Result<Result<Accepted, EngineError>> {
    check_first(principal, server.daemon.executors(), &create)?;
    let job = match place(server, principal, create).await {
        Ok(job) => job,
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
    let texts = Bodies::of_order(&job.bodies);
    let mut order = job.order(id.clone(), principal.actor.clone());
    if let Some(keyed) = keyed {
        let (texts, daemon) = (texts.clone(), server.daemon.clone());
        let render = move |record: &Record| {
            let job = job_of(record);
            fit_for_store(&texts, |texts, extent| rendered(daemon.executors(), job, texts, extent))
        };
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
async fn place(server: &Server, principal: &Principal, mut create: CreateJob) -> Result<AcceptedJob> {
    peers::assign(server, principal, &mut create).await?;
    let executors = server.daemon.executors();
    let job = read_new_job(principal, executors, create)?.accept(executors);
    match job.peer_backend(server.now()) {
        Some(backend) if peers::works_there(server, &job.new.spec, backend).await? => Ok(job.left_to_peers()),
        Some(_) | None => check_fit(executors, job),
    }
}

/// The request without the name that its sender gave it: the key is the same wherever it stands.
pub(crate) fn without_key(body: &str) -> Cow<'_, str> {
    let mut members = RawObject::parse(body).unwrap_or_default();
    match members.remove("idempotency_key") {
        Some(_) => Cow::Owned(members.to_text()),
        None => Cow::Borrowed(body),
    }
}

/// The one key of a request that may name it in two places.
pub(crate) fn key_of(header: Option<&str>, body: Option<&str>) -> Result<Option<String>> {
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
    render(&JobCreated { job_id: id.clone(), work_id: id, status })
}
