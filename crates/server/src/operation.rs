//! What may be asked for: one word each, its stable name, and a sentence that explains it. Where it is asked for stands in `routes.rs`.

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
    ReadPluginDocument,
    ListSkills,
    ReadPluginState,
    ResetPlugin,
    TakeWebhook,
    CreateToken,
    ListTokens,
    RevokeToken,
    ReadClock,
    SetClockRight,
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

impl Operation {
    /// Every operation.
    pub const ALL: [Self; 80] = [
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
        Self::ReadPluginDocument,
        Self::ListSkills,
        Self::ReadPluginState,
        Self::ResetPlugin,
        Self::TakeWebhook,
        Self::CreateToken,
        Self::ListTokens,
        Self::RevokeToken,
        Self::ReadClock,
        Self::SetClockRight,
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
                | Self::ReadPluginDocument
                | Self::ListSkills
                | Self::TakeWebhook
        )
    }

    /// Whether its answer may come long after its token was checked. Whoever hands something out checks before that itself.
    pub const fn answers_after_a_wait(self) -> bool {
        matches!(
            self,
            Self::ReadStatus
                | Self::ReadDeferredStatus
                | Self::RunJob
                | Self::RetryJob
                | Self::InvokeCapability
                | Self::StartPipeline
                | Self::TriggerPipeline
                | Self::ListPendingAsks
                | Self::WaitAsk
        )
    }

    /// Whether it is asked with a query.
    pub const fn reads_query(self) -> bool {
        matches!(
            self,
            Self::ListJobs
                | Self::ReadFacts
                | Self::ListOrphans
                | Self::ListDeferred
                | Self::ListPeers
                | Self::ListEvents
                | Self::ListRuns
                | Self::ListAsks
                | Self::ListPendingAsks
                | Self::ReadArtifact
                | Self::StreamFacts
                | Self::ReadPluginState
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
            Self::ReadPluginDocument => "read_plugin_document",
            Self::ListSkills => "list_skills",
            Self::ReadPluginState => "read_plugin_state",
            Self::ResetPlugin => "reset_plugin",
            Self::TakeWebhook => "take_webhook",
            Self::CreateToken => "create_token",
            Self::ListTokens => "list_tokens",
            Self::RevokeToken => "revoke_token",
            Self::ReadClock => "read_clock",
            Self::SetClockRight => "set_clock_right",
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
            Self::ReadPluginDocument => "What a plugin can be asked, as OpenAPI",
            Self::ListSkills => "All commands of plugins and all pipelines, and where each is started",
            Self::ReadPluginState => "What a plugin remembers: its state, and the facts that are kept of it",
            Self::ResetPlugin => "Let a plugin that is left alone be started again, on this node",
            Self::TakeWebhook => {
                "A signed webhook comes in and becomes an event; the same one again starts nothing"
            }
            Self::CreateToken => "Make an access token; its secret is shown once",
            Self::ListTokens => "All access tokens, without their secrets",
            Self::RevokeToken => "Revoke an access token",
            Self::ReadClock => "How the store's time stands to the wall clock",
            Self::SetClockRight => "Make the store's time what the wall clock says",
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
