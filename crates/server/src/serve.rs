//! The server: the router made from the list of operations, and what every request passes on its way.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use api::{Problem, ProblemCode};
use axum::Router;
use axum::extract::{RawPathParams, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName};
use axum::response::Response;
use axum::routing::{MethodFilter, on};
use engine::Daemon;
use engine::process::Artifacts;
use futures::StreamExt;
use store::{Store, Taking};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::asked::{Asked, Raw, key_of};
use crate::audit::{Audit, Verdict};
use crate::authorise::{self, Access};
use crate::callback::{CallbackKey, WaitingCallbacks};
use crate::gate::{self, Gate, Principal};
use crate::metrics::Metrics;
use crate::routes::{Body, Operation, ROUTES, Route, Verb};
use crate::slots::{Room, ServerLimits, Slot, Slots};
use crate::{
    asks, attempt_token, callback, capabilities, claims, deferred, door, facts, health, jobs, listen, nodes,
    openapi, orphans, peers, problem, pulled, sensorium, tokens, wait,
};

/// How a server is set up.
#[derive(Clone, Copy, Debug)]
pub struct ServerSettings {
    /// Whether callers must show a token.
    pub auth: Auth,
    /// How often a quiet stream shows that it lives.
    pub heartbeat: Duration,
    /// How long a token is known without a look at the store; for good where nobody else can revoke it.
    pub tokens_remembered_for: Option<Duration>,
    /// How much is served at once, and how long clients may take.
    pub limits: ServerLimits,
}

/// Whether callers must show a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Auth {
    /// They must.
    #[default]
    Required,
    /// Everybody who reaches the port is an administrator. An explicit choice.
    Off,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            auth: Auth::Required,
            heartbeat: Duration::from_secs(15),
            tokens_remembered_for: None,
            limits: ServerLimits::default(),
        }
    }
}

/// The HTTP face of one daemon.
pub struct Server {
    pub(crate) daemon: Arc<Daemon>,
    pub(crate) settings: ServerSettings,
    pub(crate) gate: Gate,
    pub(crate) audit: Audit,
    pub(crate) slots: Slots,
    pub(crate) admissions: deferred::Admissions,
    pub(crate) callbacks: Option<CallbackKey>,
    pub(crate) waiting_callbacks: WaitingCallbacks,
    pub(crate) metrics: Metrics,
    pub(crate) closing: watch::Sender<bool>,
    pub(crate) artifacts: Option<Arc<Artifacts>>,
}

impl Server {
    /// The face of this daemon.
    pub fn new(daemon: Arc<Daemon>, settings: ServerSettings) -> Self {
        Self {
            daemon,
            settings,
            gate: Gate::remembering(settings.tokens_remembered_for),
            audit: Audit::default(),
            slots: Slots::new(&settings.limits),
            admissions: deferred::Admissions::default(),
            callbacks: None,
            waiting_callbacks: WaitingCallbacks::default(),
            metrics: Metrics::default(),
            closing: watch::Sender::new(false),
            artifacts: None,
        }
    }

    /// Also gives out what attempts have left in these.
    pub fn with_artifacts(self, artifacts: Arc<Artifacts>) -> Self {
        Self { artifacts: Some(artifacts), ..self }
    }

    /// Also lets services call back whose addresses were signed with this key.
    pub fn with_callbacks(self, key: CallbackKey) -> Self {
        Self { callbacks: Some(key), ..self }
    }

    pub(crate) fn store(&self) -> &dyn Store {
        self.daemon.engine().store()
    }

    pub(crate) fn now(&self) -> domain::Timestamp {
        self.daemon.engine().clock().now()
    }

    /// Whether whoever was let in would be let in again.
    pub(crate) async fn still_admits(&self, principal: &Principal) -> bool {
        self.settings.auth == Auth::Off || self.gate.still_admits(self.store(), principal).await
    }
}

