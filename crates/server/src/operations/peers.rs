//! Peers, and what they say to each other.

use serde_json::json;

use super::{Body, Delete, Get, Operation, Post, SMALL, Waits, answer, by, needs, schema};
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
        paths: &[(Post, "/peers")],
        request_example: Some(
            || json!({ "peer_id": "printer-1", "display_name": "the printer", "circle": "press", "labels": ["offset"] }),
        ),
        handler: by!(peers::register),
        ..Operation::taking::<api::RegisterPeer, api::PeerAnswer>(May::Report, Body::Json(SMALL))
    },
    Operation {
        name: "list_peers",
        summary: "The peers of the circles that the caller sees, and whether they are there",
        paths: &[(Get, "/peers")],
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
        handler: by!(peers::list),
        ..Operation::reading::<api::PeerList>()
    },
    Operation {
        name: "read_peer",
        summary: "One peer, and whether it is there",
        paths: &[(Get, "/peers/{id}")],
        reads_query: true,
        parameters: || vec![circle_of_peer()],
        also_refused: &[409],
        handler: by!(peers::read),
        ..Operation::reading::<api::PeerAnswer>()
    },
    Operation {
        name: "forget_peer",
        summary: "Forget a peer; its jobs stay as they are",
        paths: &[(Delete, "/peers/{id}")],
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
        paths: &[(Post, "/asks")],
        keyed: true,
        request_example: Some(
            || json!({ "to_peer": "the printer", "text": "gloss or matt?", "circle": "press" }),
        ),
        also_refused: &[404],
        handler: by!(asks::create),
        ..Operation::taking::<api::CreateAsk, api::AskOpened>(May::Create, Body::Json(SMALL))
    },
    Operation {
        name: "list_asks",
        summary: "The asks about a job, newest first",
        paths: &[(Get, "/asks")],
        reads_query: true,
        parameters: || vec![required_text("job_id", "the job that they are about")],
        also_refused: &[404],
        handler: by!(asks::list),
        ..Operation::reading::<api::AskList>()
    },
    Operation {
        name: "list_pending_asks",
        summary: "The open asks of a peer, newest first; may wait for one",
        paths: &[(Get, "/asks/pending")],
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
        handler: by!(asks::pending),
        ..Operation::reading::<api::AskList>()
    },
    Operation {
        name: "read_ask",
        summary: "One ask, and whether it was received",
        paths: &[(Get, "/asks/{id}")],
        handler: by!(asks::read),
        ..Operation::reading::<api::AskAnswer>()
    },
    Operation {
        name: "ack_ask",
        summary: "Confirm that an ask was received; no job is touched",
        paths: &[(Post, "/asks/{id}/ack")],
        request_example: Some(|| json!({ "message": "matt" })),
        also_refused: &[410],
        handler: by!(asks::ack),
        ..Operation::taking::<api::AckAsk, api::AskAnswer>(May::Report, Body::Optional(SMALL))
    },
    Operation {
        name: "ack_named_ask",
        summary: "Confirm that an ask was received, named by its correlation id",
        paths: &[(Post, "/ack")],
        request_example: Some(|| json!({ "correlation_id": "ask-1", "message": "matt" })),
        also_refused: &[404, 410],
        handler: by!(asks::ack_named),
        ..Operation::taking::<api::AckNamed, api::AskAnswer>(May::Report, Body::Json(SMALL))
    },
    Operation {
        name: "wait_ask",
        summary: "Wait until an ask of one's own is closed",
        paths: &[(Post, "/asks/{id}/wait")],
        waits: Waits::Always,
        request_example: Some(|| json!({ "timeout_seconds": 45 })),
        handler: by!(asks::wait),
        ..Operation::taking::<api::WaitAsk, api::AskWaited>(May::Create, Body::Optional(SMALL))
    },
];
