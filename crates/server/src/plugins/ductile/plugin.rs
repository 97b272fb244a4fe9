//! `POST /plugin/{plugin}/{command}` asks a plugin, and `/breaker/reset` lets it be started again; `GET /plugins` and `GET /plugin/{plugin}`
//! say which there are and what they take.

use std::sync::Arc;

use api::ProblemCode;
use api::ductile::{
    DuctileTrigger, DuctileTriggered, PluginBreaker, PluginCommand, PluginDetail, PluginList, PluginReset,
    PluginSummary,
};
use domain::breaker::BreakerState;
use domain::job::JobSpec;
use domain::{BodyName, RetryPolicy, Timestamp};
use engine::accept::NewJobRequest;
use engine::hint;
use executors::plugin::{Plugin, PluginEvent, PluginInput};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::access::authorise;
use crate::clock_text::text;
use crate::keyed::{self, Keyed};
use crate::problem::{at_field, echoed};
use crate::reply::{Given, Reply, render};
use crate::{RequestContext, Result, Server};

/// The command that is given an event.
const HANDLE: &str = "handle";
/// The type of the event that a caller makes by asking for `handle`.
const TRIGGERED: &str = "api.trigger";

pub(crate) async fn trigger_plugin(server: &Server, asked: RequestContext) -> Result<Reply> {
    let circle = authorise::circle_of_new(&asked.principal, None)?;
    let plugin = plugin_named(server, circle.as_deref(), &asked.id)
        .map_err(|told| at_field("plugin", "value_error", told))?;
    if plugin.manifest.command(&asked.name).is_none() {
        let known = plugin.manifest.command_names();
        let told = format!("the plugin {:?} has no command {:?}; it has {known}", plugin.name, asked.name);
        return Err(at_field("command", "value_error", told));
    }
    let input = input(&asked)?;
    let keyed = Keyed::of(&asked, &format!("{}/{}", asked.id, asked.name));
    let spec = JobSpec {
        title: format!("{} {}", asked.id, asked.name),
        created_by_peer_id: asked.principal.peer_id.clone(),
        circle,
        ..JobSpec::plain(Some(&asked.id), RetryPolicy::ONCE)
    };
    let job = NewJobRequest::plain(spec, vec![(BodyName::Input, input)]).accept(server.daemon.executors());
    let id = server.daemon.engine().ids().job_id();
    let triggered = DuctileTriggered {
        job_id: id.as_str().to_owned(),
        status: "queued".to_owned(),
        plugin: asked.id.clone(),
        command: asked.name.clone(),
        run_id: None,
    };
    let order = job.order(id, asked.principal.actor.clone());
    let reply = keyed::give(server, keyed.as_ref(), order, "", move |_| render(&triggered)).await?;
    if reply.given == Given::Now {
        server.metrics.accepted();
    }
    Ok(reply.accepted())
}

pub(crate) fn list_plugins(server: &Server, asked: &RequestContext) -> Reply {
    let circle = asked.principal.circle.as_deref();
    let plugins = usable(server, circle).map(|plugin| PluginSummary {
        name: plugin.name.clone(),
        version: plugin.manifest.version.clone(),
        description: plugin.manifest.description.clone(),
        commands: plugin.manifest.commands.iter().map(|command| command.name.clone()).collect(),
        breaker: shown_breaker(plugin, server.now()),
    });
    Reply::json(&PluginList { plugins: plugins.collect() })
}

pub(crate) fn read_plugin(server: &Server, asked: &RequestContext) -> Result<Reply> {
    let plugin = plugin_in_path(server, asked)?;
    let commands = plugin.manifest.commands.iter().map(|command| PluginCommand {
        name: command.name.clone(),
        effect: command.effect.as_str().to_owned(),
        description: command.description.clone(),
        input_schema: command.input_schema.as_ref().map(expanded),
        output_schema: command.output_schema.as_ref().map(expanded),
    });
    Ok(Reply::json(&PluginDetail {
        name: plugin.name.clone(),
        version: plugin.manifest.version.clone(),
        description: plugin.manifest.description.clone(),
        commands: commands.collect(),
        breaker: shown_breaker(plugin, server.now()),
    }))
}

/// A plugin that is left alone because its jobs failed may be started again, on this node. The jobs that wait for it are looked at, at once.
pub(crate) fn reset_breaker(server: &Server, asked: &RequestContext) -> Result<Reply> {
    let plugin = plugin_in_path(server, asked)?;
    let (now, name, actor) = (server.now(), &plugin.name, &*asked.principal.actor);
    let before = plugin.breaker(now).as_str();
    plugin.reset_breaker();
    server.daemon.attempts().look_at_lane(&plugin.lane());
    tracing::info!(target: "audit", actor, plugin = name, before, "breaker reset");
    Ok(Reply::json(&PluginReset { plugin: name.clone(), breaker: shown_breaker(plugin, now) }))
}

