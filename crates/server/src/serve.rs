//! The server: the router made from the list of operations, and what every request passes on its way.

use std::future::{Future, ready};
use std::sync::Arc;
use std::time::{Duration, Instant};

use api::{Problem, ProblemCode};
use axum::Router;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName};
use axum::response::Response;
use axum::routing::{MethodFilter, on};
use engine::Daemon;
use engine::pipelines::Loaded;
use engine::plugin::Plugins;
use engine::process::Artifacts;
use futures::StreamExt;
use futures::future::BoxFuture;
use store::{Store, Taking};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, watch};

use crate::asked::{Asked, Raw, check_text, key_of};
use crate::audit::{Audit, Verdict};
use crate::authorise::{self, Access};
use crate::callback::{CallbackKey, WaitingCallbacks};
use crate::gate::{self, Freshness, Gate, Principal};
use crate::metrics::Metrics;
use crate::operation::Operation;
use crate::routes::{Body, ROUTES, Route, Verb};
use crate::slots::{Room, ServerLimits, Slot, Slots};
use crate::webhooks::Webhooks;
use crate::{
    asks, attempt_token, callback, capabilities, claims, clock, deferred, door, ductile, events, facts,
    health, host, jobs, listen, nodes, openapi, orphans, peers, pipelines, problem, pulled, runs, sensorium,
    tokens, wait, webhooks,
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
    pub(crate) reload: Option<pipelines::Reload>,
    pub(crate) plugins: Arc<Plugins>,
    pub(crate) webhooks: Webhooks,
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
            reload: None,
            plugins: Arc::default(),
            webhooks: Webhooks::default(),
        }
    }

    /// Also gives out what attempts have left in these.
    pub fn with_artifacts(self, artifacts: Arc<Artifacts>) -> Self {
        Self { artifacts: Some(artifacts), ..self }
    }

    /// Also reads the files of pipelines anew when it is told to, so.
    pub fn with_pipelines(self, load: impl Fn() -> Loaded + Send + Sync + 'static) -> Self {
        Self { reload: Some(pipelines::Reload { load: Arc::new(load), turn: Mutex::default() }), ..self }
    }

    /// Also lets Ductile's clients ask these plugins.
    pub fn with_plugins(self, plugins: Arc<Plugins>) -> Self {
        Self { plugins, ..self }
    }

    /// Also takes in webhooks at these endpoints.
    pub fn with_webhooks(self, webhooks: Webhooks) -> Self {
        Self { webhooks, ..self }
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

    /// Whether whoever was let in would be let in again; a problem if the store cannot tell.
    pub(crate) async fn still_admits(
        &self,
        principal: &Principal,
        freshness: Freshness,
    ) -> Result<bool, Problem> {
        match (self.settings.auth, &principal.only) {
            (Auth::Off, _) => Ok(true),
            (Auth::Required, Some(job_id)) => {
                attempt_token::is_current(self, job_id, &principal.token_id).await
            }
            (Auth::Required, None) => self.gate.still_admits(self.store(), principal, freshness).await,
        }
    }

    /// Refuses whoever was let in, has waited, and would not be let in again.
    pub(crate) async fn check_still_admits(&self, principal: &Principal) -> Result<(), Problem> {
        if self.still_admits(principal, Freshness::Now).await? {
            return Ok(());
        }
        Err(ProblemCode::Unauthenticated.because("the token was revoked while it waited"))
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
        let take = move |path: ReadPath, request: Request| answer(server.clone(), route, path, request);
        router = router.route(route.path, on(filter, take));
    }
    router
        .method_not_allowed_fallback(|| async {
            problem::respond(&ProblemCode::MethodNotAllowed.because("see the header Allow, or /openapi.json"))
        })
        .fallback(|| async {
            problem::respond(&ProblemCode::NoSuchRoute.because("see /openapi.json for what there is"))
        })
        .layer(axum::middleware::from_fn(host::check))
}

/// What stands in the places of a path, if it is text.
type ReadPath = Result<RawPathParams, RawPathParamsRejection>;

