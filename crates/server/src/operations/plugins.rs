//! Plugins, and the routes of Ductile's clients.

use std::future::ready;

use api::limits::MAX_REQUEST_BYTES;
use serde_json::json;

use super::{
    Body, Dialect, Operation, SMALL, Waits, answer, any_object, by, get, needs, post, request, schema,
};
use crate::access::authorise::{Access, Permission as May};
use crate::openapi::parameters::{number, plain_text};
use crate::plugins::ductile;
use crate::plugins::webhooks::{self, MAX_BODY_BYTES as MAX_HOOK_BYTES};

/// The rows.
pub(super) static OPERATIONS: &[Operation] = &[
    Operation {
        name: "trigger_plugin",
        summary: "Ask a plugin for one of its commands, as Ductile's clients do",
        paths: &[post("/plugin/{id}/{name}"), post("/plugin/{id}/state")],
        access: needs(May::Create),
        body: Body::Json(MAX_REQUEST_BYTES),
        dialect: Dialect::Ductile,
        keyed: true,
        takes: Some(request::<api::ductile::DuctileTrigger>),
        answers: &[answer(202, schema::<api::ductile::DuctileTriggered>)],
        handler: by!(ductile::trigger_plugin),
        ..Operation::PLAIN
    },
    Operation {
        name: "trigger_pipeline",
        summary: "Start a pipeline by its name; whoever starts a synchronous one waits for its end",
        paths: &[post("/pipeline/{id}")],
        access: needs(May::Create),
        body: Body::Json(MAX_REQUEST_BYTES),
        dialect: Dialect::Ductile,
        waits: Waits::Always,
        keyed: true,
        parameters: || vec![plain_text("async", "true: whoever starts a synchronous pipeline does not wait")],
        takes: Some(request::<api::ductile::DuctileTrigger>),
        answers: &[
            answer(200, schema::<api::ductile::DuctileOutcome>),
            answer(202, |schemas| {
                json!({ "anyOf": [
                schemas.add::<api::ductile::DuctileTriggered>(),
                schemas.add::<api::ductile::DuctileLate>(),
            ] })
            }),
        ],
        handler: by!(ductile::trigger_pipeline),
        ..Operation::PLAIN
    },
    Operation {
        name: "read_plugin_job",
        summary: "Where a job or a run is, in Ductile's words",
        paths: &[get("/job/{id}")],
        access: needs(May::Read),
        dialect: Dialect::Ductile,
        answers: &[answer(200, schema::<api::ductile::DuctileJob>)],
        handler: by!(ductile::read_job),
        ..Operation::PLAIN
    },
    Operation {
        name: "read_plugin_tree",
        summary: "All jobs of the run that a job belongs to",
        paths: &[get("/job/{id}/tree")],
        access: needs(May::Read),
        dialect: Dialect::Ductile,
        answers: &[answer(
            200,
            |schemas| json!({ "type": "array", "items": schemas.add::<api::ductile::DuctileJob>() }),
        )],
        handler: by!(ductile::read_tree),
        ..Operation::PLAIN
    },
    Operation {
        name: "list_plugins",
        summary: "The plugins that jobs may name",
        paths: &[get("/plugins")],
        access: needs(May::Read),
        dialect: Dialect::Ductile,
        answers: &[answer(200, schema::<api::ductile::PluginList>)],
        handler: |server, request| Box::pin(ready(Ok(ductile::list_plugins(server, &request)))),
        ..Operation::PLAIN
    },
    Operation {
        name: "read_plugin",
        summary: "One plugin, what it can be asked, and the schemas of that",
        paths: &[get("/plugin/{id}")],
        access: needs(May::Read),
        dialect: Dialect::Ductile,
        answers: &[answer(200, schema::<api::ductile::PluginDetail>)],
        handler: |server, request| Box::pin(ready(ductile::read_plugin(server, &request))),
        ..Operation::PLAIN
    },
    Operation {
        name: "read_plugin_document",
        summary: "What a plugin can be asked, as OpenAPI",
        paths: &[get("/plugin/{id}/openapi.json")],
        access: needs(May::Read),
        dialect: Dialect::Ductile,
        answers: &[answer(200, any_object)],
        answer_example: Some(|| json!({ "openapi": "3.1.0" })),
        handler: |server, request| Box::pin(ready(ductile::read_plugin_document(server, &request))),
        ..Operation::PLAIN
    },
    Operation {
        name: "list_skills",
        summary: "All commands of plugins and all pipelines, and where each is started",
        paths: &[get("/skills")],
        access: needs(May::Read),
        dialect: Dialect::Ductile,
        answers: &[answer(200, schema::<api::ductile::SkillList>)],
        handler: |server, request| Box::pin(ready(Ok(ductile::list_skills(server, &request)))),
        ..Operation::PLAIN
    },
    Operation {
        name: "read_plugin_state",
        summary: "What a plugin remembers: its state, and the facts that are kept of it",
        paths: &[get("/plugin/{id}/state")],
        access: needs(May::ManageNodes),
        reads_query: true,
        parameters: || vec![number("after", "facts after this number; left out, the newest")],
        answers: &[answer(200, schema::<api::ductile::PluginMemory>)],
        handler: by!(ductile::read_memory),
        ..Operation::PLAIN
    },
    Operation {
        name: "reset_plugin",
        summary: "Let a plugin that is left alone be started again, on this node",
        paths: &[post("/plugin/{id}/breaker/reset")],
        access: needs(May::ManageNodes),
        body: Body::Optional(SMALL),
        answers: &[answer(200, schema::<api::ductile::PluginReset>)],
        handler: |server, request| Box::pin(ready(ductile::reset_breaker(server, &request))),
        ..Operation::PLAIN
    },
    Operation {
        name: "take_webhook",
        summary: "A signed webhook comes in and becomes an event; the same one again starts nothing",
        paths: &[post("/hooks/{id}")],
        access: Access::Open,
        body: Body::Raw(MAX_HOOK_BYTES),
        dialect: Dialect::Ductile,
        takes: Some(|_| json!({})),
        answers: &[answer(202, schema::<api::ductile::WebhookTaken>)],
        also_refused: &[403],
        handler: by!(webhooks::take),
        ..Operation::PLAIN
    },
];