/// The breaker of a plugin as it is shown.
fn shown_breaker(plugin: &Plugin, now: Timestamp) -> PluginBreaker {
    let state = plugin.breaker(now);
    let threshold = Some(plugin.settings.breaker.threshold).filter(|threshold| *threshold > 0);
    let (failures, open_until) = match state {
        BreakerState::Closed { failures } => (Some(failures), None),
        BreakerState::Open { until } => (None, Some(text(until))),
        BreakerState::Off | BreakerState::HalfOpen => (None, None),
    };
    PluginBreaker { state: state.as_str().to_owned(), failures, threshold, open_until }
}

/// The plugins that jobs may name: one whose secrets cannot be read is no executor.
pub(super) fn usable<'s>(
    server: &'s Server,
    circle: Option<&'s str>,
) -> impl Iterator<Item = &'s Arc<Plugin>> {
    let executors = server.daemon.executors();
    let is_usable = move |name: &str| executors.find_usable(circle, name).is_some();
    server.plugins.list().filter(move |plugin| plugin.is_enabled() && is_usable(&plugin.name))
}

/// The plugin that the path names, for who asks.
pub(super) fn plugin_in_path<'s>(server: &'s Server, asked: &'s RequestContext) -> Result<&'s Arc<Plugin>> {
    let plugin = plugin_named(server, asked.principal.circle.as_deref(), &asked.id);
    plugin.map_err(|told| ProblemCode::NotFound.because(told))
}

fn plugin_named<'s>(
    server: &'s Server,
    circle: Option<&'s str>,
    name: &str,
) -> Result<&'s Arc<Plugin>, String> {
    usable(server, circle).find(|plugin| plugin.name == name).ok_or_else(|| {
        let known: Vec<&str> = usable(server, circle).map(|plugin| &*plugin.name).collect();
        let echoed = echoed(name);
        let found = server.daemon.executors().find(circle, name);
        if let Some(why) = found.and_then(|found| found.specialist.left_out_because()) {
            return format!("the plugin {echoed:?} is left out: {why}");
        }
        let near = hint(name, &known);
        match known.len() {
            0 => format!("no plugin is named {echoed:?}, and there are none"),
            _ => format!("no plugin is named {echoed:?}{near}; there are {}", known.join(", ")),
        }
    })
}

/// The payload that was sent, word for word: `{"payload": {...}}`, and nothing that would be dropped in silence.
pub(super) fn payload_of(asked: &RequestContext) -> Result<Box<RawValue>> {
    let body = asked.body.as_deref().unwrap_or_default();
    let sent: DuctileTrigger = serde_json::from_str(body).map_err(|error| {
        let told = error.to_string();
        let told = told.rsplit_once(" at line ").map_or(told.as_str(), |(told, _)| told);
        let told = format!(
            "the body must be {{\"payload\": {{...}}}}: {told}; put what the plugin shall be given into \"payload\""
        );
        at_field("payload", "value_error", told)
    })?;
    let text = sent.payload.as_str().to_owned();
    RawValue::from_string(text).map_err(|error| at_field("payload", "value_error", error.to_string()))
}

/// The input of the job: for `handle` an event, else the payload.
fn input(asked: &RequestContext) -> Result<String> {
    let payload = payload_of(asked)?;
    let unread = |error: serde_json::Error| at_field("payload", "value_error", error.to_string());
    let payload = serde_json::from_str(payload.get()).map_err(unread)?;
    let mut input = PluginInput { command: Some(asked.name.clone()), ..PluginInput::default() };
    if asked.name == HANDLE {
        input.event = Some(PluginEvent { kind: TRIGGERED.to_owned(), payload, ..PluginEvent::default() });
    } else {
        input.payload = Some(payload);
    }
    serde_json::to_string(&input).map_err(unread)
}

/// A schema as JSON Schema: one without a `type` names its fields and their types.
pub(super) fn expanded(schema: &Value) -> Value {
    let Value::Object(fields) = schema else { return schema.clone() };
    if fields.contains_key("type") {
        return schema.clone();
    }
    let property = |value: &Value| match value {
        Value::String(_) => json!({ "type": value }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.clone(),
    };
    let properties: Map<String, Value> =
        fields.iter().map(|(name, value)| (name.clone(), property(value))).collect();
    json!({ "type": "object", "properties": properties })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_schema_is_expanded_and_a_whole_one_stays() {
        let whole = json!({ "type": "object", "required": ["a"] });
        assert_eq!(expanded(&whole), whole);
        let compact = json!({ "station": "string", "limits": { "type": "object" } });
        let properties = json!({ "station": { "type": "string" }, "limits": { "type": "object" } });
        assert_eq!(expanded(&compact), json!({ "type": "object", "properties": properties }));
    }
}
