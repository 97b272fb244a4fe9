//! The one list of operations: what may be asked for, where, and what it takes to be allowed to.
//!
//! The router is made from it, and so are the walk over every route and role, and `/openapi.json`.

use api::limits::{MAX_BATCH_BYTES, MAX_REQUEST_BYTES};

use crate::authorise::{Access, Permission};
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

/// What may be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "one word each, explained in `summary`")]
pub enum Operation {
    CreateJob,
    CreateBatch,
    ListJobs,
    ReadStatus,
    ReadResult,
    ReadArtifact,
    UpdateJob,
    RunJob,
    RetryJob,
    CancelJob,
    AnswerJob,
    PullJob,
    HeartbeatJob,
    CompleteJob,
    FailJob,
    AskInput,
    DeferJob,
    AcquireClaim,
    RenewClaim,
    ReleaseClaim,
    RegisterPeer,
    ListPeers,
    ReadPeer,
    ForgetPeer,
    CreateAsk,
    ListAsks,
    ListPendingAsks,
    ReadAsk,
    AckAsk,
    WaitAsk,
    PurgeJob,
    ReadFacts,
    ReadWhy,
    StreamFacts,
    ListOrphans,
    CancelOrphan,
    SettleOrphan,
    ListCapabilities,
    InvokeCapability,
    ReadOutcome,
    ListDeferred,
    ReadDeferred,
    ReadDeferredStatus,
    PollDeferred,
    CancelDeferred,
    TakeCallback,
    TriggerPlugin,
    TriggerPipeline,
    ReadPluginJob,
    ReadPluginTree,
    ListPlugins,
    ReadPlugin,
    TakeWebhook,
    CreateToken,
    ListTokens,
    RevokeToken,
    ListNodes,
    DrainNode,
    UndrainNode,
    PublishEvent,
    ListEvents,
    ReadEvent,
    ListPipelines,
    ReadPipeline,
    StartPipeline,
    ReloadPipelines,
    ListRuns,
    ReadRun,
    CancelRun,
    RetryRun,
    ReadMetrics,
    ReadHealth,
    ReadReadiness,
    ReadDocument,
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
    route(Verb::Post, "/hooks/{id}", Op::TakeWebhook, Access::Open, Body::Raw(MAX_HOOK_BYTES)),
    route(Verb::Post, "/tokens", Op::CreateToken, Access::Needs(May::ManageTokens), Body::Json(SMALL)),
    route(Verb::Get, "/tokens", Op::ListTokens, Access::Needs(May::ManageTokens), Body::None),
    route(Verb::Delete, "/tokens/{id}", Op::RevokeToken, Access::Needs(May::ManageTokens), Body::None),
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

impl Operation {
    /// Every operation.
    pub const ALL: [Self; 74] = [
        Self::CreateJob,
        Self::CreateBatch,
        Self::ListJobs,
        Self::ReadStatus,
        Self::ReadResult,
        Self::ReadArtifact,
        Self::UpdateJob,
        Self::RunJob,
        Self::RetryJob,
        Self::CancelJob,
        Self::AnswerJob,
        Self::PullJob,
        Self::HeartbeatJob,
        Self::CompleteJob,
        Self::FailJob,
        Self::AskInput,
        Self::DeferJob,
        Self::AcquireClaim,
        Self::RenewClaim,
        Self::ReleaseClaim,
        Self::RegisterPeer,
        Self::ListPeers,
        Self::ReadPeer,
        Self::ForgetPeer,
        Self::CreateAsk,
        Self::ListAsks,
        Self::ListPendingAsks,
        Self::ReadAsk,
        Self::AckAsk,
        Self::WaitAsk,
        Self::PurgeJob,
        Self::ReadFacts,
        Self::ReadWhy,
        Self::StreamFacts,
        Self::ListOrphans,
        Self::CancelOrphan,
        Self::SettleOrphan,
        Self::ListCapabilities,
        Self::InvokeCapability,
        Self::ReadOutcome,
        Self::ListDeferred,
        Self::ReadDeferred,
        Self::ReadDeferredStatus,
        Self::PollDeferred,
        Self::CancelDeferred,
        Self::TakeCallback,
        Self::TriggerPlugin,
        Self::TriggerPipeline,
        Self::ReadPluginJob,
        Self::ReadPluginTree,
        Self::ListPlugins,
        Self::ReadPlugin,
        Self::TakeWebhook,
        Self::CreateToken,
        Self::ListTokens,
        Self::RevokeToken,
        Self::ListNodes,
        Self::DrainNode,
        Self::UndrainNode,
        Self::PublishEvent,
        Self::ListEvents,
        Self::ReadEvent,
        Self::ListPipelines,
        Self::ReadPipeline,
        Self::StartPipeline,
        Self::ReloadPipelines,
        Self::ListRuns,
        Self::ReadRun,
        Self::CancelRun,
        Self::RetryRun,
        Self::ReadMetrics,
        Self::ReadHealth,
        Self::ReadReadiness,
        Self::ReadDocument,
    ];

