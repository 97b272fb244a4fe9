//! Events, pipelines and their runs.

use std::future::ready;

use domain::event::EventStatus;
use domain::run::RunState;
use serde_json::json;

use super::{Body, Get, LARGE, Operation, Post, SMALL, Waits, answer, by, schema};
use crate::access::authorise::Permission as May;
use crate::openapi::parameters::{cursor_of, limit, text, word};
use crate::routing::{events, pipelines, runs};

/// The rows.
pub(super) static OPERATIONS: &[Operation] = &[
    Operation {
        name: "publish_event",
        summary: "Write an event down; what it starts is decided right after",
        paths: &[(Post, "/events")],
        keyed: true,
        request_example: Some(
            || json!({ "type": "tide.changed", "payload": { "level": 2140 }, "dedupe_key": "tide-7" }),
        ),
        answers: &[answer(202, schema::<api::EventPublished>)],
        handler: by!(events::publish),
        ..Operation::taking::<api::PublishEvent, api::EventPublished>(May::Create, Body::Json(LARGE))
    },
    Operation {
        name: "list_events",
        summary: "Events, newest first",
        paths: &[(Get, "/events")],
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
        also_refused: &[400],
        handler: by!(events::list),
        ..Operation::reading::<api::EventList>()
    },
    Operation {
        name: "read_event",
        summary: "One event, and what came of it for every pipeline that listens",
        paths: &[(Get, "/events/{id}")],
        handler: by!(events::read),
        ..Operation::reading::<api::EventAnswer>()
    },
    Operation {
        name: "list_pipelines",
        summary: "The pipelines of this node, by name",
        paths: &[(Get, "/pipelines")],
        handler: |server, _| Box::pin(ready(Ok(pipelines::list(server)))),
        ..Operation::reading::<api::PipelineList>()
    },
    Operation {
        name: "read_pipeline",
        summary: "One pipeline: what starts it, and what follows what",
        paths: &[(Get, "/pipelines/{id}")],
        handler: |server, request| Box::pin(ready(pipelines::read(server, &request))),
        ..Operation::reading::<api::PipelineAnswer>()
    },
    Operation {
        name: "start_pipeline",
        summary: "Start a pipeline by its name, and wait for its end within bounds",
        paths: &[(Post, "/pipelines/{id}/runs")],
        waits: Waits::Always,
        keyed: true,
        request_example: Some(|| json!({ "payload": { "level": 2140 } })),
        answers: &[answer(200, schema::<api::PipelineStarted>), answer(202, schema::<api::PipelineStarted>)],
        handler: by!(pipelines::start),
        ..Operation::taking::<api::StartPipeline, api::PipelineStarted>(May::Create, Body::Optional(LARGE))
    },
    Operation {
        name: "reload_pipelines",
        summary: "Read the files of pipelines anew, on this node; what runs is not touched",
        paths: &[(Post, "/pipelines/reload")],
        handler: by!(pipelines::reload),
        ..Operation::order::<api::PipelinesReloaded>(May::ManageNodes)
    },
    Operation {
        name: "list_runs",
        summary: "Runs of pipelines, newest first",
        paths: &[(Get, "/runs")],
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
        also_refused: &[400],
        handler: by!(runs::list),
        ..Operation::reading::<api::RunList>()
    },
    Operation {
        name: "read_run",
        summary: "One run, and where it has been",
        paths: &[(Get, "/runs/{id}")],
        handler: by!(runs::read),
        ..Operation::reading::<api::RunAnswer>()
    },
    Operation {
        name: "cancel_run",
        summary: "Ask to stop a run, with everything that it has begun",
        paths: &[(Post, "/runs/{id}/cancel")],
        keyed: true,
        request_example: Some(|| json!({ "reason": "no longer needed" })),
        handler: by!(runs::cancel),
        ..Operation::taking::<api::CancelRun, api::RunAnswer>(May::Cancel, Body::Optional(SMALL))
    },
    Operation {
        name: "retry_run",
        summary: "Try every step of a run again that failed and of whose failure nothing was made",
        paths: &[(Post, "/runs/{id}/retry")],
        handler: by!(runs::retry),
        ..Operation::order::<api::RunRetried>(May::Run)
    },
];
