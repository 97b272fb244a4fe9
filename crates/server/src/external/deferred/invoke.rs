//! `POST /v1/capabilities/{executor}/invoke`: every call that is accepted is a job, on stable storage before anything is answered.

use std::sync::Arc;

use api::deferred::{Invoke, Mode, Timing};
use api::{JsonObject, ProblemCode};
use domain::job::JobSpec;
use domain::policy::LifeLimit;
use domain::{BodyName, JobId, Record, RecordId, Refusal, Timestamp};
use engine::EngineError;
use engine::accept::NewJobRequest;
use serde_json::value::RawValue;
use store::KeptKey;

use super::capability::{Capability, admit};
use super::face::Face;
use super::handle::{ASYNC, SOURCE_KIND, SYNC, job_id_under};
use super::read::{Shown, status_response};
use super::schemas::{Document, check, is_causal_context};
use super::waited::{self, Settled};
use crate::http::slots::Slot;
use crate::jobs::{check_fit, job_of, key_of, own_job, time, without_key};
use crate::keyed::Keyed;
use crate::problem::{at, at_field, of_engine};
use crate::render::RawObject;
use crate::reply::{Given, Reply, render};
use crate::wait;
use crate::{RequestContext, Result, Server};

/// Seconds that a job lives on after the wait of its caller is over: the stop comes first, and this if the daemon died in between.
const AFTER_THE_WAIT_SECONDS: u64 = 5;

pub(crate) async fn invoke(server: &Arc<Server>, asked: RequestContext) -> Result<Reply> {
    let sent: Invoke = asked.read()?;
    invoke_as(server, asked, sent).await
}

/// The mode that a client of the host's own route asks for.
pub(crate) fn host_mode(asked: &RequestContext) -> Result<Mode> {
    match asked.parameter("mode").as_deref() {
        None | Some("sync") => Ok(Mode::Sync),
        Some("deferred") => Ok(Mode::Async),
        Some(_) => {
            let told = "mode must be one of: sync, deferred";
            Err(at(ProblemCode::InvalidRequest, "literal_error", &["query", "mode"], told))
        }
    }
}

/// The same on the route of the host's own clients: the body is the input, and `?mode=deferred` takes a handle.
pub(crate) async fn invoke_as_host(server: &Arc<Server>, asked: RequestContext) -> Result<Reply> {
    let mode = host_mode(&asked)?;
    let input: Box<RawValue> = asked.read()?;
    // An envelope may name the call itself.
    let named = RawObject::parse(input.get()).and_then(|envelope| envelope.text("idempotency/key"));
    let sent = Invoke {
        input: Some(input),
        timing: Timing { mode, timeout_ms: None },
        idempotency_key: named,
        ..Invoke::default()
    };
    invoke_as(server, asked, sent).await
}

async fn invoke_as(server: &Arc<Server>, mut asked: RequestContext, sent: Invoke) -> Result<Reply> {
    let slot = asked.slot.take();
    let capability = Capability::named(server, asked.principal.circle.as_deref(), &asked.id)?;
    capability.check(sent.timing.mode)?;
    check_input(&capability, sent.input.as_deref())?;
    let key = key_of(asked.key.as_deref(), sent.idempotency_key.as_deref())?;
    let body = without_key(asked.body.as_deref().unwrap_or_default());
    let keyed =
        |key: &String| Keyed::new(&asked.principal, asked.operation.name, key.clone(), &asked.id, &body);
    let source_id = match sent.timing.mode {
        Mode::Async => ASYNC,
        Mode::Sync => SYNC,
    };
    let call = Call {
        server,
        asked: &asked,
        capability: &capability,
        keyed: key.iter().map(keyed).collect(),
        id: key.map(|key| job_id_under(&asked.principal, &capability.kind, &key)),
        source: Source { kind: SOURCE_KIND, id: source_id.to_owned(), tags: Vec::new() },
    };
    match carry_out(&call, sent, slot).await? {
        Came::Waited(settled) => waited::outcome(server, &settled).await,
        Came::Handle(response) => Ok(response),
    }
}

/// One call of a capability that may be called so.
pub(crate) struct Call<'a> {
    pub(crate) server: &'a Arc<Server>,
    pub(crate) asked: &'a RequestContext,
    pub(crate) capability: &'a Capability,
    /// The names under which it is the same call, whenever it comes.
    pub(crate) keyed: Vec<Keyed>,
    /// The id that follows from its name, if it has one.
    pub(crate) id: Option<JobId>,
    pub(crate) source: Source,
}

