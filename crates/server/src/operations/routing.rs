//! Events, pipelines and their runs.

use std::future::ready;

use api::limits::MAX_REQUEST_BYTES;
use domain::event::EventStatus;
use domain::run::RunState;
use serde_json::json;

use super::{Body, Operation, SMALL, Waits, answer, by, get, needs, post, request, schema};
use crate::access::authorise::Permission as May;
use crate::openapi::parameters::{cursor_of, limit, text, word};
use crate::routing::events;
use crate::routing::pipelines;
use crate::routing::runs;

/// The rows.
pub(super) static OPERATIONS: &[Operation] = &[
    Operation {
        name: "publish_event",
        summary: "Write an event down; what it starts is decided right after",
        paths: &[post("/events")],
        access: needs(May::Create),
        body: Body::Json(MAX_REQUEST_BYTES),
        keyed: true,
        takes: Some(request::<api::PublishEvent>),
        request_example: Some(
            || json!({ "type": "tide.changed", "payload": { "level": 2140 }, "dedupe_key": "tide-7" }),
        ),
        answers: &[answer(202, schema::<api::EventPublished>)],
        handler: by!(events::publish),
        ..Operation::PLAIN
    },
    Operation {
        name: "list_events",
        summary: "Events, newest first",
        paths: &[get("/events")],
        access: needs(May::Read),
        reads_query: true,
        parameters: || {
            let statuses = EventStatus::ALL.map(EventStatus::as_str);
            vec![
                text("type", "of this type"),
                word("status", "only events with this status", &statuses),
                text("circle", "of this circle"),
                limit(),
                cursor_of("event-"),
            ]
        },
        answers: &[answer(200, schema::<api::EventList>)],
        also_refused: &[400],
        handler: by!(events::list),
        ..Operation::PLAIN
    },
    Operation {
        name: "read_event",
        summary: "One event, and what came of it for every pipeline that listens",
        paths: &[get("/events/{id}")],
        access: needs(May::Read),
        answers: &[answer(200, schema::<api::EventAnswer>)],
        handler: by!(events::read),
        ..Operation::PLAIN
    },
    Operation {
        name: "list_pipelines",
        summary: "The pipelines of this node, by name",
        paths: &[get("/pipelines")],
        access: needs(May::Read),
        answers: &[answer(200, schema::<api::PipelineList>)],
        handler: |server, _| Box::pin(ready(Ok(pipelines::list(server)))),
        ..Operation::PLAIN
    },
    Operation {
        name: "read_pipeline",
        summary: "One pipeline: what starts it, and what follows what",
        paths: &[get("/pipelines/{id}")],
        access: needs(May::Read),
        answers: &[answer(200, schema::<api::PipelineAnswer>)],
        handler: |server, request| Box::pin(ready(pipelines::read(server, &request))),
        ..Operation::PLAIN
    },
    Operation {
        name: "start_pipeline",
        summary: "Start a pipeline by its name, and wait for its end within bounds",
        paths: &[post("/pipelines/{id}/runs")],
        access: needs(May::Create),
        body: Body::Optional(MAX_REQUEST_BYTES),
        waits: Waits::Always,
        keyed: true,
        takes: Some(request::<api::StartPipeline>),
        request_example: Some(|| json!({ "payload": { "level": 2140 } })),
        answers: &[answer(200, schema::<api::PipelineStarted>), answer(202, schema::<api::PipelineStarted>)],
        handler: by!(pipelines::start),
        ..Operation::PLAIN
    },
    Operation {
        name: "reload_pipelines",
        summary: "Read the files of pipelines anew, on this node; what runs is not touched",
        paths: &[post("/pipelines/reload")],
        access: needs(May::ManageNodes),
        body: Body::Optional(SMALL),
        answers: &[answer(200, schema::<api::PipelinesReloaded>)],
        handler: by!(pipelines::reload),
        ..Operation::PLAIN
    },
    Operation {
        name: "list_runs",
        summary: "Runs of pipelines, newest first",
        paths: &[get("/runs")],
        access: needs(May::Read),
        reads_query: true,
        parameters: || {
            vec![
                text("pipeline", "of this pipeline"),
                word("status", "only runs in this state", &RunState::ALL.map(RunState::as_str)),
                text("circle", "of this circle"),
                limit(),
                cursor_of("run-"),
            ]
        },
        answers: &[answer(200, schema::<api::RunList>)],
        also_refused: &[400],
        handler: by!(runs::list),
        ..Operation::PLAIN
    },
    Operation {
        name: "read_run",
        summary: "One run, and where it has been",
        paths: &[get("/runs/{id}")],
        access: needs(May::Read),
        answers: &[answer(200, schema::<api::RunAnswer>)],
        handler: by!(runs::read),
        ..Operation::PLAIN
    },
    Operation {
        name: "cancel_run",
        summary: "Ask to stop a run, with everything that it has begun",
        paths: &[post("/runs/{id}/cancel")],
        access: needs(May::Cancel),
        body: Body::Optional(SMALL),
        keyed: true,
        takes: Some(request::<api::CancelRun>),
        request_example: Some(|| json!({ "reason": "no longer needed" })),
        answers: &[answer(200, schema::<api::RunAnswer>)],
        handler: by!(runs::cancel),
        ..Operation::PLAIN
    },
    Operation {
        name: "retry_run",
        summary: "Try every step of a run again that failed and of whose failure nothing was made",
        paths: &[post("/runs/{id}/retry")],
        access: needs(May::Run),
        body: Body::Optional(SMALL),
        answers: &[answer(200, schema::<api::RunRetried>)],
        handler: by!(runs::retry),
        ..Operation::PLAIN
    },
];
