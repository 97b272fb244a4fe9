//! `/openapi.json`: the API document, made from the list of operations and the wire types. It cannot drift from either.

mod examples;
mod parameters;
mod request_limits;
mod responses;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use api::Problem;
use axum::response::Response;
use serde_json::{Map, Value, json};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::answer::{self, Given};
use crate::authorise::Access;
use crate::operation::Operation;
use crate::routes::{Body, ROUTES, Route, Verb};
use crate::sensorium;

static DOCUMENT: LazyLock<String> = LazyLock::new(|| document().to_string());

pub(crate) fn read() -> Response {
    answer::bytes(DOCUMENT.as_str(), Given::Now)
}

/// The document.
pub fn document() -> Value {
    let mut schemas = Schemas::default();
    let mut paths = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[method(route.verb)] = operation(route, route.path, &mut schemas);
        if route.operation == Operation::InvokeCapability {
            // The host's own capabilities take and answer something else than executors: each is a path of its own.
            for name in sensorium::Name::ALL {
                let path = route.path.replace("{id}", name.as_str());
                paths.insert(
                    path.clone(),
                    json!({ method(route.verb): operation(route, &path, &mut schemas) }),
                );
            }
        }
    }
    schemas.add::<Problem>();
    // The form of `runner` once there was an attempt; before that it is empty.
    schemas.add::<api::Runner<'static>>();
    let Schemas { mut components, requests } = schemas;
    request_limits::apply(&mut components, &requests);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "longhaul",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Keeps work that outlives the request that asked for it. A number that is written with a decimal point, such as \
                            3.0, is not taken for an integer.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn operation(route: &Route, path: &str, schemas: &mut Schemas) -> Value {
    let operation = route.operation;
    let own = own_capability(path);
    let mut described = json!({
        "operationId": operation_id(route, path),
        "summary": own.map_or_else(|| operation.summary(), sensorium::Name::summary),
        "parameters": parameters::of(route, path),
        "responses": responses::of(route, own, schemas),
        "security": match route.access {
            Access::Open => json!([]),
            Access::Needs(_) => json!([{ "bearer": [] }]),
        },
    });
    let schema = match own {
        Some(name) => Some(own_request(name, schemas)),
        None => request_schema(operation, schemas),
    };
    if let Some(schema) = schema {
        let mut content = json!({ "schema": schema });
        if let Some(example) = own.map_or_else(|| examples::request(operation), |_| None) {
            content["example"] = example;
        }
        let required = matches!(route.body, Body::Json(_)) && own != Some(sensorium::Name::DirectiveList);
        described["requestBody"] =
            json!({ "required": required, "content": { "application/json": content } });
    }
    described
}

/// The capability of the host's own that a path names.
fn own_capability(path: &str) -> Option<sensorium::Name> {
    sensorium::Name::ALL.into_iter().find(|name| path.contains(name.as_str()))
}

/// What one of the host's own capabilities takes.
fn own_request(name: sensorium::Name, schemas: &mut Schemas) -> Value {
    match name {
        sensorium::Name::DirectiveInvoke => schemas.request::<api::sensorium::Directive>(),
        sensorium::Name::DirectiveList => {
            json!({ "$ref": format!("#/components/schemas/{}", request_limits::JSON_VALUE) })
        }
        sensorium::Name::OperationStatus => json!({
            "type": "object",
            "required": ["operation/id"],
            "properties": { "operation/id": { "type": "string", "pattern": request_limits::TEXT } },
            "additionalProperties": false,
        }),
        sensorium::Name::OperationCancel => schemas.request::<api::sensorium::OperationNamed>(),
    }
}

/// One name per route: the aliases of an operation differ by their path.
fn operation_id(route: &Route, path: &str) -> String {
    let place = path.replace(['/', '.'], "_").replace(['{', '}'], "");
    format!("{}{place}", route.operation.name())
}