/// Serves until `shutdown` ends; then takes nothing new in, ends the streams and finishes what was begun.
pub async fn serve(
    listener: TcpListener,
    server: Arc<Server>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let (limits, closing) = (server.settings.limits, server.closing.subscribe());
    let shutdown = async {
        shutdown.await;
        server.closing.send_replace(true);
    };
    tokio::join!(listen::listen(listener, router(server.clone()), limits, closing), shutdown);
    Ok(())
}

fn router(server: Arc<Server>) -> Router {
    let mut router = Router::new();
    for route in ROUTES {
        let server = server.clone();
        let filter = match route.verb {
            Verb::Get => MethodFilter::GET,
            Verb::Post => MethodFilter::POST,
            Verb::Patch => MethodFilter::PATCH,
            Verb::Delete => MethodFilter::DELETE,
        };
        let take = move |path: RawPathParams, request: Request| answer(server.clone(), route, path, request);
        router = router.route(route.path, on(filter, take));
    }
    router
        .method_not_allowed_fallback(|| async {
            problem::respond(&ProblemCode::MethodNotAllowed.because("see the header Allow, or /openapi.json"))
        })
        .fallback(|| async {
            problem::respond(&ProblemCode::NoSuchRoute.because("see /openapi.json for what there is"))
        })
}

/// One request from its arrival to its answer.
async fn answer(
    server: Arc<Server>,
    route: &'static Route,
    path: RawPathParams,
    request: Request,
) -> Response {
    let began = Instant::now();
    // Held until the answer is there: what a body takes counts as long as it is in memory.
    let mut room = server.slots.room();
    let response = match admit(&server, route, &path, request, &mut room).await {
        Ok(asked) => in_its_slot(&server, asked).await,
        Err(problem) => Err(problem),
    };
    let response = response.unwrap_or_else(|problem| problem::respond(&problem));
    server.metrics.answered(route.operation, response.status().as_u16(), began.elapsed());
    response
}

/// Who asks, whether they may, and whether the body is fit to be kept.
async fn admit(
    server: &Server,
    route: &Route,
    path: &RawPathParams,
    request: Request,
    room: &mut Room,
) -> Result<Asked, Problem> {
    let (head, body) = request.into_parts();
    let part = |place| path.iter().nth(place).map(|(_, part)| part.to_owned()).unwrap_or_default();
    let id = part(0);
    let principal = match (route.access, server.settings.auth) {
        (Access::Open, _) | (_, Auth::Off) => Arc::new(Principal::anybody()),
        (Access::Needs(permission), Auth::Required) => {
            let operation = route.operation.name();
            let principal = principal(server, &head.headers).await.inspect_err(|problem| {
                if problem.status == 401 {
                    server.audit.note("nobody", operation, &id, Verdict::Unauthenticated);
                }
            })?;
            authorise::check(&principal, route.operation, permission)
                .inspect_err(|_| server.audit.note(&principal.actor, operation, &id, Verdict::Forbidden))?;
            principal
        }
    };
    let (body, raw) = match route.body {
        Body::None => (None, None),
        Body::Json(limit) | Body::Optional(limit) => {
            let whole = whole_in_time(server, &head.headers, body, limit, room).await?;
            (text_of(&head.headers, &whole)?, None)
        }
        Body::Raw(limit) => {
            let body = whole_in_time(server, &head.headers, body, limit, room).await?;
            (None, Some(Raw { headers: head.headers.clone(), body }))
        }
    };
    let last_event_id = head.headers.get(HeaderName::from_static("last-event-id"));
    Ok(Asked {
        operation: route.operation,
        principal,
        id,
        name: part(1),
        query: head.uri.query().unwrap_or_default().to_owned(),
        key: key_of(&head.headers)?,
        wait: wait::preferred(&head.headers),
        last_event_id: last_event_id.and_then(|id| id.to_str().ok()).map(str::to_owned),
        body,
        raw,
    })
}

