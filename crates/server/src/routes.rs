//! The one list of routes: where operations may be asked for, and what it takes to be allowed to. What each is stands in `operation.rs`.
//!
//! The router is made from it, and so are the walk over every route and role, and `/openapi.json`.

use api::limits::{MAX_BATCH_BYTES, MAX_REQUEST_BYTES};

use crate::authorise::{Access, Permission};
use crate::operation::Operation;
use crate::webhooks::MAX_BODY_BYTES as MAX_HOOK_BYTES;

/// One way to ask for an operation.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// How.
    pub verb: Verb,
    /// Where.
    pub path: &'static str,
    /// For what.
    pub operation: Operation,
    /// What it takes.
    pub access: Access,
    /// What comes along.
    pub body: Body,
}

/// The HTTP methods in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words of HTTP")]
pub enum Verb {
    Get,
    Post,
    Patch,
    Delete,
}

/// What comes along with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Nothing is read.
    None,
    /// JSON of at most so many bytes.
    Json(usize),
    /// JSON or nothing.
    Optional(usize),
    /// Anything of at most so many bytes, as it comes.
    Raw(usize),
}

use Operation as Op;
use Permission as May;

/// Every route.
pub const ROUTES: &[Route] = &[
    route(Verb::Post, "/jobs", Op::CreateJob, Access::Needs(May::Create), Body::Json(MAX_REQUEST_BYTES)),
    route(Verb::Post, "/work", Op::CreateJob, Access::Needs(May::Create), Body::Json(MAX_REQUEST_BYTES)),
    route(
        Verb::Post,
        "/jobs/batch",
        Op::CreateBatch,
        Access::Needs(May::Create),
        Body::Json(MAX_BATCH_BYTES),
    ),
    route(Verb::Get, "/jobs", Op::ListJobs, Access::Needs(May::Read), Body::None),
    route(Verb::Get, "/work", Op::ListJobs, Access::Needs(May::Read), Body::None),
    route(Verb::Get, "/jobs/{id}", Op::ReadStatus, Access::Needs(May::Read), Body::None),
    route(Verb::Get, "/work/{id}", Op::ReadStatus, Access::Needs(May::Read), Body::None),
    route(Verb::Get, "/jobs/{id}/status", Op::ReadStatus, Access::Needs(May::Read), Body::None),
    route(Verb::Get, "/work/{id}/status", Op::ReadStatus, Access::Needs(May::Read), Body::None),
    route(Verb::Get, "/jobs/{id}/result", Op::ReadResult, Access::Needs(May::Read), Body::None),
    route(Verb::Get, "/work/{id}/result", Op::ReadResult, Access::Needs(May::Read), Body::None),
    route(Verb::Get, "/jobs/{id}/artifacts/{name}", Op::ReadArtifact, Access::Needs(May::Read), Body::None),
    route(
        Verb::Patch,
        "/jobs/{id}",
        Op::UpdateJob,
        Access::Needs(May::Report),
        Body::Json(MAX_REQUEST_BYTES),
    ),
    route(
        Verb::Patch,
        "/work/{id}",
        Op::UpdateJob,
        Access::Needs(May::Report),
        Body::Json(MAX_REQUEST_BYTES),
    ),
    route(Verb::Post, "/jobs/{id}/run", Op::RunJob, Access::Needs(May::Run), Body::Optional(SMALL)),
    route(Verb::Post, "/work/{id}/run", Op::RunJob, Access::Needs(May::Run), Body::Optional(SMALL)),
    route(Verb::Post, "/jobs/{id}/retry", Op::RetryJob, Access::Needs(May::Run), Body::Optional(SMALL)),
    route(Verb::Post, "/work/{id}/retry", Op::RetryJob, Access::Needs(May::Run), Body::Optional(SMALL)),
    route(Verb::Post, "/jobs/{id}/cancel", Op::CancelJob, Access::Needs(May::Cancel), Body::Json(SMALL)),
    route(Verb::Post, "/work/{id}/cancel", Op::CancelJob, Access::Needs(May::Cancel), Body::Json(SMALL)),
    route(
        Verb::Post,
        "/jobs/{id}/answer",
        Op::AnswerJob,
        Access::Needs(May::Answer),
        Body::Json(MAX_REQUEST_BYTES),
    ),
    route(Verb::Post, "/jobs/next", Op::PullJob, Access::Needs(May::Report), Body::Json(SMALL)),
    route(
        Verb::Post,
        "/jobs/{id}/heartbeat",
        Op::HeartbeatJob,
        Access::Needs(May::Report),
        Body::Json(SMALL),
    ),
    route(
        Verb::Post,
        "/jobs/{id}/complete",
        Op::CompleteJob,
        Access::Needs(May::Report),
        Body::Json(MAX_REQUEST_BYTES),
    ),
    route(
        Verb::Post,
        "/jobs/{id}/fail",
        Op::FailJob,
        Access::Needs(May::Report),
        Body::Json(MAX_REQUEST_BYTES),
    ),
    route(
        Verb::Post,
        "/jobs/{id}/ask",
        Op::AskInput,
        Access::Needs(May::Report),
        Body::Json(MAX_REQUEST_BYTES),
    ),
    route(Verb::Post, "/jobs/{id}/defer", Op::DeferJob, Access::Needs(May::Report), Body::Json(SMALL)),
    route(Verb::Post, "/claims", Op::AcquireClaim, Access::Needs(May::Report), Body::Json(SMALL)),
    route(
        Verb::Post,
        "/claims/{id}/{name}/renew",
        Op::RenewClaim,
        Access::Needs(May::Report),
        Body::Json(SMALL),
    ),
    route(
        Verb::Post,
        "/claims/{id}/{name}/release",
        Op::ReleaseClaim,
        Access::Needs(May::Report),
        Body::Json(SMALL),
    ),
    route(Verb::Post, "/peers", Op::RegisterPeer, Access::Needs(May::Report), Body::Json(SMALL)),
    route(Verb::Get, "/peers", Op::ListPeers, Access::Needs(May::Read), Body::None),
    route(Verb::Get, "/peers/{id}", Op::ReadPeer, Access::Needs(May::Read), Body::None),
    route(Verb::Delete, "/peers/{id}", Op::ForgetPeer, Access::Needs(May::Report), Body::None),
    route(Verb::Post, "/asks", Op::CreateAsk, Access::Needs(May::Create), Body::Json(SMALL)),
    route(Verb::Get, "/asks", Op::ListAsks, Access::Needs(May::Read), Body::None),
    route(Verb::Get, "/asks/pending", Op::ListPendingAsks, Access::Needs(May::Read), Body::None),
    route(Verb::Get, "/asks/{id}", Op::ReadAsk, Access::Needs(May::Read), Body::None),
    route(Verb::Post, "/asks/{id}/ack", Op::AckAsk, Access::Needs(May::Report), Body::Optional(SMALL)),
    route(Verb::Post, "/asks/{id}/wait", Op::WaitAsk, Access::Needs(May::Create), Body::Optional(SMALL)),
    route(Verb::Post, "/jobs/{id}/purge", Op::PurgeJob, Access::Needs(May::Purge), Body::Optional(SMALL)),
    route(Verb::Get, "/jobs/{id}/facts", Op::ReadFacts, Access::Needs(May::Read), Body::None),
    route(Verb::Get, "/jobs/{id}/why", Op::ReadWhy, Access::Needs(May::Read), Body::None),
    route(Verb::Get, "/facts/stream", Op::StreamFacts, Access::Needs(May::Read), Body::None),
    route(Verb::Get, "/orphans", Op::ListOrphans, Access::Needs(May::Read), Body::None),
    route(
        Verb::Post,
        "/orphans/{id}/cancel",
        Op::CancelOrphan,
        Access::Needs(May::Cancel),
        Body::Optional(SMALL),
    ),
    route(
        Verb::Post,
        "/orphans/{id}/settle",
        Op::SettleOrphan,
        Access::Needs(May::Settle),
        Body::Json(SMALL),
    ),
    route(Verb::Get, "/v1/capabilities", Op::ListCapabilities, Access::Needs(May::Read), Body::None),
    route(
        Verb::Post,
        "/v1/capabilities/{id}/invoke",
        Op::InvokeCapability,
        Access::Needs(May::Create),
        Body::Json(MAX_REQUEST_BYTES),
    ),
    route(Verb::Get, "/v1/sensorium/outcomes/{id}", Op::ReadOutcome, Access::Needs(May::Read), Body::None),
    route(Verb::Get, "/v1/deferred-operations", Op::ListDeferred, Access::Needs(May::Read), Body::None),
    route(Verb::Get, "/v1/deferred-operations/{id}", Op::ReadDeferred, Access::Needs(May::Read), Body::None),
    route(Verb::Get, "/v1/deferred/{id}", Op::ReadDeferred, Access::Needs(May::Read), Body::None),
    route(
        Verb::Get,
        "/v1/deferred-operations/{id}/status",
        Op::ReadDeferredStatus,
        Access::Needs(May::Read),
        Body::None,
    ),
    route(
        Verb::Get,
        "/v1/deferred/{id}/status",
        Op::ReadDeferredStatus,
        Access::Needs(May::Read),
        Body::None,
    ),
    route(
        Verb::Post,
        "/v1/deferred-operations/{id}/poll",
        Op::PollDeferred,
        Access::Needs(May::Run),
        Body::Optional(SMALL),
    ),
    route(
        Verb::Post,
        "/v1/deferred/{id}/poll",
        Op::PollDeferred,
        Access::Needs(May::Run),
        Body::Optional(SMALL),
    ),
    route(
        Verb::Post,
        "/v1/deferred-operations/{id}/cancel",
        Op::CancelDeferred,
        Access::Needs(May::Cancel),
        Body::Optional(SMALL),
    ),
    route(
        Verb::Post,
        "/v1/deferred/{id}/cancel",
        Op::CancelDeferred,
        Access::Needs(May::Cancel),
        Body::Optional(SMALL),
    ),
    route(Verb::Post, "/callbacks/{id}/{name}", Op::TakeCallback, Access::Open, Body::Raw(SMALL)),
    route(
        Verb::Post,
        "/plugin/{id}/{name}",
        Op::TriggerPlugin,
        Access::Needs(May::Create),
        Body::Json(MAX_REQUEST_BYTES),
    ),
    route(
        Verb::Post,
        "/pipeline/{id}",
        Op::TriggerPipeline,
        Access::Needs(May::Create),
        Body::Json(MAX_REQUEST_BYTES),
    ),
    route(Verb::Get, "/job/{id}", Op::ReadPluginJob, Access::Needs(May::Read), Body::None),
    route(Verb::Get, "/job/{id}/tree", Op::ReadPluginTree, Access::Needs(May::Read), Body::None),
    route(Verb::Get, "/plugins", Op::ListPlugins, Access::Needs(May::Read), Body::None),
    route(Verb::Get, "/plugin/{id}", Op::ReadPlugin, Access::Needs(May::Read), Body::None),
    route(
        Verb::Get,
        "/plugin/{id}/openapi.json",
        Op::ReadPluginDocument,
        Access::Needs(May::Read),
        Body::None,
    ),
    // The router prefers a written-out path: without this row a plugin's own command `state` could not be called.
    route(
        Verb::Post,
        "/plugin/{id}/state",
        Op::TriggerPlugin,
        Access::Needs(May::Create),
        Body::Json(MAX_REQUEST_BYTES),
    ),
    route(Verb::Get, "/plugin/{id}/state", Op::ReadPluginState, Access::Needs(May::ManageNodes), Body::None),
    route(Verb::Get, "/skills", Op::ListSkills, Access::Needs(May::Read), Body::None),
    route(
        Verb::Post,
        "/plugin/{id}/breaker/reset",
        Op::ResetPlugin,
        Access::Needs(May::ManageNodes),
        Body::Optional(SMALL),
    ),
    route(Verb::Post, "/hooks/{id}", Op::TakeWebhook, Access::Open, Body::Raw(MAX_HOOK_BYTES)),
    route(Verb::Post, "/tokens", Op::CreateToken, Access::Needs(May::ManageTokens), Body::Json(SMALL)),
    route(Verb::Get, "/tokens", Op::ListTokens, Access::Needs(May::ManageTokens), Body::None),
    route(Verb::Delete, "/tokens/{id}", Op::RevokeToken, Access::Needs(May::ManageTokens), Body::None),
    route(Verb::Get, "/clock", Op::ReadClock, Access::Needs(May::ReadFigures), Body::None),
    route(
        Verb::Post,
        "/clock/set-right",
        Op::SetClockRight,
        Access::Needs(May::ManageClock),
        Body::Optional(SMALL),
    ),
    route(Verb::Get, "/nodes", Op::ListNodes, Access::Needs(May::ReadFigures), Body::None),
    route(
        Verb::Post,
        "/nodes/{id}/drain",
        Op::DrainNode,
        Access::Needs(May::ManageNodes),
        Body::Optional(SMALL),
    ),
    route(
        Verb::Post,
        "/nodes/{id}/undrain",
        Op::UndrainNode,
        Access::Needs(May::ManageNodes),
        Body::Optional(SMALL),
    ),
    route(Verb::Post, "/events", Op::PublishEvent, Access::Needs(May::Create), Body::Json(MAX_REQUEST_BYTES)),
    route(Verb::Get, "/events", Op::ListEvents, Access::Needs(May::Read), Body::None),
    route(Verb::Get, "/events/{id}", Op::ReadEvent, Access::Needs(May::Read), Body::None),
    route(Verb::Get, "/pipelines", Op::ListPipelines, Access::Needs(May::Read), Body::None),
    route(
        Verb::Post,
        "/pipelines/reload",
        Op::ReloadPipelines,
        Access::Needs(May::ManageNodes),
        Body::Optional(SMALL),
    ),
    route(Verb::Get, "/pipelines/{id}", Op::ReadPipeline, Access::Needs(May::Read), Body::None),
    route(
        Verb::Post,
        "/pipelines/{id}/runs",
        Op::StartPipeline,
        Access::Needs(May::Create),
        Body::Optional(MAX_REQUEST_BYTES),
    ),
    route(Verb::Get, "/runs", Op::ListRuns, Access::Needs(May::Read), Body::None),
    route(Verb::Get, "/runs/{id}", Op::ReadRun, Access::Needs(May::Read), Body::None),
    route(Verb::Post, "/runs/{id}/cancel", Op::CancelRun, Access::Needs(May::Cancel), Body::Optional(SMALL)),
    route(Verb::Post, "/runs/{id}/retry", Op::RetryRun, Access::Needs(May::Run), Body::Optional(SMALL)),
    route(Verb::Get, "/metrics", Op::ReadMetrics, Access::Needs(May::ReadFigures), Body::None),
    route(Verb::Get, "/healthz", Op::ReadHealth, Access::Open, Body::None),
    route(Verb::Get, "/readyz", Op::ReadReadiness, Access::Open, Body::None),
    route(Verb::Get, "/openapi.json", Op::ReadDocument, Access::Open, Body::None),
];

/// The body of a small order.
const SMALL: usize = 65_536;

const fn route(verb: Verb, path: &'static str, operation: Operation, access: Access, body: Body) -> Route {
    Route { verb, path, operation, access, body }
}
