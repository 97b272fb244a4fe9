//! `POST /v1/capabilities/{executor}/invoke`: every call that is accepted is a job, on stable storage before anything is answered.

use std::sync::Arc;

use api::deferred::{Invoke, Mode};
use api::{CreateJob, FieldError, JsonObject, Problem, ProblemCode};
use axum::http::header::{LOCATION, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use domain::job::JobCommand;
use domain::{JobId, Record, RecordId, Refusal, Timestamp};
use engine::{EngineError, Order, OrderBody};
use serde_json::value::RawValue;
use store::KeptKey;

use super::capability::{Capability, admit};
use super::face::Face;
use super::handle::{ASYNC, SOURCE_KIND, SYNC, job_id_under};
use super::read::{Shown, status_response};
use super::schemas::{Document, check, is_causal_context};
use super::waited::{self, Settled};
use crate::answer::{self, Given};
use crate::asked::Asked;
use crate::clock_text;
use crate::jobs::{Draft, draft, job_of, key_of, time};
use crate::keyed::Keyed;
use crate::problem::of_engine;
use crate::serve::Server;
use crate::slots::Slot;
use crate::wait;

/// Seconds that a job lives on after the wait of its caller is over: the stop comes first, and this if the daemon died in between.
const AFTER_THE_WAIT_SECONDS: u64 = 5;

pub(crate) async fn invoke(
    server: &Arc<Server>,
    asked: Asked,
    slot: Option<Slot>,
) -> Result<Response, Problem> {
    let sent: Invoke = asked.read()?;
    let capability = Capability::named(server, asked.principal.circle.as_deref(), &asked.id)?;
    capability.check(sent.timing.mode)?;
    check_input(&capability, sent.input.as_deref())?;
    let key = key_of(asked.key.as_deref(), sent.idempotency_key.as_deref())?;
    let body = asked.body.as_deref().unwrap_or_default();
    let keyed = |key: &String| Keyed::new(&asked.principal, asked.operation, key.clone(), &asked.id, body);
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
    pub(crate) asked: &'a Asked,
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
    Handle(Response),
}

/// Accepts a call, unless it was accepted before, and waits for it if its caller does.
pub(crate) async fn carry_out(call: &Call<'_>, sent: Invoke, slot: Option<Slot>) -> Result<Came, Problem> {
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
    async fn earlier(&self) -> Result<Option<KeptKey>, Problem> {
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
    ) -> Result<(RecordId, Option<KeptKey>), Problem> {
        let Self { server, asked, capability, .. } = self;
        let (mode, now) = (sent.timing.mode, server.now());
        let create = self.job(sent, now)?;
        let Draft { mut new, bodies, .. } = draft(&asked.principal, server.daemon.executors(), create)?;
        new.spec.source_kind = Some(self.source.kind.to_owned());
        new.spec.source_id = Some(self.source.id.clone());
        let _admitted = admit(server, capability).await?;
        let id = self.id.clone().unwrap_or_else(|| server.daemon.engine().ids().job_id());
        let record_id = RecordId::from(id.clone());
        let command = JobCommand::Create(Box::new(new));
        let mut order = Order::new(record_id.clone(), command, asked.principal.actor.clone());
        order.bodies = bodies.into_iter().map(|body| OrderBody { record: record_id.clone(), body }).collect();
        for keyed in &self.keyed {
            let (daemon, capability) = (server.daemon.clone(), (*capability).clone());
            let causal_context = causal_context.clone();
            order.keys.push(keyed.order_key(now, move |record| match mode {
                Mode::Async => handle_bytes(daemon.executors(), record, &capability, causal_context.clone()),
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
    fn job(&self, sent: Invoke, now: Timestamp) -> Result<CreateJob, Problem> {
        let timeout_ms = sent.timing.timeout_ms;
        if timeout_ms == Some(0) {
            let told = "timeout_ms is at least 1";
            let error = FieldError::new("int_range", &["body", "timing", "timeout_ms"], told);
            return Err(ProblemCode::InvalidRequest.because(told).at(error));
        }
        let deadline_at = time(&["body", "deadline_at"], sent.deadline_at.as_deref())?;
        let granted = self.capability.expires_at(deadline_at, now)?;
        let expires_at = match sent.timing.mode {
            Mode::Async => granted,
            Mode::Sync => {
                let within = waited::within(self.capability, timeout_ms);
                granted.min(now.plus_seconds(within.as_secs() + AFTER_THE_WAIT_SECONDS))
            }
        };
        let provenance = sent.causal_context.map(|context| {
            JsonObject::parse(&format!(r#"{{"causal_context":{}}}"#, context.as_str()))
                .expect("an object in an object is one")
        });
        Ok(CreateJob {
            title: self.capability.executor.clone(),
            kind: "capability".to_owned(),
            visibility: "circle".to_owned(),
            executor: Some(self.capability.executor.clone()),
            input: sent.input,
            deadline_at: sent.deadline_at,
            expires_at: Some(clock_text::text(expires_at)),
            correlation_id: sent.correlation_id,
            timeout_seconds: timeout_ms.map(|ms| u64::from(ms).div_ceil(1_000)),
            tags: self.source.tags.clone(),
            provenance,
            ..CreateJob::default()
        })
    }

    /// The handle; or, if the caller would like to wait and it ends in time, how it ended.
    async fn handle(
        &self,
        id: &RecordId,
        given: Option<&KeptKey>,
        causal_context: Option<Box<RawValue>>,
    ) -> Result<Response, Problem> {
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
                handle_bytes(server.daemon.executors(), &record, self.capability, causal_context)
            }
        };
        let was = if given.is_some() { Given::Before } else { Given::Now };
        accepted(bytes, was)
    }
}

/// Refuses an input that does not fit what the executor takes. What is wrong is told by its place, not by its value.
fn check_input(capability: &Capability, input: Option<&RawValue>) -> Result<(), Problem> {
    let Some(schema) = &capability.contract.parameters else { return Ok(()) };
    schema.check(input.map_or("null", RawValue::get).as_bytes()).map_err(|misfit| {
        let told = format!("input: {misfit}");
        let error = FieldError::new("schema", &["body", "input", &misfit.place], told.clone());
        ProblemCode::InvalidRequest.because(told).at(error)
    })
}

/// 202, with the headers that say the same as the document.
fn accepted(bytes: Vec<u8>, given: Given) -> Result<Response, Problem> {
    let document = check(Document::Operation, &bytes)?;
    let mut response = answer::bytes(bytes, given);
    *response.status_mut() = StatusCode::ACCEPTED;
    let headers = response.headers_mut();
    if let Some(seconds) = document["retry_after_seconds"].as_u64() {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Some(href) = document["status_href"].as_str().and_then(|href| HeaderValue::from_str(href).ok()) {
        headers.insert(LOCATION, href);
    }
    Ok(response)
}

fn handle_bytes(
    executors: &engine::Executors,
    record: &Record,
    capability: &Capability,
    causal_context: Option<Box<RawValue>>,
) -> Vec<u8> {
    let face = Face { job: job_of(record), operation: None, executors };
    // A job that is none of ours would not fit the schema, and not leave.
    answer::render(&face.accepted(capability, causal_context))
}

fn causal_context(sent: Option<&JsonObject>) -> Result<Option<Box<RawValue>>, Problem> {
    let Some(context) = sent else { return Ok(None) };
    if !is_causal_context(context.as_str()) {
        let told = "causal/context must be a causal-context.v1; see docs/schemas";
        let error = FieldError::new("value_error", &["body", "causal/context"], told);
        return Err(ProblemCode::InvalidRequest.because(told).at(error));
    }
    Ok(RawValue::from_string(context.as_str().to_owned()).ok())
}
