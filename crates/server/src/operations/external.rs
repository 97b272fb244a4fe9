//! Executors that are invoked for a result or a handle, and work that goes on at services.

use api::deferred::{DeferredOperation, DeferredStatus, InvokeOutcome};
use domain::operation::OperationStatus;
use serde_json::json;

use super::{Body, Get, LARGE, Operation, Post, SMALL, Waits, answer, any_object, by, either, needs, schema};
use crate::access::authorise::{Access, Permission as May};
use crate::external::{callback, capabilities, deferred, orphans, sensorium};
use crate::openapi::parameters::{cursor_of, limit, text, word};
use crate::openapi::request_limits;

/// The rows.
pub(super) static OPERATIONS: &[Operation] = &[
    Operation {
        name: "list_orphans",
        summary: "Work that may still run outside although it is over here, oldest first",
        paths: &[(Get, "/orphans")],
        reads_query: true,
        parameters: || vec![limit(), cursor_of("op-")],
        handler: by!(orphans::list),
        ..Operation::reading::<api::OrphanList>()
    },
    Operation {
        name: "cancel_orphan",
        summary: "Ask the service of an orphan to stop it, again",
        paths: &[(Post, "/orphans/{id}/cancel")],
        request_example: Some(|| json!({ "reason": "it costs money" })),
        handler: by!(orphans::cancel),
        ..Operation::taking::<api::RetryCancel, api::OrphanAnswer>(May::Cancel, Body::Optional(SMALL))
    },
    Operation {
        name: "settle_orphan",
        summary: "Vouch that nothing of an orphan runs outside any more",
        paths: &[(Post, "/orphans/{id}/settle")],
        request_example: Some(|| json!({ "note": "the console shows nothing of it" })),
        handler: by!(orphans::settle),
        ..Operation::taking::<api::SettleOrphan, api::OrphanAnswer>(May::Settle, Body::Json(SMALL))
    },
    Operation {
        name: "list_capabilities",
        summary: "The executors that jobs may name, and how each may be invoked",
        paths: &[(Get, "/v1/capabilities")],
        handler: by!(capabilities::list),
        ..Operation::reading::<api::CapabilityList>()
    },
    Operation {
        name: "invoke_capability",
        invokes: true,
        summary: "Invoke an executor and wait for its result within bounds, or take a handle",
        paths: &[(Post, "/v1/capabilities/{id}/invoke")],
        waits: Waits::Always,
        prefers_wait: true,
        keyed: true,
        request_example: Some(
            || json!({ "input": { "pages": 12 }, "timing": { "mode": "sync", "timeout_ms": 2000 } }),
        ),
        answers: &[
            answer(200, either::<InvokeOutcome, DeferredStatus>),
            answer(202, schema::<DeferredOperation>),
        ],
        also_refused: &[429],
        handler: by!(capabilities::invoke),
        ..Operation::taking::<api::deferred::Invoke, DeferredStatus>(May::Create, Body::Json(LARGE))
    },
    Operation {
        name: "invoke_host_capability",
        invokes: true,
        summary: "Invoke an executor with the body as its input, or take a handle with ?mode=deferred",
        paths: &[(Post, "/v1/host/capabilities/{id}")],
        access: needs(May::Create),
        body: Body::Json(LARGE),
        waits: Waits::Always,
        prefers_wait: true,
        reads_query: true,
        keyed: true,
        parameters: || vec![word("mode", "sync if left out", &["sync", "deferred"])],
        takes: Some(|_| request_limits::any_object()),
        request_example: Some(|| json!({ "pages": 12 })),
        answers: &[
            answer(200, either::<InvokeOutcome, DeferredStatus>),
            answer(202, schema::<DeferredOperation>),
        ],
        also_refused: &[429],
        handler: by!(capabilities::invoke_as_host),
        ..Operation::PLAIN
    },
    Operation {
        name: "read_outcome",
        summary: "The one record of a directive, also of one that was rejected",
        paths: &[(Get, "/v1/sensorium/outcomes/{id}")],
        handler: by!(sensorium::read_outcome),
        ..Operation::reading::<api::sensorium::DirectiveOutcome>()
    },
    Operation {
        name: "list_deferred_operations",
        summary: "Deferred operations, newest change first, digests in place of what is private",
        paths: &[(Get, "/v1/deferred-operations"), (Get, "/v1/deferred")],
        reads_query: true,
        parameters: || {
            let statuses = OperationStatus::ALL.map(OperationStatus::as_str);
            vec![
                word("status", "only operations with this status", &statuses),
                text("kind", "of this kind"),
                text("owner", "of this module"),
                text("external_job_id", "that their service knows by this id"),
                limit(),
                cursor_of("work-"),
            ]
        },
        handler: by!(deferred::list),
        ..Operation::reading::<api::deferred::DeferredList>()
    },
    Operation {
        name: "read_deferred_operation",
        summary: "One deferred operation and its history in digests",
        paths: &[(Get, "/v1/deferred-operations/{id}"), (Get, "/v1/deferred/{id}")],
        handler: by!(deferred::read_detail),
        ..Operation::reading::<api::deferred::DeferredDetail>()
    },
    Operation {
        name: "read_deferred_status",
        summary: "Where a deferred operation is; no service is asked",
        paths: &[(Get, "/v1/deferred-operations/{id}/status"), (Get, "/v1/deferred/{id}/status")],
        waits: Waits::IfPreferred { job_id: |request| deferred::job_id_named(&request.id) },
        prefers_wait: true,
        handler: by!(deferred::read_status),
        ..Operation::reading::<DeferredStatus>()
    },
    Operation {
        name: "poll_deferred_operation",
        summary: "Ask the service of a deferred operation now",
        paths: &[(Post, "/v1/deferred-operations/{id}/poll"), (Post, "/v1/deferred/{id}/poll")],
        also_refused: &[429],
        handler: by!(deferred::poll),
        ..Operation::order::<DeferredStatus>(May::Run)
    },
    Operation {
        name: "cancel_deferred_operation",
        summary: "Ask to stop a deferred operation",
        paths: &[(Post, "/v1/deferred-operations/{id}/cancel"), (Post, "/v1/deferred/{id}/cancel")],
        request_example: Some(|| json!({ "reason": "no longer needed" })),
        answers: &[answer(200, schema::<DeferredStatus>), answer(202, schema::<DeferredStatus>)],
        handler: by!(deferred::cancel),
        ..Operation::taking::<api::CancelJob, DeferredStatus>(May::Cancel, Body::Optional(SMALL))
    },
    Operation {
        name: "retry_deferred_operation",
        summary: "Try a deferred operation that failed again",
        paths: &[(Post, "/v1/deferred-operations/{id}/retry"), (Post, "/v1/deferred/{id}/retry")],
        waits: Waits::Always,
        handler: by!(deferred::retry),
        ..Operation::order::<DeferredStatus>(May::Run)
    },
    Operation {
        name: "take_callback",
        summary: "A service says that there is news of an operation; it is asked at once",
        paths: &[(Post, "/callbacks/{id}/{name}")],
        access: Access::Open,
        body: Body::Raw(SMALL),
        takes: Some(|_| json!({})),
        answers: &[answer(202, any_object)],
        answer_example: Some(|| json!({ "status": "accepted" })),
        also_refused: &[401],
        never_refused: &[409],
        handler: by!(callback::take),
        ..Operation::PLAIN
    },
];