fn request_schema(operation: Operation, schemas: &mut Schemas) -> Option<Value> {
    match operation {
        Operation::CreateJob => Some(schemas.request::<api::CreateJob>()),
        Operation::CreateBatch => Some(schemas.request::<api::CreateBatch>()),
        Operation::UpdateJob => Some(schemas.request::<api::UpdateJob>()),
        Operation::RunJob | Operation::RetryJob => Some(schemas.request::<api::RunJob>()),
        Operation::CancelJob => Some(schemas.request::<api::CancelJob>()),
        Operation::AnswerJob => Some(schemas.request::<api::AnswerJob>()),
        Operation::PullJob => Some(schemas.request::<api::PullJob>()),
        Operation::HeartbeatJob => Some(schemas.request::<api::HeartbeatJob>()),
        Operation::CompleteJob => Some(schemas.request::<api::CompleteJob>()),
        Operation::FailJob => Some(schemas.request::<api::FailJob>()),
        Operation::AskInput => Some(schemas.request::<api::AskInput>()),
        Operation::DeferJob => Some(schemas.request::<api::DeferJob>()),
        Operation::AcquireClaim => Some(schemas.request::<api::AcquireClaim>()),
        Operation::RenewClaim | Operation::ReleaseClaim => Some(schemas.request::<api::SwapClaim>()),
        Operation::RegisterPeer => Some(schemas.request::<api::RegisterPeer>()),
        Operation::CreateAsk => Some(schemas.request::<api::CreateAsk>()),
        Operation::AckAsk => Some(schemas.request::<api::AckAsk>()),
        Operation::WaitAsk => Some(schemas.request::<api::WaitAsk>()),
        Operation::CancelOrphan => Some(schemas.request::<api::RetryCancel>()),
        Operation::SettleOrphan => Some(schemas.request::<api::SettleOrphan>()),
        Operation::InvokeCapability => Some(schemas.request::<api::deferred::Invoke>()),
        // Signed byte for byte by whoever sends it, and of any media type.
        Operation::TakeCallback | Operation::TakeWebhook => Some(json!({})),
        Operation::CancelDeferred => Some(schemas.request::<api::CancelJob>()),
        Operation::TriggerPlugin | Operation::TriggerPipeline => {
            Some(schemas.request::<api::ductile::DuctileTrigger>())
        }
        Operation::CreateToken => Some(schemas.request::<api::CreateToken>()),
        Operation::PublishEvent => Some(schemas.request::<api::PublishEvent>()),
        Operation::StartPipeline => Some(schemas.request::<api::StartPipeline>()),
        Operation::CancelRun => Some(schemas.request::<api::CancelRun>()),
        Operation::ListJobs
        | Operation::ReadStatus
        | Operation::ReadResult
        | Operation::ReadArtifact
        | Operation::ListPeers
        | Operation::ReadPeer
        | Operation::ForgetPeer
        | Operation::ListAsks
        | Operation::ListPendingAsks
        | Operation::ReadAsk
        | Operation::PurgeJob
        | Operation::ReadFacts
        | Operation::ReadWhy
        | Operation::StreamFacts
        | Operation::ListOrphans
        | Operation::ListCapabilities
        | Operation::ReadOutcome
        | Operation::ListDeferred
        | Operation::ReadDeferred
        | Operation::ReadDeferredStatus
        | Operation::PollDeferred
        | Operation::ReadPluginJob
        | Operation::ReadPluginTree
        | Operation::ListPlugins
        | Operation::ReadPlugin
        | Operation::ListTokens
        | Operation::RevokeToken
        | Operation::ReadClock
        | Operation::SetClockRight
        | Operation::ListNodes
        | Operation::DrainNode
        | Operation::UndrainNode
        | Operation::ListEvents
        | Operation::ReadEvent
        | Operation::ListPipelines
        | Operation::ReadPipeline
        | Operation::ReloadPipelines
        | Operation::ReadPluginState
        | Operation::ResetPlugin
        | Operation::ReadPluginDocument
        | Operation::ListSkills
        | Operation::ListRuns
        | Operation::ReadRun
        | Operation::RetryRun
        | Operation::ReadMetrics
        | Operation::ReadHealth
        | Operation::ReadReadiness
        | Operation::ReadDocument => None,
    }
}