/// What the job of a call says of where it came from.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) kind: &'static str,
    pub(crate) id: String,
    pub(crate) tags: Vec<String>,
}

/// What a call came to.
pub(crate) enum Came {
    /// Its caller waited for it.
    Waited(Settled),
    /// Its caller has a handle, or how it ended if that came first.
    Handle(Reply),
}

/// Accepts a call, unless it was accepted before, and waits for it if its caller does.
pub(crate) async fn carry_out(call: &Call<'_>, sent: Invoke, slot: Option<Slot>) -> Result<Came> {
    let (server, asked, mode) = (call.server, call.asked, sent.timing.mode);
    let causal_context = causal_context(sent.causal_context.as_ref())?;
    // Whoever waits gives the place of a request back: there are others for those who wait.
    let waits = mode == Mode::Sync || asked.wait.is_some();
    let place = if waits { Some(server.slots.wait()?) } else { None };
    let slot = slot.filter(|_| !waits);
    let within = waited::within(call.capability, sent.timing.timeout_ms);
    let (id, given) = match call.earlier().await? {
        Some(kept) => (kept.record.clone(), Some(kept)),
        None => call.accept(sent, causal_context.clone()).await?,
    };
    let came = match mode {
        Mode::Sync => {
            waited::settle(server, &id, within, asked.principal.actor.clone()).await.map(Came::Waited)
        }
        Mode::Async => call.handle(&id, given.as_ref(), causal_context).await.map(Came::Handle),
    };
    drop((place, slot));
    came
}

