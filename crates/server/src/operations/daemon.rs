//! The daemon itself: tokens, clock, nodes, the ledger as a stream, figures, probes.

use std::future::ready;

use serde_json::{Value, json};
use store::Taking;

use super::{
    Answer, Body, Delete, Get, Operation, Post, SMALL, SlotClass, answer, any_object, any_text, by, needs,
    schema,
};
use crate::access::authorise::{Access, Permission as May};
use crate::daemon::{clock, health, metrics, nodes, tokens};
use crate::facts;
use crate::openapi::parameters::{header_number, number, text};
use crate::openapi::{self, Schemas};

/// The rows.
pub(super) static OPERATIONS: &[Operation] = &[
    Operation {
        name: "stream_facts",
        summary: "Follow the ledger as server-sent events",
        paths: &[(Get, "/facts/stream")],
        access: needs(May::Read),
        slot: SlotClass::Stream,
        reads_query: true,
        parameters: || {
            let last = "where a reader that comes back was; goes before `after`";
            vec![
                text("job", "only the facts of this job"),
                number("after", "from this position on"),
                header_number("Last-Event-ID", last),
            ]
        },
        answers: &[Answer { status: 200, media_type: "text/event-stream", schema: event_schema }],
        answer_example: Some(|| json!({ "id": "412", "event": "fact", "data": "{\"position\":412}" })),
        also_refused: &[404],
        handler: by!(facts::stream),
        ..Operation::PLAIN
    },
    Operation {
        name: "create_token",
        summary: "Make an access token; its secret is shown once",
        paths: &[(Post, "/tokens")],
        request_example: Some(
            || json!({ "name": "the printer", "role": "peer", "circle": "press", "peer_id": "printer-1" }),
        ),
        handler: by!(tokens::create),
        ..Operation::taking::<api::CreateToken, api::TokenCreated>(May::ManageTokens, Body::Json(SMALL))
    },
    Operation {
        name: "list_tokens",
        summary: "All access tokens, without their secrets",
        paths: &[(Get, "/tokens")],
        access: needs(May::ManageTokens),
        answers: &[answer(200, schema::<api::TokenList>)],
        handler: |server, _| Box::pin(tokens::list(server)),
        ..Operation::PLAIN
    },
    Operation {
        name: "revoke_token",
        summary: "Revoke an access token",
        paths: &[(Delete, "/tokens/{id}")],
        access: needs(May::ManageTokens),
        answers: &[answer(200, schema::<api::TokenRevoked>)],
        handler: by!(tokens::revoke),
        ..Operation::PLAIN
    },
    Operation {
        name: "read_clock",
        summary: "How the store's time stands to the wall clock",
        paths: &[(Get, "/clock")],
        access: needs(May::ReadFigures),
        answers: &[answer(200, schema::<api::Clock>)],
        handler: |server, _| Box::pin(clock::read(server)),
        ..Operation::PLAIN
    },
    Operation {
        name: "set_clock_right",
        summary: "Make the store's time what the wall clock says",
        paths: &[(Post, "/clock/set-right")],
        handler: by!(clock::set_right),
        ..Operation::order::<api::ClockSet>(May::ManageClock)
    },
    Operation {
        name: "list_nodes",
        summary: "The processes that work on this store, the newest first",
        paths: &[(Get, "/nodes")],
        access: needs(May::ReadFigures),
        answers: &[answer(200, schema::<api::NodeList>)],
        handler: |server, _| Box::pin(nodes::list(server)),
        ..Operation::PLAIN
    },
    Operation {
        name: "drain_node",
        summary: "Tell a node to take no more work; it finishes what it has",
        paths: &[(Post, "/nodes/{id}/drain")],
        handler: |server, request| Box::pin(nodes::tell(server, request, Taking::Drains)),
        ..Operation::order::<api::NodeAnswer>(May::ManageNodes)
    },
    Operation {
        name: "undrain_node",
        summary: "Tell a node to take work again",
        paths: &[(Post, "/nodes/{id}/undrain")],
        handler: |server, request| Box::pin(nodes::tell(server, request, Taking::Takes)),
        ..Operation::order::<api::NodeAnswer>(May::ManageNodes)
    },
    Operation {
        name: "read_metrics",
        summary: "Figures for Prometheus",
        paths: &[(Get, "/metrics")],
        access: needs(May::ReadFigures),
        answers: &[Answer { status: 200, media_type: "text/plain", schema: any_text }],
        answer_example: Some(|| json!("longhaul_fact_streams 1\n")),
        handler: |server, _| Box::pin(metrics::read(server)),
        ..Operation::PLAIN
    },
    Operation {
        name: "read_health",
        summary: "Whether the process lives",
        paths: &[(Get, "/healthz")],
        access: Access::Open,
        slot: SlotClass::None,
        answers: &[answer(200, any_object)],
        answer_example: Some(|| json!({ "status": "ok" })),
        handler: |_, _| Box::pin(ready(Ok(health::alive()))),
        ..Operation::PLAIN
    },
    Operation {
        name: "read_readiness",
        summary: "Whether it can serve",
        paths: &[(Get, "/readyz")],
        access: Access::Open,
        slot: SlotClass::None,
        answers: &[answer(200, any_object)],
        answer_example: Some(|| json!({ "status": "ready" })),
        also_refused: &[500],
        handler: |server, _| Box::pin(health::ready(server)),
        ..Operation::PLAIN
    },
    Operation {
        name: "read_document",
        summary: "This document",
        paths: &[(Get, "/openapi.json")],
        access: Access::Open,
        answers: &[answer(200, any_object)],
        answer_example: Some(|| json!({ "openapi": "3.1.0" })),
        handler: |_, _| Box::pin(ready(Ok(openapi::read()))),
        ..Operation::PLAIN
    },
];

/// One event of the stream, as `schema` of a stream of events is read before `OpenAPI` 3.2.
fn event_schema(_: &mut Schemas) -> Value {
    json!({
        "type": "object",
        "properties": {
            "id": { "type": "string", "description": "its position, for Last-Event-ID" },
            "event": { "type": "string", "enum": ["fact", "outside"] },
            "data": { "type": "string", "description": "JSON: a Fact, or the newest of the work outside" },
        },
    })
}