    /// Whether it is of Ductile's face: its clients read another kind of error.
    pub const fn speaks_ductile(self) -> bool {
        matches!(
            self,
            Self::TriggerPlugin
                | Self::TriggerPipeline
                | Self::ReadPluginJob
                | Self::ReadPluginTree
                | Self::ListPlugins
                | Self::ReadPlugin
                | Self::TakeWebhook
        )
    }

    /// The stable name: of an idempotency key's route, of a metric's label, in the API document.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CreateJob => "create_job",
            Self::CreateBatch => "create_batch",
            Self::ListJobs => "list_jobs",
            Self::ReadStatus => "read_status",
            Self::ReadResult => "read_result",
            Self::ReadArtifact => "read_artifact",
            Self::UpdateJob => "update_job",
            Self::RunJob => "run_job",
            Self::RetryJob => "retry_job",
            Self::CancelJob => "cancel_job",
            Self::AnswerJob => "answer_job",
            Self::PullJob => "pull_job",
            Self::HeartbeatJob => "heartbeat_job",
            Self::CompleteJob => "complete_job",
            Self::FailJob => "fail_job",
            Self::AskInput => "ask_input",
            Self::DeferJob => "defer_job",
            Self::AcquireClaim => "acquire_claim",
            Self::RenewClaim => "renew_claim",
            Self::ReleaseClaim => "release_claim",
            Self::RegisterPeer => "register_peer",
            Self::ListPeers => "list_peers",
            Self::ReadPeer => "read_peer",
            Self::ForgetPeer => "forget_peer",
            Self::CreateAsk => "create_ask",
            Self::ListAsks => "list_asks",
            Self::ListPendingAsks => "list_pending_asks",
            Self::ReadAsk => "read_ask",
            Self::AckAsk => "ack_ask",
            Self::WaitAsk => "wait_ask",
            Self::PurgeJob => "purge_job",
            Self::ReadFacts => "read_facts",
            Self::ReadWhy => "read_why",
            Self::StreamFacts => "stream_facts",
            Self::ListOrphans => "list_orphans",
            Self::CancelOrphan => "cancel_orphan",
            Self::SettleOrphan => "settle_orphan",
            Self::ListCapabilities => "list_capabilities",
            Self::InvokeCapability => "invoke_capability",
            Self::ReadOutcome => "read_outcome",
            Self::ListDeferred => "list_deferred_operations",
            Self::ReadDeferred => "read_deferred_operation",
            Self::ReadDeferredStatus => "read_deferred_status",
            Self::PollDeferred => "poll_deferred_operation",
            Self::CancelDeferred => "cancel_deferred_operation",
            Self::TakeCallback => "take_callback",
            Self::TriggerPlugin => "trigger_plugin",
            Self::TriggerPipeline => "trigger_pipeline",
            Self::ReadPluginJob => "read_plugin_job",
            Self::ReadPluginTree => "read_plugin_tree",
            Self::ListPlugins => "list_plugins",
            Self::ReadPlugin => "read_plugin",
            Self::TakeWebhook => "take_webhook",
            Self::CreateToken => "create_token",
            Self::ListTokens => "list_tokens",
            Self::RevokeToken => "revoke_token",
            Self::ListNodes => "list_nodes",
            Self::DrainNode => "drain_node",
            Self::UndrainNode => "undrain_node",
            Self::PublishEvent => "publish_event",
            Self::ListEvents => "list_events",
            Self::ReadEvent => "read_event",
            Self::ListPipelines => "list_pipelines",
            Self::ReadPipeline => "read_pipeline",
            Self::StartPipeline => "start_pipeline",
            Self::ReloadPipelines => "reload_pipelines",
            Self::ListRuns => "list_runs",
            Self::ReadRun => "read_run",
            Self::CancelRun => "cancel_run",
            Self::RetryRun => "retry_run",
            Self::ReadMetrics => "read_metrics",
            Self::ReadHealth => "read_health",
            Self::ReadReadiness => "read_readiness",
            Self::ReadDocument => "read_document",
        }
    }

    /// One line for people.
    pub const fn summary(self) -> &'static str {
        match self {
            Self::CreateJob => "Accept a job; it is on stable storage when this answers",
            Self::CreateBatch => "Accept up to 1,000 jobs, each with its own verdict",
            Self::ListJobs => "List jobs, newest change first",
            Self::ReadStatus => "Where a job is",
            Self::ReadResult => "The result of a job, or the word that there is none yet",
            Self::ReadArtifact => "A piece of what an attempt has left, also while it runs",
            Self::UpdateJob => "Report where a job is",
            Self::RunJob => "Run a queued, failed or unavailable job now",
            Self::RetryJob => "Try a failed, unavailable or delivered job again",
            Self::CancelJob => "Ask to stop a job",
            Self::AnswerJob => "Answer what a job waits for",
            Self::PullJob => "Wait for a job to do; it is handed out under a lease",
            Self::HeartbeatJob => "The doer of a job is alive: renew its lease, hear of a cancel",
            Self::CompleteJob => "A job that was pulled is done",
            Self::FailJob => "A job that was pulled cannot be done, or not now",
            Self::AskInput => "A job that was pulled needs an answer first",
            Self::DeferJob => {
                "A job that was pulled goes on at a service: it is asked about here from now on"
            }
            Self::AcquireClaim => "Claim the oldest resource that nobody holds, or one by its id",
            Self::RenewClaim => "Prolong a claim, by compare-and-swap on its version",
            Self::ReleaseClaim => "Give a claim back",
            Self::RegisterPeer => "Register a peer, or say anew what it is; to register is to be heard of",
            Self::ListPeers => "The peers of the circles that the caller sees, and whether they are there",
            Self::ReadPeer => "One peer, and whether it is there",
            Self::ForgetPeer => "Forget a peer; its jobs stay as they are",
            Self::CreateAsk => "Say something to a peer; it opens a thread, and nobody is waited for",
            Self::ListAsks => "The asks about a job, newest first",
            Self::ListPendingAsks => "The open asks of a peer, newest first; may wait for one",
            Self::ReadAsk => "One ask, and whether it was received",
            Self::AckAsk => "Confirm that an ask was received; no job is touched",
            Self::WaitAsk => "Wait until an ask of one's own is closed",
            Self::PurgeJob => "Delete the bodies of a job that is over",
            Self::ReadFacts => "What happened to a job, oldest first",
            Self::ReadWhy => "Why a job is not moving",
            Self::StreamFacts => "Follow the ledger as server-sent events",
            Self::ListOrphans => "Work that may still run outside although it is over here, oldest first",
            Self::CancelOrphan => "Ask the service of an orphan to stop it, again",
            Self::SettleOrphan => "Vouch that nothing of an orphan runs outside any more",
            Self::ListCapabilities => "The executors that jobs may name, and how each may be invoked",
            Self::InvokeCapability => {
                "Invoke an executor and wait for its result within bounds, or take a handle"
            }
            Self::ReadOutcome => "The one record of a directive, also of one that was rejected",
            Self::ListDeferred => {
                "Deferred operations, newest change first, digests in place of what is private"
            }
            Self::ReadDeferred => "One deferred operation and its history in digests",
            Self::ReadDeferredStatus => "Where a deferred operation is; no service is asked",
            Self::PollDeferred => "Ask the service of a deferred operation now",
            Self::CancelDeferred => "Ask to stop a deferred operation",
            Self::TakeCallback => "A service says that there is news of an operation; it is asked at once",
            Self::TriggerPlugin => "Ask a plugin for one of its commands, as Ductile's clients do",
            Self::TriggerPipeline => {
                "Start a pipeline by its name; whoever starts a synchronous one waits for its end"
            }
            Self::ReadPluginJob => "Where a job or a run is, in Ductile's words",
            Self::ReadPluginTree => "All jobs of the run that a job belongs to",
            Self::ListPlugins => "The plugins that jobs may name",
            Self::ReadPlugin => "One plugin, what it can be asked, and the schemas of that",
            Self::TakeWebhook => {
                "A signed webhook comes in and becomes an event; the same one again starts nothing"
            }
            Self::CreateToken => "Make an access token; its secret is shown once",
            Self::ListTokens => "All access tokens, without their secrets",
            Self::RevokeToken => "Revoke an access token",
            Self::ListNodes => "The processes that work on this store, the newest first",
            Self::DrainNode => "Tell a node to take no more work; it finishes what it has",
            Self::UndrainNode => "Tell a node to take work again",
            Self::PublishEvent => "Write an event down; what it starts is decided right after",
            Self::ListEvents => "Events, newest first",
            Self::ReadEvent => "One event, and what came of it for every pipeline that listens",
            Self::ListPipelines => "The pipelines of this node, by name",
            Self::ReadPipeline => "One pipeline: what starts it, and what follows what",
            Self::StartPipeline => "Start a pipeline by its name, and wait for its end within bounds",
            Self::ReloadPipelines => {
                "Read the files of pipelines anew, on this node; what runs is not touched"
            }
            Self::ListRuns => "Runs of pipelines, newest first",
            Self::ReadRun => "One run, and where it has been",
            Self::CancelRun => "Ask to stop a run, with everything that it has begun",
            Self::RetryRun => {
                "Try every step of a run again that failed and of whose failure nothing was made"
            }
            Self::ReadMetrics => "Figures for Prometheus",
            Self::ReadHealth => "Whether the process lives",
            Self::ReadReadiness => "Whether it can serve",
            Self::ReadDocument => "This document",
        }
    }
}
