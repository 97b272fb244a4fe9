//! Plugins, and the routes of Ductile's clients.

use std::future::ready;

use serde_json::json;

use super::{
    Body, Dialect, Get, LARGE, Operation, Post, Waits, answer, any_object, by, either, needs, schema,
};
use crate::access::authorise::{Access, Permission as May};
use crate::openapi::parameters::{number, plain_text};
use crate::plugins::ductile;
use crate::plugins::webhooks::{self, Endpoint};

/// The rows.
pub(super) static OPERATIONS: &[Operation] = &[
    Operation {
        name: "trigger_plugin",
        summary: "Ask a plugin for one of its commands, as Ductile's clients do",
        paths: &[(Post, "/plugin/{id}/{name}"), (Post, "/plugin/{id}/state")],
        dialect: Dialect::Ductile,
        keyed: true,
        answers: &[answer(202, schema::<api::ductile::DuctileTriggered>)],
        handler: by!(ductile::trigger_plugin),
        ..Operation::taking::<api::ductile::DuctileTrigger, api::ductile::DuctileTriggered>(
            May::Create,
            Body::Json(LARGE),
        )
    },
    Operation {
        name: "trigger_pipeline",
        summary: "Start a pipeline by its name; whoever starts a synchronous one waits for its end",
        paths: &[(Post, "/pipeline/{id}")],
        dialect: Dialect::Ductile,
        waits: Waits::Always,
        keyed: true,
        parameters: || vec![plain_text("async", "true: whoever starts a synchronous pipeline does not wait")],
        answers: &[
            answer(200, schema::<api::ductile::DuctileOutcome>),
            answer(202, either::<api::ductile::DuctileTriggered, api::ductile::DuctileLate>),
        ],
        handler: by!(ductile::trigger_pipeline),
        ..Operation::taking::<api::ductile::DuctileTrigger, api::ductile::DuctileTriggered>(
            May::Create,
            Body::Json(LARGE),
        )
    },
    Operation {
        name: "read_plugin_job",
        summary: "Where a job or a run is, in Ductile's words",
        paths: &[(Get, "/job/{id}")],
        dialect: Dialect::Ductile,
        handler: by!(ductile::read_job),
        ..Operation::reading::<api::ductile::DuctileJob>()
    },
    Operation {
        name: "read_plugin_tree",
        summary: "All jobs of the run that a job belongs to",
        paths: &[(Get, "/job/{id}/tree")],
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
        paths: &[(Get, "/plugins")],
        dialect: Dialect::Ductile,
        handler: |server, request| Box::pin(ready(Ok(ductile::list_plugins(server, &request)))),
        ..Operation::reading::<api::ductile::PluginList>()
    },
    Operation {
        name: "read_plugin",
        summary: "One plugin, what it can be asked, and the schemas of that",
        paths: &[(Get, "/plugin/{id}")],
        dialect: Dialect::Ductile,
        handler: |server, request| Box::pin(ready(ductile::read_plugin(server, &request))),
        ..Operation::reading::<api::ductile::PluginDetail>()
    },
    Operation {
        name: "read_plugin_document",
        summary: "What a plugin can be asked, as OpenAPI",
        paths: &[(Get, "/plugin/{id}/openapi.json")],
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
        paths: &[(Get, "/skills")],
        dialect: Dialect::Ductile,
        handler: |server, request| Box::pin(ready(Ok(ductile::list_skills(server, &request)))),
        ..Operation::reading::<api::ductile::SkillList>()
    },
    Operation {
        name: "read_plugin_state",
        summary: "What a plugin remembers: its state, and the facts that are kept of it",
        paths: &[(Get, "/plugin/{id}/state")],
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
        paths: &[(Post, "/plugin/{id}/breaker/reset")],
        handler: |server, request| Box::pin(ready(ductile::reset_breaker(server, &request))),
        ..Operation::order::<api::ductile::PluginReset>(May::ManageNodes)
    },
    Operation {
        name: "take_webhook",
        summary: "A signed webhook comes in and becomes an event; the same one again starts nothing",
        paths: &[(Post, "/hooks/{id}")],
        access: Access::Open,
        body: Body::Raw(Endpoint::MAX_BODY_BYTES),
        dialect: Dialect::Ductile,
        takes: Some(|_| json!({})),
        answers: &[answer(202, schema::<api::ductile::WebhookTaken>)],
        also_refused: &[403],
        handler: by!(webhooks::take),
        ..Operation::PLAIN
    },
];