/// Who shows the token of the request.
async fn principal(server: &Server, headers: &HeaderMap) -> Result<Arc<Principal>, Problem> {
    match gate::bearer(headers)? {
        token if token.starts_with(attempt_token::PREFIX) => {
            attempt_token::holder(server, token).await.map(Arc::new)
        }
        _ => server.gate.principal(server.store(), headers).await,
    }
}

async fn whole_in_time(
    server: &Server,
    headers: &HeaderMap,
    body: axum::body::Body,
    limit: usize,
    room: &mut Room,
) -> Result<Vec<u8>, Problem> {
    let within = server.settings.limits.body_within;
    tokio::time::timeout(within, whole(headers, body, limit, room)).await.map_err(|_| {
        let seconds = within.as_secs();
        ProblemCode::RequestTimeout.because(format!("the body did not come within {seconds} s"))
    })?
}

/// Carries out what was asked, if there is room for one more.
async fn in_its_slot(server: &Arc<Server>, asked: Asked) -> Result<Response, Problem> {
    let slot = server.slots.take(asked.operation)?;
    carry_out(server, asked, slot).await
}

/// Waits for the job that a read names, if its caller would like to and there is a place to wait. The place of the request is free
/// meanwhile. A wait that is not granted is only a preference less.
async fn wait_first(server: &Server, asked: &mut Asked, slot: Option<Slot>) -> Result<Option<Slot>, Problem> {
    let id = if asked.operation == Operation::ReadStatus {
        asked.id.clone()
    } else if asked.operation == Operation::ReadDeferredStatus {
        deferred::job_id_named(&asked.id)
    } else {
        return Ok(slot);
    };
    let (Some(within), Ok(_place)) = (asked.wait, server.slots.wait()) else {
        asked.wait = None;
        return Ok(slot);
    };
    // Whoever does not see it does not wait for it either.
    let visible = jobs::visible_named(server, asked, &id).await?;
    drop(slot);
    wait::until(server, visible.id(), within, |job| job.state.name().is_terminal()).await?;
    server.slots.take(asked.operation)
}

