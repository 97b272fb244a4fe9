//! Examples of requests and answers. A test sends every request and compares the form of its answer.

use serde_json::{Value, json};

use crate::operation::Operation;

/// A request that is accepted as it stands.
pub(super) fn request(operation: Operation) -> Option<Value> {
    Some(match operation {
        Operation::CreateJob => json!({
            "title": "Render the cover",
            "kind": "render",
            "executor": "echo",
            "input": { "pages": 12 },
            "retry": { "max_attempts": 3, "backoff_seconds": 2, "max_backoff_seconds": 60 },
            "timeout_seconds": 600,
            "tags": ["cover"],
        }),
        Operation::CreateBatch => {
            json!({ "jobs": [{ "title": "first" }, { "title": "second", "priority": 5 }] })
        }
        Operation::UpdateJob => json!({
            "state": "completed",
            "progress_note": "the last page is out",
            "result_summary": "12 pages",
            "result_data": { "pages": 12 },
        }),
        Operation::RunJob | Operation::RetryJob => json!({}),
        Operation::CancelJob => json!({ "reason": "no longer needed" }),
        Operation::AnswerJob => json!({ "answer": { "approved": true } }),
        Operation::PullJob => json!({ "worker_id": "press-1", "lanes": ["print"], "wait_seconds": 0 }),
        Operation::HeartbeatJob => json!({
            "attempt_id": "attempt-0197a9c2f3c07d1c8f1c5f0f6f5b2f10",
            "progress": { "pages": 6 },
            "progress_note": "half of it",
        }),
        Operation::CompleteJob => json!({
            "attempt_id": "attempt-0197a9c2f3c07d1c8f1c5f0f6f5b2f10",
            "summary": "12 pages",
            "result": { "pages": 12 },
        }),
        Operation::FailJob => json!({
            "attempt_id": "attempt-0197a9c2f3c07d1c8f1c5f0f6f5b2f10",
            "reason": "no_paper",
            "error": { "message": "the tray is empty" },
            "retryable": true,
        }),
        Operation::AskInput => json!({
            "attempt_id": "attempt-0197a9c2f3c07d1c8f1c5f0f6f5b2f10",
            "question": { "text": "Glossy or matt?" },
        }),
        Operation::DeferJob => json!({
            "attempt_id": "attempt-0197a9c2f3c07d1c8f1c5f0f6f5b2f10",
            "executor": "render-farm",
            "id": "render-7",
        }),
        Operation::AcquireClaim => json!({ "resource_type": "WORKORDER", "owner_id": "runner-1" }),
        Operation::RenewClaim | Operation::ReleaseClaim => {
            json!({ "owner_id": "runner-1", "claim_version": 0 })
        }
        Operation::RegisterPeer => {
            json!({ "peer_id": "printer-1", "display_name": "the printer", "circle": "press", "labels": ["offset"] })
        }
        Operation::CreateAsk => {
            json!({ "to_peer": "the printer", "text": "gloss or matt?", "circle": "press" })
        }
        Operation::AckAsk => json!({ "message": "matt" }),
        Operation::WaitAsk => json!({ "timeout_seconds": 45 }),
        Operation::CancelOrphan => json!({ "reason": "it costs money" }),
        Operation::SettleOrphan => json!({ "note": "the console shows nothing of it" }),
        Operation::InvokeCapability => {
            json!({ "input": { "pages": 12 }, "timing": { "mode": "sync", "timeout_ms": 2000 } })
        }
        Operation::CancelDeferred => json!({ "reason": "no longer needed" }),
        Operation::CreateToken => {
            json!({ "name": "the printer", "role": "peer", "circle": "press", "peer_id": "printer-1" })
        }
        Operation::PublishEvent => {
            json!({ "type": "tide.changed", "payload": { "level": 2140 }, "dedupe_key": "tide-7" })
        }
        Operation::StartPipeline => json!({ "payload": { "level": 2140 } }),
        Operation::CancelRun => json!({ "reason": "no longer needed" }),
        Operation::ListJobs
        | Operation::ReadStatus
        | Operation::ReadResult
        | Operation::ReadArtifact
        | Operation::ListPeers
        | Operation::ReadPeer
        | Operation::ForgetPeer
        | Operation::ListAsks
        | Operation::ListPendingAsks
        | Operation::ReadAsk
        | Operation::PurgeJob
        | Operation::ReadFacts
        | Operation::ReadWhy
        | Operation::StreamFacts
        | Operation::ListOrphans
        | Operation::ListCapabilities
        | Operation::ReadOutcome
        | Operation::ListDeferred
        | Operation::ReadDeferred
        | Operation::ReadDeferredStatus
        | Operation::PollDeferred
        | Operation::TakeCallback
        | Operation::TriggerPlugin
        | Operation::TriggerPipeline
        | Operation::ReadPluginJob
        | Operation::ReadPluginTree
        | Operation::ListPlugins
        | Operation::ReadPlugin
        | Operation::TakeWebhook
        | Operation::ListTokens
        | Operation::RevokeToken
        | Operation::ReadClock
        | Operation::SetClockRight
        | Operation::ListNodes
        | Operation::DrainNode
        | Operation::UndrainNode
        | Operation::ListEvents
        | Operation::ReadEvent
        | Operation::ListPipelines
        | Operation::ReadPipeline
        | Operation::ReloadPipelines
        | Operation::ReadPluginState
        | Operation::ResetPlugin
        | Operation::ReadPluginDocument
        | Operation::ListSkills
        | Operation::ListRuns
        | Operation::ReadRun
        | Operation::RetryRun
        | Operation::ReadMetrics
        | Operation::ReadHealth
        | Operation::ReadReadiness
        | Operation::ReadDocument => return None,
    })
}

