//! `GET /skills`: all that can be started, and where. `GET /plugin/{plugin}/openapi.json`: the same of one plugin, as an `OpenAPI` document.
//!
//! A pipeline may do anything: it is always told as one that writes.

use api::ductile::{Skill, SkillList};
use executors::plugin::{Effect, Plugin, PluginCommand};
use serde_json::{Map, Value, json};

use super::plugin::{expanded, plugin_in_path, usable};
use crate::{Reply, RequestContext, Result, Server};

pub(crate) fn list_skills(server: &Server, asked: &RequestContext) -> Reply {
    let plugins = usable(server, asked.principal.circle.as_deref());
    let commands = plugins.flat_map(|plugin| {
        plugin.manifest.commands.iter().map(move |command| Skill {
            name: format!("plugin.{}.{}", plugin.name, command.name),
            kind: "plugin".to_owned(),
            endpoint: endpoint(plugin, command),
            tier: tier(command.effect).to_owned(),
            description: command.description.clone().or_else(|| plugin.manifest.description.clone()),
            input_schema: command.input_schema.as_ref().map(expanded),
        })
    });
    let routes = server.pipelines.routes();
    let pipelines = routes.names().map(|name| Skill {
        name: format!("pipeline.{name}"),
        kind: "pipeline".to_owned(),
        endpoint: format!("/pipeline/{name}"),
        tier: tier(Effect::Write).to_owned(),
        description: None,
        input_schema: None,
    });
    Reply::json(&SkillList { skills: commands.chain(pipelines).collect() })
}

pub(crate) fn read_plugin_document(server: &Server, asked: &RequestContext) -> Result<Reply> {
    let plugin = plugin_in_path(server, asked)?;
    let paths: Map<String, Value> = plugin
        .manifest
        .commands
        .iter()
        .map(|command| (endpoint(plugin, command), json!({ "post": operation(plugin, command) })))
        .collect();
    Ok(Reply::json(&json!({
        "openapi": "3.1.0",
        "info": {
            "title": plugin.name,
            "version": plugin.manifest.version.as_deref().unwrap_or("0"),
            "description": plugin.manifest.description.as_deref().unwrap_or_default(),
        },
        "paths": paths,
        "components": { "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } } },
        "security": [{ "token": [] }],
    })))
}

fn operation(plugin: &Plugin, command: &PluginCommand) -> Value {
    let payload = command.input_schema.as_ref().map_or_else(|| json!({ "type": "object" }), expanded);
    let body = json!({
        "type": "object",
        "required": ["payload"],
        "properties": { "payload": payload },
        "additionalProperties": false,
    });
    json!({
        "operationId": format!("{}_{}", plugin.name, command.name),
        "summary": command.description.as_deref().unwrap_or_default(),
        "x-tier": tier(command.effect),
        "requestBody": { "required": true, "content": { "application/json": { "schema": body } } },
        "responses": { "202": { "description": "its job is queued: ask GET /job/{job_id}" } },
    })
}

fn endpoint(plugin: &Plugin, command: &PluginCommand) -> String {
    format!("/plugin/{}/{}", plugin.name, command.name)
}

const fn tier(effect: Effect) -> &'static str {
    match effect {
        Effect::Read => "READ",
        Effect::Write => "WRITE",
    }
}
