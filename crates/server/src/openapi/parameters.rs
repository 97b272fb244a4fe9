//! What an operation is asked with beside its body: parts of the path, headers, the query.

use api::limits::{DEFAULT_PAGE, MAX_KEY_CHARS, MAX_PAGE};
use domain::event::EventStatus;
use domain::job::JobStateName;
use domain::limits::MAX_ID_BYTES;
use domain::operation::OperationStatus;
use domain::run::RunState;
use serde_json::{Value, json};

use super::request_limits::{PEER_ID, TEXT};
use crate::claims::RESOURCE_TYPES;
use crate::cursor;
use crate::operation::Operation;
use crate::routes::Route;

pub(super) fn of(route: &Route, path: &str) -> Value {
    let mut parameters = Vec::new();
    for name in ["id", "name"] {
        if path.contains(&format!("{{{name}}}")) {
            let schema = match (route.operation, name) {
                (Operation::RenewClaim | Operation::ReleaseClaim, "id") => {
                    json!({ "type": "string", "enum": RESOURCE_TYPES })
                }
                _ => json!({ "type": "string", "minLength": 1 }),
            };
            parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": schema }));
        }
    }
    let waits = [Operation::ReadStatus, Operation::ReadDeferredStatus, Operation::InvokeCapability];
    if waits.contains(&route.operation) {
        parameters.push(json!({ "name": "Prefer", "in": "header", "schema": { "type": "string" },
            "description": "wait=N: answer when it is over, or after so many seconds, at most 60" }));
    }
    let limit = json!({ "name": "limit", "in": "query", "schema": {
        "type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": DEFAULT_PAGE } });
    match route.operation {
        Operation::ListJobs => {
            let states = JobStateName::ALL.map(JobStateName::as_str);
            parameters.push(word("state", "only jobs in this state", &states));
            for name in ["owner_peer_id", "created_by_peer_id", "repowire_session_id", "circle"] {
                parameters.push(text(name, "only jobs with this value"));
            }
            parameters.push(word("view", "full if left out", &["full", "summary"]));
            parameters.extend([limit, cursor_of("work-")]);
        }
        Operation::ListDeferred => {
            let statuses = OperationStatus::ALL.map(OperationStatus::as_str);
            parameters.push(word("status", "only operations with this status", &statuses));
            for (name, about) in [("kind", "of this kind"), ("owner", "of this module")] {
                parameters.push(text(name, about));
            }
            parameters.extend([limit, cursor_of("work-")]);
        }
        Operation::ReadFacts => {
            parameters.extend([limit, number("cursor", "next_cursor of the previous page")]);
        }
        Operation::ListOrphans => parameters.extend([limit, cursor_of("op-")]),
        Operation::ListPeers => {
            for (name, about) in [
                ("circle", "of this circle"),
                ("label", "with this label"),
                ("display_name", "called so"),
                ("path", "working in this folder"),
            ] {
                parameters.push(text(name, about));
            }
            let cursor = json!({ "name": "cursor", "in": "query", "description": CURSOR,
                "schema": { "type": "string", "maxLength": MAX_ID_BYTES, "pattern": PEER_ID.replace('+', "*") } });
            parameters.extend([limit, cursor]);
        }
        Operation::ListEvents => {
            parameters.push(text("type", "of this type"));
            let statuses = EventStatus::ALL.map(EventStatus::as_str);
            parameters.push(word("status", "only events with this status", &statuses));
            parameters.push(text("circle", "of this circle"));
            parameters.extend([limit, cursor_of("event-")]);
        }
        Operation::ListRuns => {
            parameters.push(text("pipeline", "of this pipeline"));
            let states = RunState::ALL.map(RunState::as_str);
            parameters.push(word("status", "only runs in this state", &states));
            parameters.push(text("circle", "of this circle"));
            parameters.extend([limit, cursor_of("run-")]);
        }
        Operation::ListAsks => parameters.push(json!({ "name": "job_id", "in": "query", "required": true,
            "description": "the job that they are about",
            "schema": { "type": "string", "minLength": 1, "pattern": TEXT } })),
        Operation::ListPendingAsks => {
            parameters.push(text("peer_id", "the peer; may be left out if the token speaks for one"));
            parameters.push(word("direction", "inbound if left out", &["inbound", "outbound", "both"]));
            parameters.push(text("circle", "a token that is bound to one says so itself"));
            let about = "how long to wait for one if there is none; 60 at most are granted";
            parameters.push(number("wait_seconds", about));
        }
        Operation::ReadArtifact => parameters.extend([
            text("attempt_id", "of this attempt; of the last if left out"),
            number("offset", "from this byte on; an empty answer is the end as of now"),
        ]),
        Operation::ReadPluginState => {
            parameters.push(number("after", "facts after this number; left out, the newest"));
        }
        Operation::StreamFacts => {
            let mut last = number("Last-Event-ID", "where a reader that comes back was; goes before `after`");
            last["in"] = "header".into();
            parameters.extend([
                text("job", "only the facts of this job"),
                number("after", "from this position on"),
                last,
            ]);
        }
        Operation::TriggerPipeline => {
            parameters.push(json!({ "name": "async", "in": "query", "schema": { "type": "string" },
                "description": "true: whoever starts a synchronous pipeline does not wait" }));
            parameters.push(idempotency_key());
        }
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
        | Operation::PurgeJob => parameters.push(idempotency_key()),
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
        | Operation::ReadClock
        | Operation::SetClockRight
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

const CURSOR: &str = "next_cursor of the previous page; empty for the first one";

fn text(name: &str, about: &str) -> Value {
    json!({ "name": name, "in": "query", "description": about, "schema": { "type": "string", "pattern": TEXT } })
}

/// One of these words; an empty one is as if it were left out.
fn word(name: &str, about: &str, words: &[&str]) -> Value {
    let words: Vec<&str> = words.iter().copied().chain([""]).collect();
    json!({ "name": name, "in": "query", "description": about, "schema": { "type": "string", "enum": words } })
}

fn number(name: &str, about: &str) -> Value {
    json!({ "name": name, "in": "query", "description": about,
        "schema": { "type": "integer", "minimum": 0, "maximum": u64::MAX } })
}

fn cursor_of(prefix: &str) -> Value {
    json!({ "name": "cursor", "in": "query", "description": CURSOR,
        "schema": { "type": "string", "pattern": cursor::pattern(prefix) } })
}

fn idempotency_key() -> Value {
    // Bare, with something to see at both ends, or in double quotes.
    let pattern =
        format!(r#"^(?:[!#-~](?:[ -~]{{0,{}}}[!-~])?|"[ -~]{{1,{MAX_KEY_CHARS}}}")$"#, MAX_KEY_CHARS - 2);
    json!({
        "name": "Idempotency-Key", "in": "header",
        "description": "names this write; the same key and request get the same answer, byte for byte",
        "schema": { "type": "string", "pattern": pattern },
    })
}
