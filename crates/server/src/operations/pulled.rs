//! Work that is pulled: hand-outs, reports, claims.

use api::limits::MAX_REQUEST_BYTES;
use serde_json::json;

use super::{Body, Operation, SMALL, answer, by, needs, post, request, schema};
use crate::access::authorise::Permission as May;
use crate::pulled;
use crate::pulled::claims::{self, RESOURCE_TYPES};

/// The rows.
pub(super) static OPERATIONS: &[Operation] = &[
    Operation {
        name: "pull_job",
        summary: "Wait for a job to do; it is handed out under a lease",
        paths: &[post("/jobs/next")],
        access: needs(May::Report),
        body: Body::Json(SMALL),
        takes: Some(request::<api::PullJob>),
        request_example: Some(|| json!({ "worker_id": "press-1", "lanes": ["print"], "wait_seconds": 0 })),
        answers: &[answer(200, schema::<api::PulledJob<'static>>)],
        handler: by!(pulled::pull),
        ..Operation::PLAIN
    },
    Operation {
        name: "heartbeat_job",
        summary: "The doer of a job is alive: renew its lease, hear of a cancel",
        paths: &[post("/jobs/{id}/heartbeat")],
        access: needs(May::Report),
        body: Body::Json(SMALL),
        for_attempts: true,
        takes: Some(request::<api::HeartbeatJob>),
        request_example: Some(|| {
            json!({
                "attempt_id": "attempt-0197a9c2f3c07d1c8f1c5f0f6f5b2f10",
                "progress": { "pages": 6 },
                "progress_note": "half of it",
            })
        }),
        answers: &[answer(200, schema::<api::HeartbeatAnswer<'static>>)],
        handler: by!(pulled::heartbeat),
        ..Operation::PLAIN
    },
    Operation {
        name: "complete_job",
        summary: "A job that was pulled is done",
        paths: &[post("/jobs/{id}/complete")],
        access: needs(May::Report),
        body: Body::Json(MAX_REQUEST_BYTES),
        for_attempts: true,
        keyed: true,
        takes: Some(request::<api::CompleteJob>),
        request_example: Some(|| {
            json!({
                "attempt_id": "attempt-0197a9c2f3c07d1c8f1c5f0f6f5b2f10",
                "summary": "12 pages",
                "result": { "pages": 12 },
            })
        }),
        answers: &[answer(200, schema::<api::StatusAnswer<'static>>)],
        handler: by!(pulled::complete),
        ..Operation::PLAIN
    },
    Operation {
        name: "fail_job",
        summary: "A job that was pulled cannot be done, or not now",
        paths: &[post("/jobs/{id}/fail")],
        access: needs(May::Report),
        body: Body::Json(MAX_REQUEST_BYTES),
        for_attempts: true,
        keyed: true,
        takes: Some(request::<api::FailJob>),
        request_example: Some(|| {
            json!({
                "attempt_id": "attempt-0197a9c2f3c07d1c8f1c5f0f6f5b2f10",
                "reason": "no_paper",
                "error": { "message": "the tray is empty" },
                "retryable": true,
            })
        }),
        answers: &[answer(200, schema::<api::StatusAnswer<'static>>)],
        handler: by!(pulled::fail),
        ..Operation::PLAIN
    },
    Operation {
        name: "ask_input",
        summary: "A job that was pulled needs an answer first",
        paths: &[post("/jobs/{id}/ask")],
        access: needs(May::Report),
        body: Body::Json(MAX_REQUEST_BYTES),
        keyed: true,
        takes: Some(request::<api::AskInput>),
        request_example: Some(|| {
            json!({
                "attempt_id": "attempt-0197a9c2f3c07d1c8f1c5f0f6f5b2f10",
                "question": { "text": "Glossy or matt?" },
            })
        }),
        answers: &[answer(200, schema::<api::StatusAnswer<'static>>)],
        handler: by!(pulled::ask),
        ..Operation::PLAIN
    },
    Operation {
        name: "defer_job",
        summary: "A job that was pulled goes on at a service: it is asked about here from now on",
        paths: &[post("/jobs/{id}/defer")],
        access: needs(May::Report),
        body: Body::Json(SMALL),
        keyed: true,
        takes: Some(request::<api::DeferJob>),
        request_example: Some(|| {
            json!({
                "attempt_id": "attempt-0197a9c2f3c07d1c8f1c5f0f6f5b2f10",
                "executor": "render-farm",
                "id": "render-7",
            })
        }),
        answers: &[answer(200, schema::<api::StatusAnswer<'static>>)],
        handler: by!(pulled::defer),
        ..Operation::PLAIN
    },
    Operation {
        name: "acquire_claim",
        summary: "Claim the oldest resource that nobody holds, or one by its id",
        paths: &[post("/claims")],
        access: needs(May::Report),
        body: Body::Json(SMALL),
        takes: Some(request::<api::AcquireClaim>),
        request_example: Some(|| json!({ "resource_type": "WORKORDER", "owner_id": "runner-1" })),
        answers: &[answer(200, schema::<api::ClaimAnswer>)],
        also_refused: &[404],
        handler: by!(claims::acquire),
        ..Operation::PLAIN
    },
    Operation {
        name: "renew_claim",
        summary: "Prolong a claim, by compare-and-swap on its version",
        paths: &[post("/claims/{id}/{name}/renew")],
        access: needs(May::Report),
        body: Body::Json(SMALL),
        id_words: &RESOURCE_TYPES,
        takes: Some(request::<api::SwapClaim>),
        request_example: Some(|| json!({ "owner_id": "runner-1", "claim_version": 0 })),
        answers: &[answer(200, schema::<api::ClaimAnswer>)],
        handler: by!(claims::renew),
        ..Operation::PLAIN
    },
    Operation {
        name: "release_claim",
        summary: "Give a claim back",
        paths: &[post("/claims/{id}/{name}/release")],
        access: needs(May::Report),
        body: Body::Json(SMALL),
        id_words: &RESOURCE_TYPES,
        takes: Some(request::<api::SwapClaim>),
        request_example: Some(|| json!({ "owner_id": "runner-1", "claim_version": 0 })),
        answers: &[answer(200, schema::<api::ClaimAnswer>)],
        handler: by!(claims::release),
        ..Operation::PLAIN
    },
    Operation {
        name: "settle_claim",
        summary: "End the event or workorder that is claimed, with a reason",
        paths: &[post("/claims/{id}/{name}/settle")],
        access: needs(May::Report),
        body: Body::Json(SMALL),
        id_words: &RESOURCE_TYPES,
        takes: Some(request::<api::SettleClaim>),
        request_example: Some(
            || json!({ "owner_id": "runner-1", "claim_version": 0, "reason": "SCHEDULED" }),
        ),
        answers: &[answer(200, schema::<api::ClaimAnswer>)],
        handler: by!(claims::settle),
        ..Operation::PLAIN
    },
];
