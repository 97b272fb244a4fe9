//! The router made from the list of operations, and what every request passes on its way.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use api::ProblemCode;
use axum::Router;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request};
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderMap, HeaderName};
use axum::response::Response;
use axum::routing::{MethodFilter, on};
use futures::StreamExt;
use tokio::net::TcpListener;

use crate::access::authorise::{self, Access};
use crate::access::{Principal, Verdict};
use crate::http::json_body;
use crate::http::listen;
use crate::http::respond::{refuse, respond};
use crate::http::slots::Room;
use crate::http::{headers, host};
use crate::operations::{Body, Dialect, Route, Verb, Waits, routes};
use crate::request_context::{Raw, RequestContext, check_text};
use crate::server::Auth;
use crate::{Reply, Result, Server};
use crate::{jobs, wait};

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
    for route in routes() {
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
    let refused = |code: ProblemCode, told| async move { refuse(&code.because(told), Dialect::Own) };
    let see = "see the header Allow, or /openapi.json";
    router
        .method_not_allowed_fallback(move || refused(ProblemCode::MethodNotAllowed, see))
        .fallback(move || refused(ProblemCode::NoSuchRoute, "see /openapi.json for what there is"))
        .layer(axum::middleware::from_fn(host::check))
}

/// What stands in the places of a path, if it is text.
type ReadPath = Result<RawPathParams, RawPathParamsRejection>;

/// One request from its arrival to its answer.
async fn answer(server: Arc<Server>, route: &'static Route, path: ReadPath, request: Request) -> Response {
    let began = Instant::now();
    // Held until the answer is there: what a body takes counts as long as it is in memory.
    let mut room = server.slots.room();
    let response = async {
        let unread = "the path is not UTF-8; see /openapi.json for what there is";
        let path = path.map_err(|_| ProblemCode::NoSuchRoute.because(unread))?;
        let asked = admit(&server, route, &path, request, &mut room).await?;
        let response = respond(with_slot(&server, asked).await?);
        if route.verb == Verb::Get { server.slots.until_sent(response).await } else { Ok(response) }
    };
    let response: Result<Response> = response.await;
    let response = response.unwrap_or_else(|problem| refuse(&problem, route.operation.dialect));
    server.metrics.answered(route, response.status().as_u16(), began.elapsed());
    response
}

/// Who asks, whether they may, and whether the body is fit to be kept.
async fn admit(
    server: &Server,
    route: &Route,
    path: &RawPathParams,
    request: Request,
    room: &mut Room,
) -> Result<RequestContext> {
    let (head, body) = request.into_parts();
    let part = |place| path.iter().nth(place).map(|(_, part)| part.to_owned()).unwrap_or_default();
    let id = part(0);
    let principal = match (route.operation.access, server.settings.auth) {
        (Access::Open, _) | (_, Auth::Off) => Arc::new(Principal::anybody()),
        (Access::Needs(permission), Auth::Required) => {
            let operation = route.operation.name;
            let token = headers::bearer(&head.headers);
            let principal = match token {
                Ok(token) => server.principal(token).await,
                Err(problem) => Err(problem),
            };
            let principal = principal.inspect_err(|problem| {
                if problem.status == 401 {
                    server.audit.note("nobody", operation, &id, Verdict::Unauthenticated);
                }
            })?;
            authorise::check(&principal, route.operation, permission)
                .inspect_err(|_| server.audit.note(&principal.actor, operation, &id, Verdict::Forbidden))?;
            principal
        }
    };
    check_text(route.operation, path.iter().map(|(_, part)| part), head.uri.query().unwrap_or_default())?;
    let mut sent = Vec::new();
    if let Body::Json(limit) | Body::Optional(limit) | Body::Raw(limit) = route.operation.body {
        let within = server.settings.limits.body_within;
        let whole = tokio::time::timeout(within, whole(&head.headers, body, limit, room)).await;
        let late = || format!("the body did not come within {} s", within.as_secs());
        sent = whole.map_err(|_| ProblemCode::RequestTimeout.because(late()))??;
    }
    let (body, raw) = match route.operation.body {
        Body::None => (None, None),
        Body::Json(_) | Body::Optional(_) => (text_of(&head.headers, &sent)?, None),
        Body::Raw(_) => (None, Some(Raw { headers: headers::neutral(&head.headers), body: sent })),
    };
    let last_event_id = head.headers.get(HeaderName::from_static("last-event-id"));
    Ok(RequestContext {
        operation: route.operation,
        principal,
        id,
        name: path.iter().nth(1).map_or_else(|| last_segment(route.path), |(_, name)| name.to_owned()),
        query: head.uri.query().unwrap_or_default().to_owned(),
        key: match route.operation.body {
            Body::Json(_) | Body::Optional(_) => headers::idempotency_key(&head.headers)?,
            Body::None | Body::Raw(_) => None,
        },
        wait: headers::preferred_wait(&head.headers),
        last_event_id: last_event_id.map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned()),
        body,
        raw,
        slot: None,
    })
}

/// The end of a path, for routes that write out the name instead of taking it: `/plugin/{id}/state`.
fn last_segment(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

/// Carries out what was asked, if there is room for one more.
async fn with_slot(server: &Arc<Server>, mut request: RequestContext) -> Result<Reply> {
    let operation = request.operation;
    request.slot = server.slots.take(operation.slot)?;
    // The token may be revoked during the wait, here or on another node.
    let waits = match operation.waits {
        Waits::Never => None,
        Waits::Always => Some(request.principal.clone()),
        Waits::IfPreferred { .. } => request.wait.map(|_| request.principal.clone()),
    };
    if let Waits::IfPreferred { job_id } = operation.waits {
        wait_first(server, &mut request, job_id).await?;
    }
    let reply = (operation.handler)(server, request).await?;
    if let Some(principal) = waits {
        server.check_still_admits(&principal).await?;
    }
    Ok(reply)
}

/// Waits for the job that a read names, if its caller would like to and there is a place to wait. The slot of the request is free
/// meanwhile. A wait that is not granted is only a preference less.
async fn wait_first(
    server: &Server,
    request: &mut RequestContext,
    job_id: fn(&RequestContext) -> String,
) -> Result<()> {
    let (Some(within), Ok(_place)) = (request.wait, server.slots.wait()) else {
        request.wait = None;
        return Ok(());
    };
    let id = job_id(request);
    // Whoever does not see it does not wait for it either.
    let visible = jobs::visible_called(server, request, &id, &request.id).await?;
    request.slot = None;
    wait::until(server, visible.id(), within, |job| job.state.name().is_terminal()).await?;
    request.slot = server.slots.take(request.operation.slot)?;
    Ok(())
}

/// The compact text of a body; nothing if there is none.
fn text_of(headers: &HeaderMap, bytes: &[u8]) -> Result<Option<String>> {
    if bytes.is_empty() {
        return Ok(None);
    }
    if !headers::says_json(headers) {
        return Err(ProblemCode::UnsupportedMediaType
            .because("send JSON with the header `Content-Type: application/json`"));
    }
    json_body::admit(bytes).map(Some)
}

async fn whole(
    headers: &HeaderMap,
    body: axum::body::Body,
    limit: usize,
    room: &mut Room,
) -> Result<Vec<u8>> {
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