/// One request from its arrival to its answer.
async fn answer(server: Arc<Server>, route: &'static Route, path: ReadPath, request: Request) -> Response {
    let began = Instant::now();
    // Held until the answer is there: what a body takes counts as long as it is in memory.
    let mut room = server.slots.room();
    let admitted =
        match path {
            Ok(path) => admit(&server, route, &path, request, &mut room).await,
            Err(_) => Err(ProblemCode::NoSuchRoute
                .because("the path is not UTF-8; see /openapi.json for what there is")),
        };
    let response = match admitted {
        Ok(asked) => in_its_slot(&server, asked).await,
        Err(problem) => Err(problem),
    };
    let response = match (response, route.verb) {
        (Ok(response), Verb::Get) => server.slots.until_sent(response).await,
        (response, Verb::Get | Verb::Post | Verb::Patch | Verb::Delete) => response,
    };
    let response = response.unwrap_or_else(|problem| {
        let is_ductile = route.operation.speaks_ductile();
        if is_ductile { ductile::respond(&problem) } else { problem::respond(&problem) }
    });
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
    check_text(route.operation, path, head.uri.query().unwrap_or_default())?;
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
        name: path.iter().nth(1).map_or_else(|| last_segment(route.path), |(_, name)| name.to_owned()),
        query: head.uri.query().unwrap_or_default().to_owned(),
        key: match route.body {
            Body::Json(_) | Body::Optional(_) => key_of(&head.headers)?,
            Body::None | Body::Raw(_) => None,
        },
        wait: wait::preferred(&head.headers),
        last_event_id: last_event_id.map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned()),
        body,
        raw,
    })
}