enum Answer {
    Json(Value),
    Other(&'static str, Value),
}

fn any_text() -> Value {
    json!({ "type": "string" })
}

/// One event of the stream, as `schema` of a stream of events is read before `OpenAPI` 3.2.
fn event_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "id": { "type": "string", "description": "its position, for Last-Event-ID" },
            "event": { "type": "string", "enum": ["fact", "outside"] },
            "data": { "type": "string", "description": "JSON: a Fact, or the newest of the work outside" },
        },
    })
}

fn answer_schema(operation: Operation, schemas: &mut Schemas) -> Answer {
    Answer::Json(match operation {
        Operation::CreateJob => schemas.add::<api::JobCreated<'static>>(),
        Operation::CreateBatch => schemas.add::<api::BatchAnswer<'static>>(),
        Operation::ListJobs => schemas.add::<api::JobList<'static>>(),
        Operation::ReadStatus
        | Operation::UpdateJob
        | Operation::RunJob
        | Operation::RetryJob
        | Operation::CancelJob
        | Operation::AnswerJob
        | Operation::CompleteJob
        | Operation::FailJob
        | Operation::AskInput
        | Operation::DeferJob
        | Operation::PurgeJob => schemas.add::<api::StatusAnswer<'static>>(),
        Operation::PullJob => schemas.add::<api::PulledJob<'static>>(),
        Operation::HeartbeatJob => schemas.add::<api::HeartbeatAnswer<'static>>(),
        Operation::AcquireClaim | Operation::RenewClaim | Operation::ReleaseClaim => {
            schemas.add::<api::ClaimAnswer>()
        }
        Operation::RegisterPeer | Operation::ReadPeer => schemas.add::<api::PeerAnswer>(),
        Operation::ListPeers => schemas.add::<api::PeerList>(),
        Operation::ForgetPeer => schemas.add::<api::PeerForgotten>(),
        Operation::CreateAsk => schemas.add::<api::AskOpened>(),
        Operation::ListAsks | Operation::ListPendingAsks => schemas.add::<api::AskList>(),
        Operation::ReadAsk | Operation::AckAsk => schemas.add::<api::AskAnswer>(),
        Operation::WaitAsk => schemas.add::<api::AskWaited>(),
        Operation::ReadResult => schemas.add::<api::ResultAnswer<'static>>(),
        Operation::ReadFacts => schemas.add::<api::FactList<'static>>(),
        Operation::ReadWhy => schemas.add::<api::Why>(),
        Operation::ListOrphans => schemas.add::<api::OrphanList>(),
        Operation::CancelOrphan => schemas.add::<api::OrphanAnswer>(),
        Operation::SettleOrphan => schemas.add::<api::OrphanAnswer>(),
        Operation::ListCapabilities => schemas.add::<api::CapabilityList>(),
        Operation::InvokeCapability => json!({ "anyOf": [
            schemas.add::<api::deferred::InvokeOutcome>(),
            schemas.add::<api::deferred::DeferredStatus>(),
        ] }),
        Operation::ReadOutcome => schemas.add::<api::sensorium::DirectiveOutcome>(),
        Operation::ListDeferred => schemas.add::<api::deferred::DeferredList>(),
        Operation::ReadDeferred => schemas.add::<api::deferred::DeferredDetail>(),
        Operation::ReadDeferredStatus => schemas.add::<api::deferred::DeferredStatus>(),
        Operation::PollDeferred => schemas.add::<api::deferred::DeferredStatus>(),
        Operation::CancelDeferred => schemas.add::<api::deferred::DeferredStatus>(),
        Operation::TriggerPlugin => schemas.add::<api::ductile::DuctileTriggered>(),
        Operation::TriggerPipeline => schemas.add::<api::ductile::DuctileOutcome>(),
        Operation::ReadPluginJob => schemas.add::<api::ductile::DuctileJob>(),
        Operation::ReadPluginTree => {
            json!({ "type": "array", "items": schemas.add::<api::ductile::DuctileJob>() })
        }
        Operation::ListPlugins => schemas.add::<api::ductile::PluginList>(),
        Operation::ReadPlugin => schemas.add::<api::ductile::PluginDetail>(),
        Operation::ReadPluginState => schemas.add::<api::ductile::PluginMemory>(),
        Operation::ResetPlugin => schemas.add::<api::ductile::PluginReset>(),
        Operation::ReadPluginDocument => json!({ "type": "object" }),
        Operation::ListSkills => schemas.add::<api::ductile::SkillList>(),
        Operation::TakeWebhook => schemas.add::<api::ductile::WebhookTaken>(),
        Operation::CreateToken => schemas.add::<api::TokenCreated>(),
        Operation::ListTokens => schemas.add::<api::TokenList>(),
        Operation::RevokeToken => schemas.add::<api::TokenRevoked>(),
        Operation::ReadClock => schemas.add::<api::Clock>(),
        Operation::SetClockRight => schemas.add::<api::ClockSet>(),
        Operation::ListNodes => schemas.add::<api::NodeList>(),
        Operation::DrainNode | Operation::UndrainNode => schemas.add::<api::NodeAnswer>(),
        Operation::PublishEvent => schemas.add::<api::EventPublished>(),
        Operation::ListEvents => schemas.add::<api::EventList>(),
        Operation::ReadEvent => schemas.add::<api::EventAnswer>(),
        Operation::ListPipelines => schemas.add::<api::PipelineList>(),
        Operation::ReadPipeline => schemas.add::<api::PipelineAnswer>(),
        Operation::StartPipeline => schemas.add::<api::PipelineStarted>(),
        Operation::ReloadPipelines => schemas.add::<api::PipelinesReloaded>(),
        Operation::ListRuns => schemas.add::<api::RunList>(),
        Operation::ReadRun => schemas.add::<api::RunAnswer>(),
        Operation::CancelRun => schemas.add::<api::RunAnswer>(),
        Operation::RetryRun => schemas.add::<api::RunRetried>(),
        Operation::StreamFacts => return Answer::Other("text/event-stream", event_schema()),
        Operation::ReadArtifact => return Answer::Other("application/octet-stream", any_text()),
        Operation::ReadMetrics => return Answer::Other("text/plain", any_text()),
        Operation::TakeCallback
        | Operation::ReadHealth
        | Operation::ReadReadiness
        | Operation::ReadDocument => {
            json!({ "type": "object" })
        }
    })
}

fn method(verb: Verb) -> &'static str {
    match verb {
        Verb::Get => "get",
        Verb::Post => "post",
        Verb::Patch => "patch",
        Verb::Delete => "delete",
    }
}

#[derive(Default)]
struct Schemas {
    components: Map<String, Value>,
    /// Those that requests consist of.
    requests: BTreeSet<String>,
}

impl Schemas {
    /// Adds a wire type and all that it consists of; gives the reference to it.
    fn add<T: ToSchema + PartialSchema>(&mut self) -> Value {
        for (name, schema) in parts::<T>() {
            let schema = serde_json::to_value(schema).expect("a schema has only string keys");
            self.components.insert(name, schema);
        }
        json!({ "$ref": format!("#/components/schemas/{}", T::name()) })
    }

    /// The same, for what is sent: what the daemon checks of it is said too.
    fn request<T: ToSchema + PartialSchema>(&mut self) -> Value {
        self.requests.extend(parts::<T>().into_iter().map(|(name, _)| name));
        self.add::<T>()
    }
}

/// A wire type and all that it consists of.
fn parts<T: ToSchema + PartialSchema>() -> Vec<(String, RefOr<Schema>)> {
    let mut parts = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut parts);
    parts
}
