//! What an operation is asked with beside its body: parts of the path, headers, the query.

use serde_json::{Value, json};

use crate::operation::Operation;
use crate::routes::Route;

pub(super) fn of(route: &Route) -> Value {
    let mut parameters = Vec::new();
    if route.path.contains("{id}") {
        parameters
            .push(json!({ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } }));
    }
    if route.path.contains("{name}") {
        parameters
            .push(json!({ "name": "name", "in": "path", "required": true, "schema": { "type": "string" } }));
    }
    let waits = [Operation::ReadStatus, Operation::ReadDeferredStatus, Operation::InvokeCapability];
    if waits.contains(&route.operation) {
        parameters.push(json!({ "name": "Prefer", "in": "header", "schema": { "type": "string" },
            "description": "wait=N: answer when it is over, or after so many seconds, at most 60" }));
    }
    let text = |name: &str, about: &str| json!({ "name": name, "in": "query", "description": about, "schema": { "type": "string" } });
    let limit = json!({ "name": "limit", "in": "query", "schema": {
        "type": "integer", "minimum": 1, "maximum": api::limits::MAX_PAGE, "default": api::limits::DEFAULT_PAGE } });
    let cursor = text("cursor", "next_cursor of the page before");
    match route.operation {
        Operation::ListJobs => {
            for name in ["state", "owner_peer_id", "created_by_peer_id", "repowire_session_id", "circle"] {
                parameters.push(text(name, "only jobs with this value"));
            }
            parameters.push(text("view", "full or summary"));
            parameters.extend([limit, cursor]);
        }
        Operation::ListDeferred => {
            for (name, about) in [
                ("status", "one of the eight statuses"),
                ("kind", "of this kind"),
                ("owner", "of this module"),
            ] {
                parameters.push(text(name, about));
            }
            parameters.extend([limit, cursor]);
        }
        Operation::ReadFacts | Operation::ListOrphans => parameters.extend([limit, cursor]),
        Operation::ListPeers => {
            for (name, about) in [
                ("circle", "of this circle"),
                ("label", "with this label"),
                ("display_name", "called so"),
            ] {
                parameters.push(text(name, about));
            }
            parameters.extend([limit, cursor]);
        }
        Operation::ListEvents => {
            for (name, about) in [
                ("type", "of this type"),
                ("status", "waiting, routed, declined or no_route"),
                ("circle", "of this circle"),
            ] {
                parameters.push(text(name, about));
            }
            parameters.extend([limit, cursor]);
        }
        Operation::ListRuns => {
            for (name, about) in [
                ("pipeline", "of this pipeline"),
                ("status", "running, cancelling, completed, failed or cancelled"),
                ("circle", "of this circle"),
            ] {
                parameters.push(text(name, about));
            }
            parameters.extend([limit, cursor]);
        }
        Operation::ListAsks => parameters.push(text("job_id", "the job that they are about")),
        Operation::ListPendingAsks => {
            for (name, about) in [
                ("peer_id", "the peer; the one that the token speaks for if left out"),
                ("direction", "inbound if left out, outbound or both"),
                ("circle", "a token that is bound to one says so itself"),
            ] {
                parameters.push(text(name, about));
            }
            parameters.push(json!({ "name": "wait_seconds", "in": "query",
                "description": "how long to wait for one if there is none, at most 60",
                "schema": { "type": "integer", "minimum": 0 } }));
        }
        Operation::ReadArtifact => parameters.extend([
            text("attempt_id", "of this attempt; of the last if left out"),
            json!({ "name": "offset", "in": "query", "description": "from this byte on; an empty answer is the end as of now",
                "schema": { "type": "integer", "minimum": 0, "default": 0 } }),
        ]),
        Operation::ReadPluginState => {
            parameters.push(json!({
                "name": "after", "in": "query", "description": "facts after this number; left out, the newest",
                "schema": { "type": "integer", "minimum": 0 },
            }));
        }
        Operation::StreamFacts => parameters.extend([
            text("job", "only the facts of this job"),
            json!({ "name": "after", "in": "query", "schema": { "type": "integer", "minimum": 0 } }),
            json!({ "name": "Last-Event-ID", "in": "header", "schema": { "type": "integer", "minimum": 0 } }),
        ]),
        Operation::CreateJob
        | Operation::CreateBatch
        | Operation::UpdateJob
        | Operation::RunJob
        | Operation::RetryJob
        | Operation::CancelJob
        | Operation::AnswerJob
        | Operation::CompleteJob
        | Operation::FailJob
        | Operation::AskInput
        | Operation::DeferJob
        | Operation::InvokeCapability
        | Operation::CreateAsk
        | Operation::PublishEvent
        | Operation::StartPipeline
        | Operation::CancelRun
        | Operation::TriggerPlugin
        | Operation::TriggerPipeline
        | Operation::PurgeJob => parameters.push(json!({
            "name": "Idempotency-Key", "in": "header",
            "description": "names this write; the same key and request get the same answer, byte for byte",
            "schema": { "type": "string", "maxLength": api::limits::MAX_KEY_BYTES },
        })),
        Operation::ReadStatus
        | Operation::ReadResult
        | Operation::ReadWhy
        | Operation::PullJob
        | Operation::HeartbeatJob
        | Operation::AcquireClaim
        | Operation::RenewClaim
        | Operation::ReleaseClaim
        | Operation::RegisterPeer
        | Operation::ReadPeer
        | Operation::ForgetPeer
        | Operation::ReadAsk
        | Operation::AckAsk
        | Operation::WaitAsk
        | Operation::CancelOrphan
        | Operation::SettleOrphan
        | Operation::ListCapabilities
        | Operation::ReadOutcome
        | Operation::ReadDeferred
        | Operation::ReadDeferredStatus
        | Operation::PollDeferred
        | Operation::CancelDeferred
        | Operation::TakeCallback
        | Operation::ReadPluginJob
        | Operation::ReadPluginTree
        | Operation::ListPlugins
        | Operation::ReadPlugin
        | Operation::TakeWebhook
        | Operation::CreateToken
        | Operation::ListTokens
        | Operation::RevokeToken
        | Operation::ListNodes
        | Operation::DrainNode
        | Operation::UndrainNode
        | Operation::ReadEvent
        | Operation::ListPipelines
        | Operation::ReadPipeline
        | Operation::ReloadPipelines
        | Operation::ResetPlugin
        | Operation::ReadPluginDocument
        | Operation::ListSkills
        | Operation::ReadRun
        | Operation::RetryRun
        | Operation::ReadMetrics
        | Operation::ReadHealth
        | Operation::ReadReadiness
        | Operation::ReadDocument => {}
    }
    json!(parameters)
}
