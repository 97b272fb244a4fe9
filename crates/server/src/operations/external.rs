//! Executors that are invoked for a result or a handle, and work that goes on at services.

use api::limits::MAX_REQUEST_BYTES;
use domain::operation::OperationStatus;
use serde_json::json;

use super::{Body, Operation, SMALL, Waits, answer, any_object, by, get, needs, post, request, schema};
use crate::access::authorise::{Access, Permission as May};
use crate::external::callback;
use crate::external::capabilities;
use crate::external::deferred;
use crate::external::orphans;
use crate::external::sensorium;
use crate::openapi::parameters::{cursor_of, limit, text, word};
use crate::openapi::request_limits;

/// The rows.
pub(super) static OPERATIONS: &[Operation] = &[
    Operation {
        name: "list_orphans",
        summary: "Work that may still run outside although it is over here, oldest first",
        paths: &[get("/orphans")],
        access: needs(May::Read),
        reads_query: true,
        parameters: || vec![limit(), cursor_of("op-")],
        answers: &[answer(200, schema::<api::OrphanList>)],
        handler: by!(orphans::list),
        ..Operation::PLAIN
    },
    Operation {
        name: "cancel_orphan",
        summary: "Ask the service of an orphan to stop it, again",
        paths: &[post("/orphans/{id}/cancel")],
        access: needs(May::Cancel),
        body: Body::Optional(SMALL),
        takes: Some(request::<api::RetryCancel>),
        request_example: Some(|| json!({ "reason": "it costs money" })),
        answers: &[answer(200, schema::<api::OrphanAnswer>)],
        handler: by!(orphans::cancel),
        ..Operation::PLAIN
    },
    Operation {
        name: "settle_orphan",
        summary: "Vouch that nothing of an orphan runs outside any more",
        paths: &[post("/orphans/{id}/settle")],
        access: needs(May::Settle),
        body: Body::Json(SMALL),
        takes: Some(request::<api::SettleOrphan>),
        request_example: Some(|| json!({ "note": "the console shows nothing of it" })),
        answers: &[answer(200, schema::<api::OrphanAnswer>)],
        handler: by!(orphans::settle),
        ..Operation::PLAIN
    },
    Operation {
        name: "list_capabilities",
        summary: "The executors that jobs may name, and how each may be invoked",
        paths: &[get("/v1/capabilities")],
        access: needs(May::Read),
        answers: &[answer(200, schema::<api::CapabilityList>)],
        handler: by!(capabilities::list),
        ..Operation::PLAIN
    },
    Operation {
        name: "invoke_capability",
        invokes: true,
        summary: "Invoke an executor and wait for its result within bounds, or take a handle",
        paths: &[post("/v1/capabilities/{id}/invoke")],
        access: needs(May::Create),
        body: Body::Json(MAX_REQUEST_BYTES),
        waits: Waits::Always,
        prefers_wait: true,
        keyed: true,
        takes: Some(request::<api::deferred::Invoke>),
        request_example: Some(
            || json!({ "input": { "pages": 12 }, "timing": { "mode": "sync", "timeout_ms": 2000 } }),
        ),
        answers: &[
            answer(200, |schemas| {
                json!({ "anyOf": [
            schemas.add::<api::deferred::InvokeOutcome>(),
            schemas.add::<api::deferred::DeferredStatus>(),
        ] })
            }),
            answer(202, schema::<api::deferred::DeferredOperation>),
        ],
        also_refused: &[429],
        handler: by!(capabilities::invoke),
        ..Operation::PLAIN
    },
    Operation {
        name: "invoke_host_capability",
        invokes: true,
        summary: "Invoke an executor with the body as its input, or take a handle with ?mode=deferred",
        paths: &[post("/v1/host/capabilities/{id}")],
        access: needs(May::Create),
        body: Body::Json(MAX_REQUEST_BYTES),
        waits: Waits::Always,
        prefers_wait: true,
        reads_query: true,
        keyed: true,
        parameters: || vec![word("mode", "sync if left out", &["sync", "deferred"])],
        takes: Some(|_| request_limits::any_object()),
        request_example: Some(|| json!({ "pages": 12 })),
        answers: &[
            answer(200, |schemas| {
                json!({ "anyOf": [
            schemas.add::<api::deferred::InvokeOutcome>(),
            schemas.add::<api::deferred::DeferredStatus>(),
        ] })
            }),
            answer(202, schema::<api::deferred::DeferredOperation>),
        ],
        also_refused: &[429],
        handler: by!(capabilities::invoke_as_host),
        ..Operation::PLAIN
    },
    Operation {
        name: "read_outcome",
        summary: "The one record of a directive, also of one that was rejected",
        paths: &[get("/v1/sensorium/outcomes/{id}")],
        access: needs(May::Read),
        answers: &[answer(200, schema::<api::sensorium::DirectiveOutcome>)],
        handler: by!(sensorium::read_outcome),
        ..Operation::PLAIN
    },
    Operation {
        name: "list_deferred_operations",
        summary: "Deferred operations, newest change first, digests in place of what is private",
        paths: &[get("/v1/deferred-operations"), get("/v1/deferred")],
        access: needs(May::Read),
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
        answers: &[answer(200, schema::<api::deferred::DeferredList>)],
        handler: by!(deferred::list),
        ..Operation::PLAIN
    },
    Operation {
        name: "read_deferred_operation",
        summary: "One deferred operation and its history in digests",
        paths: &[get("/v1/deferred-operations/{id}"), get("/v1/deferred/{id}")],
        access: needs(May::Read),
        answers: &[answer(200, schema::<api::deferred::DeferredDetail>)],
        handler: by!(deferred::read_detail),
        ..Operation::PLAIN
    },
    Operation {
        name: "read_deferred_status",
        summary: "Where a deferred operation is; no service is asked",
        paths: &[get("/v1/deferred-operations/{id}/status"), get("/v1/deferred/{id}/status")],
        access: needs(May::Read),
        waits: Waits::IfPreferred { job_id: |request| deferred::job_id_named(&request.id) },
        prefers_wait: true,
        answers: &[answer(200, schema::<api::deferred::DeferredStatus>)],
        handler: by!(deferred::read_status),
        ..Operation::PLAIN
    },
    Operation {
        name: "poll_deferred_operation",
        summary: "Ask the service of a deferred operation now",
        paths: &[post("/v1/deferred-operations/{id}/poll"), post("/v1/deferred/{id}/poll")],
        access: needs(May::Run),
        body: Body::Optional(SMALL),
        answers: &[answer(200, schema::<api::deferred::DeferredStatus>)],
        also_refused: &[429],
        handler: by!(deferred::poll),
        ..Operation::PLAIN
    },
    Operation {
        name: "cancel_deferred_operation",
        summary: "Ask to stop a deferred operation",
        paths: &[post("/v1/deferred-operations/{id}/cancel"), post("/v1/deferred/{id}/cancel")],
        access: needs(May::Cancel),
        body: Body::Optional(SMALL),
        takes: Some(request::<api::CancelJob>),
        request_example: Some(|| json!({ "reason": "no longer needed" })),
        answers: &[
            answer(200, schema::<api::deferred::DeferredStatus>),
            answer(202, schema::<api::deferred::DeferredStatus>),
        ],
        handler: by!(deferred::cancel),
        ..Operation::PLAIN
    },
    Operation {
        name: "retry_deferred_operation",
        summary: "Try a deferred operation that failed again",
        paths: &[post("/v1/deferred-operations/{id}/retry"), post("/v1/deferred/{id}/retry")],
        access: needs(May::Run),
        body: Body::Optional(SMALL),
        waits: Waits::Always,
        answers: &[answer(200, schema::<api::deferred::DeferredStatus>)],
        handler: by!(deferred::retry),
        ..Operation::PLAIN
    },
    Operation {
        name: "take_callback",
        summary: "A service says that there is news of an operation; it is asked at once",
        paths: &[post("/callbacks/{id}/{name}")],
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