async fn carry_out(server: &Arc<Server>, mut asked: Asked, slot: Option<Slot>) -> Result<Response, Problem> {
    let slot = wait_first(server, &mut asked, slot).await?;
    match asked.operation {
        Operation::CreateJob => jobs::create(server, asked).await,
        Operation::CreateBatch => jobs::create_batch(server, asked).await,
        Operation::ListJobs => jobs::list(server, asked).await,
        Operation::ReadStatus => jobs::read_status(server, asked).await,
        Operation::ReadResult => jobs::read_result(server, asked).await,
        Operation::ReadArtifact => jobs::read_artifact(server, asked).await,
        Operation::UpdateJob => jobs::update(server, asked).await,
        Operation::RunJob => jobs::run(server, asked, domain::job::Trigger::Run).await,
        Operation::RetryJob => jobs::run(server, asked, domain::job::Trigger::Retry).await,
        Operation::CancelJob => jobs::cancel(server, asked).await,
        Operation::AnswerJob => jobs::answer(server, asked).await,
        Operation::PullJob => pulled::pull(server, asked, slot).await,
        Operation::HeartbeatJob => pulled::heartbeat(server, asked).await,
        Operation::CompleteJob => pulled::complete(server, asked).await,
        Operation::FailJob => pulled::fail(server, asked).await,
        Operation::AskInput => pulled::ask(server, asked).await,
        Operation::DeferJob => pulled::defer(server, asked).await,
        Operation::AcquireClaim => claims::acquire(server, asked, slot).await,
        Operation::RenewClaim => claims::renew(server, asked).await,
        Operation::ReleaseClaim => claims::release(server, asked).await,
        Operation::RegisterPeer => peers::register(server, asked).await,
        Operation::ListPeers => peers::list(server, asked).await,
        Operation::ReadPeer => peers::read(server, asked).await,
        Operation::ForgetPeer => peers::forget(server, asked).await,
        Operation::CreateAsk => asks::create(server, asked).await,
        Operation::ListAsks => asks::list(server, asked).await,
        Operation::ListPendingAsks => asks::pending(server, asked, slot).await,
        Operation::ReadAsk => asks::read(server, asked).await,
        Operation::AckAsk => asks::ack(server, asked).await,
        Operation::WaitAsk => asks::wait(server, asked, slot).await,
        Operation::PurgeJob => jobs::purge(server, asked).await,
        Operation::ReadFacts => facts::of_job(server, asked).await,
        Operation::ReadWhy => jobs::why(server, asked).await,
        // A stream goes on after its answer has begun, and keeps its slot.
        Operation::StreamFacts => facts::stream(server, asked, slot).await,
        Operation::ListOrphans => orphans::list(server, asked).await,
        Operation::CancelOrphan => orphans::cancel(server, asked).await,
        Operation::SettleOrphan => orphans::settle(server, asked).await,
        Operation::ListCapabilities => capabilities::list(server, asked).await,
        Operation::InvokeCapability => match sensorium::Name::parse(&asked.id) {
            Some(name) => sensorium::carry_out(server, name, asked, slot).await,
            None => deferred::invoke(server, asked, slot).await,
        },
        Operation::ReadOutcome => sensorium::read_outcome(server, asked).await,
        Operation::ListDeferred => deferred::list(server, asked).await,
        Operation::ReadDeferred => deferred::read_detail(server, asked).await,
        Operation::ReadDeferredStatus => deferred::read_status(server, asked).await,
        Operation::PollDeferred => deferred::poll(server, asked).await,
        Operation::CancelDeferred => deferred::cancel(server, asked).await,
        Operation::TakeCallback => callback::take(server, asked).await,
        Operation::CreateToken => tokens::create(server, asked).await,
        Operation::ListTokens => tokens::list(server).await,
        Operation::RevokeToken => tokens::revoke(server, asked).await,
        Operation::ListNodes => nodes::list(server).await,
        Operation::DrainNode => nodes::tell(server, asked, Taking::Drains).await,
        Operation::UndrainNode => nodes::tell(server, asked, Taking::Takes).await,
        Operation::ReadMetrics => crate::metrics::read(server).await,
        Operation::ReadHealth => Ok(health::alive()),
        Operation::ReadReadiness => health::ready(server).await,
        Operation::ReadDocument => Ok(openapi::read()),
    }
}

/// The compact text of a body; nothing if there is none.
fn text_of(headers: &HeaderMap, bytes: &[u8]) -> Result<Option<String>, Problem> {
    if bytes.is_empty() {
        return Ok(None);
    }
    if !says_json(headers) {
        return Err(ProblemCode::UnsupportedMediaType
            .because("send JSON with the header `Content-Type: application/json`"));
    }
    door::admit(bytes).map(Some)
}

async fn whole(
    headers: &HeaderMap,
    body: axum::body::Body,
    limit: usize,
    room: &mut Room,
) -> Result<Vec<u8>, Problem> {
    let too_large = || ProblemCode::BodyTooLarge.because(format!("the body may have at most {limit} bytes"));
    let declared = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|length| length > limit as u64) {
        return Err(too_large());
    }
    let mut stream = body.into_data_stream();
    let mut whole = Vec::new();
    while let Some(part) = stream.next().await {
        let part = part.map_err(|_| ProblemCode::MalformedJson.because("the body ended before its end"))?;
        if whole.len() + part.len() > limit {
            return Err(too_large());
        }
        room.grow(part.len())?;
        whole.extend_from_slice(&part);
    }
    Ok(whole)
}

fn says_json(headers: &HeaderMap) -> bool {
    let Some(media_type) = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()) else {
        return false;
    };
    let media_type = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    media_type == "application/json"
        || media_type.starts_with("application/") && media_type.ends_with("+json")
}