/// An answer as it may come.
pub(super) fn answer(operation: Operation) -> Option<Value> {
    Some(match operation {
        Operation::CreateBatch => json!({
            "accepted": 1,
            "refused": 0,
            "results": [{ "index": 0, "status": 200, "job_id": "work-0197a9c2f3c07d1c8f1c5f0f6f5b2f10", "replayed": false }],
        }),
        Operation::ReadWhy => json!({
            "job_id": "work-0197a9c2f3c07d1c8f1c5f0f6f5b2f10",
            "work_id": "work-0197a9c2f3c07d1c8f1c5f0f6f5b2f10",
            "state": "queued",
            "reasons": [{
                "code": "not_due",
                "detail": "it was asked for at this time",
                "until": "2026-11-16T09:30:00.000000+00:00",
            }],
            "earliest_at": "2026-11-16T09:30:00.000000+00:00",
        }),
        Operation::RevokeToken => json!({ "id": "token-0197a9c2f3c07d1c8f1c5f0f6f5b2f10", "revoked": true }),
        Operation::PullJob => json!({ "job": null }),
        Operation::ReadHealth => json!({ "status": "ok" }),
        Operation::ReadReadiness => json!({ "status": "ready" }),
        Operation::CreateJob
        | Operation::ListJobs
        | Operation::ReadStatus
        | Operation::UpdateJob
        | Operation::RunJob
        | Operation::RetryJob
        | Operation::CancelJob
        | Operation::AnswerJob
        | Operation::HeartbeatJob
        | Operation::CompleteJob
        | Operation::FailJob
        | Operation::AskInput
        | Operation::DeferJob
        | Operation::AcquireClaim
        | Operation::RenewClaim
        | Operation::ReleaseClaim
        | Operation::RegisterPeer
        | Operation::ListPeers
        | Operation::ReadPeer
        | Operation::ForgetPeer
        | Operation::CreateAsk
        | Operation::ListAsks
        | Operation::ListPendingAsks
        | Operation::ReadAsk
        | Operation::AckAsk
        | Operation::WaitAsk
        | Operation::PurgeJob
        | Operation::ReadResult
        | Operation::ReadArtifact
        | Operation::ReadFacts
        | Operation::StreamFacts
        | Operation::ListOrphans
        | Operation::CancelOrphan
        | Operation::SettleOrphan
        | Operation::ListCapabilities
        | Operation::InvokeCapability
        | Operation::ReadOutcome
        | Operation::ListDeferred
        | Operation::ReadDeferred
        | Operation::ReadDeferredStatus
        | Operation::PollDeferred
        | Operation::CancelDeferred
        | Operation::TakeCallback
        | Operation::TriggerPlugin
        | Operation::TriggerPipeline
        | Operation::ReadPluginJob
        | Operation::ReadPluginTree
        | Operation::ListPlugins
        | Operation::ReadPlugin
        | Operation::TakeWebhook
        | Operation::CreateToken
        | Operation::ListTokens
        | Operation::ReadClock
        | Operation::SetClockRight
        | Operation::ListNodes
        | Operation::DrainNode
        | Operation::UndrainNode
        | Operation::PublishEvent
        | Operation::ListEvents
        | Operation::ReadEvent
        | Operation::ListPipelines
        | Operation::ReadPipeline
        | Operation::StartPipeline
        | Operation::ReloadPipelines
        | Operation::ReadPluginState
        | Operation::ResetPlugin
        | Operation::ReadPluginDocument
        | Operation::ListSkills
        | Operation::ListRuns
        | Operation::ReadRun
        | Operation::CancelRun
        | Operation::RetryRun
        | Operation::ReadMetrics
        | Operation::ReadDocument => return None,
    })
}
