//! Work that is pulled: hand-outs, reports, claims.

use serde_json::json;

use super::{Body, LARGE, Operation, Post, SMALL, by};
use crate::access::authorise::Permission as May;
use crate::pulled;
use crate::pulled::claims::{self, RESOURCE_TYPES};

/// The attempt of the examples.
const ATTEMPT: &str = "attempt-0197a9c2f3c07d1c8f1c5f0f6f5b2f10";

/// The rows.
pub(super) static OPERATIONS: &[Operation] = &[
    Operation {
        name: "pull_job",
        summary: "Wait for a job to do; it is handed out under a lease",
        paths: &[(Post, "/jobs/next")],
        request_example: Some(|| json!({ "worker_id": "press-1", "lanes": ["print"], "wait_seconds": 0 })),
        handler: by!(pulled::pull),
        ..Operation::taking::<api::PullJob, api::PulledJob>(May::Report, Body::Json(SMALL))
    },
    Operation {
        name: "heartbeat_job",
        summary: "The doer of a job is alive: renew its lease, hear of a cancel",
        paths: &[(Post, "/jobs/{id}/heartbeat")],
        for_attempts: true,
        request_example: Some(
            || json!({ "attempt_id": ATTEMPT, "progress": { "pages": 6 }, "progress_note": "half of it" }),
        ),
        handler: by!(pulled::heartbeat),
        ..Operation::taking::<api::HeartbeatJob, api::HeartbeatAnswer>(May::Report, Body::Json(SMALL))
    },
    Operation {
        name: "complete_job",
        summary: "A job that was pulled is done",
        paths: &[(Post, "/jobs/{id}/complete")],
        for_attempts: true,
        keyed: true,
        request_example: Some(
            || json!({ "attempt_id": ATTEMPT, "summary": "12 pages", "result": { "pages": 12 } }),
        ),
        handler: by!(pulled::complete),
        ..Operation::taking::<api::CompleteJob, api::StatusAnswer>(May::Report, Body::Json(LARGE))
    },
    Operation {
        name: "fail_job",
        summary: "A job that was pulled cannot be done, or not now",
        paths: &[(Post, "/jobs/{id}/fail")],
        for_attempts: true,
        keyed: true,
        request_example: Some(|| {
            json!({
                "attempt_id": ATTEMPT,
                "reason": "no_paper",
                "error": { "message": "the tray is empty" },
                "retryable": true,
            })
        }),
        handler: by!(pulled::fail),
        ..Operation::taking::<api::FailJob, api::StatusAnswer>(May::Report, Body::Json(LARGE))
    },
    Operation {
        name: "ask_input",
        summary: "A job that was pulled needs an answer first",
        paths: &[(Post, "/jobs/{id}/ask")],
        keyed: true,
        request_example: Some(|| json!({ "attempt_id": ATTEMPT, "question": { "text": "Glossy or matt?" } })),
        handler: by!(pulled::ask),
        ..Operation::taking::<api::AskInput, api::StatusAnswer>(May::Report, Body::Json(LARGE))
    },
    Operation {
        name: "defer_job",
        summary: "A job that was pulled goes on at a service: it is asked about here from now on",
        paths: &[(Post, "/jobs/{id}/defer")],
        keyed: true,
        request_example: Some(
            || json!({ "attempt_id": ATTEMPT, "executor": "render-farm", "id": "render-7" }),
        ),
        handler: by!(pulled::defer),
        ..Operation::taking::<api::DeferJob, api::StatusAnswer>(May::Report, Body::Json(SMALL))
    },
    Operation {
        name: "acquire_claim",
        summary: "Claim the oldest resource that nobody holds, or one by its id",
        paths: &[(Post, "/claims")],
        request_example: Some(|| json!({ "resource_type": "WORKORDER", "owner_id": "runner-1" })),
        also_refused: &[404],
        handler: by!(claims::acquire),
        ..Operation::taking::<api::AcquireClaim, api::ClaimAnswer>(May::Report, Body::Json(SMALL))
    },
    Operation {
        name: "renew_claim",
        summary: "Prolong a claim, by compare-and-swap on its version",
        paths: &[(Post, "/claims/{id}/{name}/renew")],
        id_words: &RESOURCE_TYPES,
        request_example: Some(|| json!({ "owner_id": "runner-1", "claim_version": 0 })),
        handler: by!(claims::renew),
        ..Operation::taking::<api::SwapClaim, api::ClaimAnswer>(May::Report, Body::Json(SMALL))
    },
    Operation {
        name: "release_claim",
        summary: "Give a claim back",
        paths: &[(Post, "/claims/{id}/{name}/release")],
        id_words: &RESOURCE_TYPES,
        request_example: Some(|| json!({ "owner_id": "runner-1", "claim_version": 0 })),
        handler: by!(claims::release),
        ..Operation::taking::<api::SwapClaim, api::ClaimAnswer>(May::Report, Body::Json(SMALL))
    },
    Operation {
        name: "settle_claim",
        summary: "End the event or workorder that is claimed, with a reason",
        paths: &[(Post, "/claims/{id}/{name}/settle")],
        id_words: &RESOURCE_TYPES,
        request_example: Some(
            || json!({ "owner_id": "runner-1", "claim_version": 0, "reason": "SCHEDULED" }),
        ),
        handler: by!(claims::settle),
        ..Operation::taking::<api::SettleClaim, api::ClaimAnswer>(May::Report, Body::Json(SMALL))
    },
];