/// The end of a path, for routes that write out the name instead of taking it: `/plugin/{id}/state`.
fn last_segment(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
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
    // A read waits only if its caller would like to.
    let is_read = matches!(asked.operation, Operation::ReadStatus | Operation::ReadDeferredStatus);
    let may_wait = asked.operation.answers_after_a_wait() && (!is_read || asked.wait.is_some());
    let waits = may_wait.then(|| asked.principal.clone());
    let response = carry_out(server, asked, slot).await?;
    if let Some(principal) = waits {
        // The token may have been revoked meanwhile, here or on another node.
        server.check_still_admits(&principal).await?;
    }
    Ok(response)
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
    // Each handler in a box of its own size: whoever waits does not hold the room of the largest.
    let carried: BoxFuture<'_, Result<Response, Problem>> = match asked.operation {
        Operation::CreateJob => Box::pin(jobs::create(server, asked)),
        Operation::CreateBatch => Box::pin(jobs::create_batch(server, asked)),
        Operation::ListJobs => Box::pin(jobs::list(server, asked)),
        Operation::ReadStatus => Box::pin(jobs::read_status(server, asked)),
        Operation::ReadResult => Box::pin(jobs::read_result(server, asked)),
        Operation::ReadArtifact => Box::pin(jobs::read_artifact(server, asked)),
        Operation::UpdateJob => Box::pin(jobs::update(server, asked)),
        Operation::RunJob => Box::pin(jobs::run(server, asked, domain::job::Trigger::Run)),
        Operation::RetryJob => Box::pin(jobs::run(server, asked, domain::job::Trigger::Retry)),
        Operation::CancelJob => Box::pin(jobs::cancel(server, asked)),
        Operation::AnswerJob => Box::pin(jobs::answer(server, asked)),
        Operation::PullJob => Box::pin(pulled::pull(server, asked, slot)),
        Operation::HeartbeatJob => Box::pin(pulled::heartbeat(server, asked)),
        Operation::CompleteJob => Box::pin(pulled::complete(server, asked)),
        Operation::FailJob => Box::pin(pulled::fail(server, asked)),
        Operation::AskInput => Box::pin(pulled::ask(server, asked)),
        Operation::DeferJob => Box::pin(pulled::defer(server, asked)),
        Operation::AcquireClaim => Box::pin(claims::acquire(server, asked, slot)),
        Operation::RenewClaim => Box::pin(claims::renew(server, asked)),
        Operation::ReleaseClaim => Box::pin(claims::release(server, asked)),
        Operation::RegisterPeer => Box::pin(peers::register(server, asked)),
        Operation::ListPeers => Box::pin(peers::list(server, asked)),
        Operation::ReadPeer => Box::pin(peers::read(server, asked)),
        Operation::ForgetPeer => Box::pin(peers::forget(server, asked)),
        Operation::CreateAsk => Box::pin(asks::create(server, asked)),
        Operation::ListAsks => Box::pin(asks::list(server, asked)),
        Operation::ListPendingAsks => Box::pin(asks::pending(server, asked, slot)),
        Operation::ReadAsk => Box::pin(asks::read(server, asked)),
        Operation::AckAsk => Box::pin(asks::ack(server, asked)),
        Operation::WaitAsk => Box::pin(asks::wait(server, asked, slot)),
        Operation::PurgeJob => Box::pin(jobs::purge(server, asked)),
        Operation::ReadFacts => Box::pin(facts::of_job(server, asked)),
        Operation::ReadWhy => Box::pin(jobs::why(server, asked)),
        // A stream goes on after its answer has begun, and keeps its slot.
        Operation::StreamFacts => Box::pin(facts::stream(server, asked, slot)),
        Operation::ListOrphans => Box::pin(orphans::list(server, asked)),
        Operation::CancelOrphan => Box::pin(orphans::cancel(server, asked)),
        Operation::SettleOrphan => Box::pin(orphans::settle(server, asked)),
        Operation::ListCapabilities => Box::pin(capabilities::list(server, asked)),
        Operation::InvokeCapability => match sensorium::Name::parse(&asked.id) {
            Some(name) => Box::pin(sensorium::carry_out(server, name, asked, slot)),
            None => Box::pin(deferred::invoke(server, asked, slot)),
        },
        Operation::ReadOutcome => Box::pin(sensorium::read_outcome(server, asked)),
        Operation::ListDeferred => Box::pin(deferred::list(server, asked)),
        Operation::ReadDeferred => Box::pin(deferred::read_detail(server, asked)),
        Operation::ReadDeferredStatus => Box::pin(deferred::read_status(server, asked)),
        Operation::PollDeferred => Box::pin(deferred::poll(server, asked)),
        Operation::CancelDeferred => Box::pin(deferred::cancel(server, asked)),
        Operation::TakeCallback => Box::pin(callback::take(server, asked)),
        Operation::TriggerPlugin => Box::pin(ductile::trigger_plugin(server, asked)),
        Operation::TriggerPipeline => Box::pin(ductile::trigger_pipeline(server, asked, slot)),
        Operation::ReadPluginJob => Box::pin(ductile::read_job(server, asked)),
        Operation::ReadPluginTree => Box::pin(ductile::read_tree(server, asked)),
        Operation::ListPlugins => Box::pin(ready(Ok(ductile::list_plugins(server, &asked)))),
        Operation::ReadPlugin => Box::pin(ready(ductile::read_plugin(server, &asked))),
        Operation::ReadPluginDocument => Box::pin(ready(ductile::read_plugin_document(server, &asked))),
        Operation::ListSkills => Box::pin(ready(Ok(ductile::list_skills(server, &asked)))),
        Operation::ReadPluginState => Box::pin(ductile::read_memory(server, asked)),
        Operation::ResetPlugin => Box::pin(ready(ductile::reset_breaker(server, &asked))),
        Operation::TakeWebhook => Box::pin(webhooks::take(server, asked)),
        Operation::CreateToken => Box::pin(tokens::create(server, asked)),
        Operation::ListTokens => Box::pin(tokens::list(server)),
        Operation::RevokeToken => Box::pin(tokens::revoke(server, asked)),
        Operation::ReadClock => Box::pin(ready(Ok(clock::read(server)))),
        Operation::SetClockRight => Box::pin(clock::set_right(server, asked)),
        Operation::ListNodes => Box::pin(nodes::list(server)),
        Operation::DrainNode => Box::pin(nodes::tell(server, asked, Taking::Drains)),
        Operation::UndrainNode => Box::pin(nodes::tell(server, asked, Taking::Takes)),
        Operation::PublishEvent => Box::pin(events::publish(server, asked)),
        Operation::ListEvents => Box::pin(events::list(server, asked)),
        Operation::ReadEvent => Box::pin(events::read(server, asked)),
        Operation::ListPipelines => Box::pin(ready(Ok(pipelines::list(server)))),
        Operation::ReadPipeline => Box::pin(ready(pipelines::read(server, &asked))),
        Operation::StartPipeline => Box::pin(pipelines::start(server, asked, slot)),
        Operation::ReloadPipelines => Box::pin(pipelines::reload(server, asked)),
        Operation::ListRuns => Box::pin(runs::list(server, asked)),
        Operation::ReadRun => Box::pin(runs::read(server, asked)),
        Operation::CancelRun => Box::pin(runs::cancel(server, asked)),
        Operation::RetryRun => Box::pin(runs::retry(server, asked)),
        Operation::ReadMetrics => Box::pin(crate::metrics::read(server)),
        Operation::ReadHealth => Box::pin(ready(Ok(health::alive()))),
        Operation::ReadReadiness => Box::pin(health::ready(server)),
        Operation::ReadDocument => Box::pin(ready(Ok(openapi::read()))),
    };
    carried.await
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