impl Call<'_> {
    /// What was answered to this call before.
    async fn earlier(&self) -> Result<Option<KeptKey>> {
        for keyed in &self.keyed {
            if let Some(kept) = keyed.kept(self.server.store()).await? {
                return Ok(Some(kept));
            }
        }
        Ok(None)
    }

    /// Writes the job. If somebody was faster under the same key, it is theirs.
    async fn accept(
        &self,
        sent: Invoke,
        causal_context: Option<Box<RawValue>>,
    ) -> Result<(RecordId, Option<KeptKey>)> {
        let Self { server, asked, capability, .. } = self;
        let (mode, now) = (sent.timing.mode, server.now());
        let executors = server.daemon.executors();
        let job = check_fit(executors, self.job(sent, now)?.accept(executors))?;
        let _admitted = admit(server, capability).await?;
        let id = self.id.clone().unwrap_or_else(|| server.daemon.engine().ids().job_id());
        let record_id = RecordId::from(id.clone());
        let mut order = job.order(id.clone(), asked.principal.actor.clone());
        for keyed in &self.keyed {
            let (daemon, capability) = (server.daemon.clone(), (*capability).clone());
            let causal_context = causal_context.clone();
            order.keys.push(keyed.order_key(now, move |record| match mode {
                Mode::Async => handle_bytes(&daemon, record, &capability, causal_context.clone()),
                // The result is not known yet; whoever asks again waits for the same job.
                Mode::Sync => Vec::new(),
            }));
        }
        match server.daemon.engine().execute(order).await {
            Ok(_) => {
                server.metrics.accepted();
                Ok((record_id, None))
            }
            // Somebody was faster, with the same request or with another.
            Err(error @ (EngineError::KeyTaken(_) | EngineError::Refused(Refusal::AlreadyExists))) => {
                match self.earlier().await? {
                    Some(kept) => Ok((kept.record.clone(), Some(kept))),
                    None => Err(of_engine(&error, id.as_str())),
                }
            }
            Err(error) => Err(of_engine(&error, id.as_str())),
        }
    }

    /// The job that this call is.
    fn job(&self, sent: Invoke, now: Timestamp) -> Result<NewJobRequest> {
        let capability = self.capability;
        let timeout_ms = sent.timing.timeout_ms;
        if timeout_ms == Some(0) {
            let loc = ["body", "timing", "timeout_ms"];
            return Err(at(ProblemCode::InvalidRequest, "int_range", &loc, "timeout_ms is at least 1"));
        }
        let deadline_at = time(&["body", "deadline_at"], sent.deadline_at.as_deref())?;
        let (granted, limit) = capability.life(deadline_at, now)?;
        let ((expires_at, limit), timeout_seconds) = match sent.timing.mode {
            Mode::Async => ((granted, limit), timeout_ms.map(|ms| u64::from(ms).div_ceil(1_000))),
            // The end of the wait stops the job. A time limit of the same length would race with that.
            Mode::Sync => {
                let within = waited::within(capability, timeout_ms);
                let waited = now.plus_seconds(within.as_secs() + AFTER_THE_WAIT_SECONDS);
                let first = if waited < granted { (waited, LifeLimit::Wait) } else { (granted, limit) };
                (first, None)
            }
        };
        let input = sent.input.map(|input| (BodyName::Input, input.get().to_owned()));
        let provenance = sent
            .causal_context
            .map(|context| (BodyName::Provenance, format!(r#"{{"causal_context":{}}}"#, context.as_str())));
        let spec = JobSpec {
            title: capability.executor.clone(),
            deadline_at,
            expires_at: Some(expires_at),
            expires_by: Some(limit),
            correlation_id: sent.correlation_id,
            timeout_seconds,
            tags: self.source.tags.clone(),
            source_kind: Some(self.source.kind.to_owned()),
            source_id: Some(self.source.id.clone()),
            wait: (sent.timing.mode == Mode::Sync).then(|| waited::wait_of(capability, timeout_ms)),
            allow_restart_recovery: sent.allow_restart_recovery,
            catalog_digest: Some(capability.digest()),
            ..own_job(&self.asked.principal, Some(&capability.executor))?
        };
        Ok(NewJobRequest::plain(spec, input.into_iter().chain(provenance).collect()))
    }

    /// The handle; or, if the caller would like to wait and it ends in time, how it ended.
    async fn handle(
        &self,
        id: &RecordId,
        given: Option<&KeptKey>,
        causal_context: Option<Box<RawValue>>,
    ) -> Result<Reply> {
        let server = self.server;
        if let Some(within) = self.asked.wait {
            let record = wait::until(server, id, within, |job| job.state.name().is_terminal()).await?;
            if job_of(&record).state.name().is_terminal() {
                let shown = Shown::of(server, record).await?;
                return status_response(server, &shown, self.asked.wait).await;
            }
        }
        let bytes = match (given, self.keyed.first().and_then(Keyed::sent)) {
            (Some(kept), _) => kept.answer.to_vec(),
            (None, Some(sent)) => sent,
            (None, None) => {
                let record = wait::until(server, id, std::time::Duration::ZERO, |_| true).await?;
                handle_bytes(&server.daemon, &record, self.capability, causal_context)
            }
        };
        let was = if given.is_some() { Given::Before } else { Given::Now };
        accepted(bytes, was)
    }
}

/// Refuses an input that does not fit what the executor takes. What is wrong is told by its place, not by its value.
fn check_input(capability: &Capability, input: Option<&RawValue>) -> Result<()> {
    let Some(schema) = &capability.contract.parameters else { return Ok(()) };
    schema.check(input.map_or("null", RawValue::get).as_bytes()).map_err(|misfit| {
        let loc = ["body", "input", &*misfit.place];
        at(ProblemCode::InvalidRequest, "schema", &loc, format!("input: {misfit}"))
    })
}

/// 202, with the headers that say the same as the document.
fn accepted(bytes: Vec<u8>, given: Given) -> Result<Reply> {
    let document = check(Document::Operation, &bytes)?;
    Ok(Reply {
        retry_after_seconds: document["retry_after_seconds"].as_u64(),
        location: document["status_href"].as_str().map(str::to_owned),
        ..Reply::rendered(bytes, given).accepted()
    })
}

fn handle_bytes(
    daemon: &engine::Daemon,
    record: &Record,
    capability: &Capability,
    causal_context: Option<Box<RawValue>>,
) -> Vec<u8> {
    let (executors, policy) = (daemon.executors(), daemon.policy());
    let face = Face { job: job_of(record), operation: None, executors, policy };
    // A job that is none of ours would not fit the schema, and not leave.
    render(&face.accepted(capability, causal_context))
}

fn causal_context(sent: Option<&JsonObject>) -> Result<Option<Box<RawValue>>> {
    let Some(context) = sent else { return Ok(None) };
    if !is_causal_context(context.as_str()) {
        let told = "causal/context must be a causal-context.v1; see docs/schemas";
        return Err(at_field("causal/context", "value_error", told));
    }
    Ok(RawValue::from_string(context.as_str().to_owned()).ok())
}
