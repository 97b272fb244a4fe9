//! Peers, and what they say to each other.

use serde_json::json;

use super::{Body, Operation, SMALL, Waits, answer, by, delete, get, needs, post, request, schema};
use crate::access::authorise::Permission as May;
use crate::openapi::parameters::{limit, number, peer_cursor, required_text, text, word};
use crate::peers;
use crate::peers::asks;

/// Where several circles have a peer with the id.
fn circle_of_peer() -> serde_json::Value {
    text(
        "circle",
        "the circle of the peer, where several that the caller sees have one with the id; empty for no circle",
    )
}

/// The rows.
pub(super) static OPERATIONS: &[Operation] = &[
    Operation {
        name: "register_peer",
        summary: "Register a peer, or say anew what it is; to register is to be heard of",
        paths: &[post("/peers")],
        access: needs(May::Report),
        body: Body::Json(SMALL),
        takes: Some(request::<api::RegisterPeer>),
        request_example: Some(
            || json!({ "peer_id": "printer-1", "display_name": "the printer", "circle": "press", "labels": ["offset"] }),
        ),
        answers: &[answer(200, schema::<api::PeerAnswer>)],
        handler: by!(peers::register),
        ..Operation::PLAIN
    },
    Operation {
        name: "list_peers",
        summary: "The peers of the circles that the caller sees, and whether they are there",
        paths: &[get("/peers")],
        access: needs(May::Read),
        reads_query: true,
        parameters: || {
            vec![
                text("circle", "of this circle"),
                text("label", "with this label"),
                text("display_name", "called so"),
                text("path", "working in this folder"),
                limit(),
                peer_cursor(),
            ]
        },
        answers: &[answer(200, schema::<api::PeerList>)],
        handler: by!(peers::list),
        ..Operation::PLAIN
    },
    Operation {
        name: "read_peer",
        summary: "One peer, and whether it is there",
        paths: &[get("/peers/{id}")],
        access: needs(May::Read),
        reads_query: true,
        parameters: || vec![circle_of_peer()],
        answers: &[answer(200, schema::<api::PeerAnswer>)],
        also_refused: &[409],
        handler: by!(peers::read),
        ..Operation::PLAIN
    },
    Operation {
        name: "forget_peer",
        summary: "Forget a peer; its jobs stay as they are",
        paths: &[delete("/peers/{id}")],
        access: needs(May::Report),
        reads_query: true,
        parameters: || vec![circle_of_peer()],
        answers: &[answer(200, schema::<api::PeerForgotten>)],
        also_refused: &[409],
        handler: by!(peers::forget),
        ..Operation::PLAIN
    },
    Operation {
        name: "create_ask",
        summary: "Say something to a peer; it opens a thread, and nobody is waited for",
        paths: &[post("/asks")],
        access: needs(May::Create),
        body: Body::Json(SMALL),
        keyed: true,
        takes: Some(request::<api::CreateAsk>),
        request_example: Some(
            || json!({ "to_peer": "the printer", "text": "gloss or matt?", "circle": "press" }),
        ),
        answers: &[answer(200, schema::<api::AskOpened>)],
        also_refused: &[404],
        handler: by!(asks::create),
        ..Operation::PLAIN
    },
    Operation {
        name: "list_asks",
        summary: "The asks about a job, newest first",
        paths: &[get("/asks")],
        access: needs(May::Read),
        reads_query: true,
        parameters: || vec![required_text("job_id", "the job that they are about")],
        answers: &[answer(200, schema::<api::AskList>)],
        also_refused: &[404],
        handler: by!(asks::list),
        ..Operation::PLAIN
    },
    Operation {
        name: "list_pending_asks",
        summary: "The open asks of a peer, newest first; may wait for one",
        paths: &[get("/asks/pending")],
        access: needs(May::Read),
        waits: Waits::Always,
        reads_query: true,
        parameters: || {
            let about = "how long to wait for one if there is none; 60 at most are granted";
            vec![
                text("peer_id", "the peer; may be left out if the token speaks for one"),
                word("direction", "inbound if left out", &["inbound", "outbound", "both"]),
                text("circle", "a token that is bound to one says so itself"),
                number("wait_seconds", about),
            ]
        },
        answers: &[answer(200, schema::<api::AskList>)],
        handler: by!(asks::pending),
        ..Operation::PLAIN
    },
    Operation {
        name: "read_ask",
        summary: "One ask, and whether it was received",
        paths: &[get("/asks/{id}")],
        access: needs(May::Read),
        answers: &[answer(200, schema::<api::AskAnswer>)],
        handler: by!(asks::read),
        ..Operation::PLAIN
    },
    Operation {
        name: "ack_ask",
        summary: "Confirm that an ask was received; no job is touched",
        paths: &[post("/asks/{id}/ack")],
        access: needs(May::Report),
        body: Body::Optional(SMALL),
        takes: Some(request::<api::AckAsk>),
        request_example: Some(|| json!({ "message": "matt" })),
        answers: &[answer(200, schema::<api::AskAnswer>)],
        also_refused: &[410],
        handler: by!(asks::ack),
        ..Operation::PLAIN
    },
    Operation {
        name: "ack_named_ask",
        summary: "Confirm that an ask was received, named by its correlation id",
        paths: &[post("/ack")],
        access: needs(May::Report),
        body: Body::Json(SMALL),
        takes: Some(request::<api::AckNamed>),
        request_example: Some(|| json!({ "correlation_id": "ask-1", "message": "matt" })),
        answers: &[answer(200, schema::<api::AskAnswer>)],
        also_refused: &[404, 410],
        handler: by!(asks::ack_named),
        ..Operation::PLAIN
    },
    Operation {
        name: "wait_ask",
        summary: "Wait until an ask of one's own is closed",
        paths: &[post("/asks/{id}/wait")],
        access: needs(May::Create),
        body: Body::Optional(SMALL),
        waits: Waits::Always,
        takes: Some(request::<api::WaitAsk>),
        request_example: Some(|| json!({ "timeout_seconds": 45 })),
        answers: &[answer(200, schema::<api::AskWaited>)],
        handler: by!(asks::wait),
        ..Operation::PLAIN
    },
];
