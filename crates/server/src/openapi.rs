//! `/openapi.json`: the API document, made from the list of operations and the wire types. It cannot drift from either.

mod examples;
mod parameters;

use std::sync::LazyLock;

use api::{Problem, ProblemCode};
use axum::response::Response;
use serde_json::{Map, Value, json};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::answer::{self, Given};
use crate::authorise::Access;
use crate::operation::Operation;
use crate::routes::{Body, ROUTES, Route, Verb};

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
        path[method(route.verb)] = operation(route, &mut schemas);
    }
    schemas.add::<Problem>();
    // The form of `runner` once there was an attempt; before that it is empty.
    schemas.add::<api::Runner<'static>>();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "longhaul",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Keeps work that outlives the request that asked for it.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "paths": paths,
        "components": {
            "schemas": schemas.0,
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn operation(route: &Route, schemas: &mut Schemas) -> Value {
    let operation = route.operation;
    let mut described = json!({
        "operationId": operation_id(route),
        "summary": operation.summary(),
        "parameters": parameters::of(route),
        "responses": responses(route, schemas),
        "security": match route.access {
            Access::Open => json!([]),
            Access::Needs(_) => json!([{ "bearer": [] }]),
        },
    });
    if let Some(schema) = request_schema(operation, schemas) {
        let mut content = json!({ "schema": schema });
        if let Some(example) = examples::request(operation) {
            content["example"] = example;
        }
        described["requestBody"] = json!({ "required": matches!(route.body, Body::Json(_)), "content": { "application/json": content } });
    }
    described
}

/// One name per route: the aliases of an operation differ by their path.
fn operation_id(route: &Route) -> String {
    let place = route.path.replace(['/', '.'], "_").replace(['{', '}'], "");
    format!("{}{place}", route.operation.name())
}

fn responses(route: &Route, schemas: &mut Schemas) -> Value {
    let content = match answer_schema(route.operation, schemas) {
        Answer::Json(schema) => {
            let mut content = json!({ "schema": schema });
            if let Some(example) = examples::answer(route.operation) {
                content["example"] = example;
            }
            json!({ "application/json": content })
        }
        Answer::Other(media_type) => json!({ media_type: { "schema": { "type": "string" } } }),
    };
    let problem =
        json!({ "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } });
    // An event is only written down when this answers: what it starts comes after.
    let done = if route.operation == Operation::PublishEvent { "202" } else { "200" };
    let mut responses = json!({ done: { "description": "Done", "content": content } });
    let accepted = if route.operation == Operation::InvokeCapability {
        Some(schemas.add::<api::deferred::DeferredOperation>())
    } else if route.operation == Operation::CancelDeferred {
        Some(schemas.add::<api::deferred::DeferredStatus>())
    } else if route.operation == Operation::StartPipeline {
        Some(schemas.add::<api::PipelineStarted>())
    } else if route.operation == Operation::TriggerPipeline {
        Some(json!({ "anyOf": [
            schemas.add::<api::ductile::DuctileTriggered>(),
            schemas.add::<api::ductile::DuctileLate>(),
        ] }))
    } else {
        None
    };
    if let Some(schema) = accepted {
        let content = json!({ "application/json": { "schema": schema } });
        responses["202"] = json!({ "description": "Accepted, and goes on", "content": content });
    }
    let mut statuses: Vec<u16> = ProblemCode::ALL.iter().map(|code| code.status()).collect();
    statuses.sort_unstable();
    statuses.dedup();
    for status in statuses {
        let has_body = route.body != Body::None;
        let applies = match status {
            401 | 403 if route.operation == Operation::TakeCallback => status == 401,
            401 | 403 => route.access != Access::Open,
            404 => {
                let named =
                    [Operation::StreamFacts, Operation::CreateJob, Operation::CreateAsk, Operation::ListAsks];
                route.path.contains("{id}") || named.contains(&route.operation)
            }
            410 => route.operation == Operation::AckAsk,
            400 | 409 | 415 | 422 if route.operation == Operation::TakeCallback => false,
            408 | 409 | 413 | 415 => has_body,
            400 => has_body,
            422 => {
                let reads = [
                    Operation::ListJobs,
                    Operation::ReadFacts,
                    Operation::ListOrphans,
                    Operation::ListDeferred,
                    Operation::ListPeers,
                    Operation::ListEvents,
                    Operation::ListRuns,
                    Operation::ListAsks,
                    Operation::ListPendingAsks,
                    Operation::ReadArtifact,
                    Operation::StreamFacts,
                    Operation::ReadPluginState,
                ];
                has_body || reads.contains(&route.operation)
            }
            405 => false,
            429 => matches!(route.operation, Operation::InvokeCapability | Operation::PollDeferred),
            _ => {
                let open = [Operation::ReadReadiness, Operation::TakeCallback];
                route.access != Access::Open || open.contains(&route.operation)
            }
        };
        if applies {
            let titles: Vec<&str> = ProblemCode::ALL
                .iter()
                .filter(|code| code.status() == status)
                .map(|code| code.as_str())
                .collect();
            responses[status.to_string()] =
                json!({ "description": format!("code: {}", titles.join(", ")), "content": problem });
        }
    }
    responses
}

fn request_schema(operation: Operation, schemas: &mut Schemas) -> Option<Value> {
    match operation {
        Operation::CreateJob => Some(schemas.add::<api::CreateJob>()),
        Operation::CreateBatch => Some(schemas.add::<api::CreateBatch>()),
        Operation::UpdateJob => Some(schemas.add::<api::UpdateJob>()),
        Operation::RunJob | Operation::RetryJob => Some(schemas.add::<api::RunJob>()),
        Operation::CancelJob => Some(schemas.add::<api::CancelJob>()),
        Operation::AnswerJob => Some(schemas.add::<api::AnswerJob>()),
        Operation::PullJob => Some(schemas.add::<api::PullJob>()),
        Operation::HeartbeatJob => Some(schemas.add::<api::HeartbeatJob>()),
        Operation::CompleteJob => Some(schemas.add::<api::CompleteJob>()),
        Operation::FailJob => Some(schemas.add::<api::FailJob>()),
        Operation::AskInput => Some(schemas.add::<api::AskInput>()),
        Operation::DeferJob => Some(schemas.add::<api::DeferJob>()),
        Operation::AcquireClaim => Some(schemas.add::<api::AcquireClaim>()),
        Operation::RenewClaim | Operation::ReleaseClaim => Some(schemas.add::<api::SwapClaim>()),
        Operation::RegisterPeer => Some(schemas.add::<api::RegisterPeer>()),
        Operation::CreateAsk => Some(schemas.add::<api::CreateAsk>()),
        Operation::AckAsk => Some(schemas.add::<api::AckAsk>()),
        Operation::WaitAsk => Some(schemas.add::<api::WaitAsk>()),
        Operation::CancelOrphan => Some(schemas.add::<api::RetryCancel>()),
        Operation::SettleOrphan => Some(schemas.add::<api::SettleOrphan>()),
        Operation::InvokeCapability => Some(json!({ "anyOf": [
            schemas.add::<api::deferred::Invoke>(),
            schemas.add::<api::sensorium::Directive>(),
            schemas.add::<api::sensorium::OperationNamed>(),
        ] })),
        Operation::CancelDeferred => Some(schemas.add::<api::CancelJob>()),
        Operation::TriggerPlugin | Operation::TriggerPipeline => {
            Some(schemas.add::<api::ductile::DuctileTrigger>())
        }
        Operation::CreateToken => Some(schemas.add::<api::CreateToken>()),
        Operation::PublishEvent => Some(schemas.add::<api::PublishEvent>()),
        Operation::StartPipeline => Some(schemas.add::<api::StartPipeline>()),
        Operation::CancelRun => Some(schemas.add::<api::CancelRun>()),
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
        | Operation::TakeCallback
        | Operation::ReadPluginJob
        | Operation::ReadPluginTree
        | Operation::ListPlugins
        | Operation::ReadPlugin
        | Operation::TakeWebhook
        | Operation::ListTokens
        | Operation::RevokeToken
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
    Other(&'static str),
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
            schemas.add::<api::sensorium::DirectiveResult>(),
            schemas.add::<api::sensorium::ActionCatalog>(),
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
        Operation::StreamFacts => return Answer::Other("text/event-stream"),
        Operation::ReadArtifact => return Answer::Other("application/octet-stream"),
        Operation::ReadMetrics => return Answer::Other("text/plain"),
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
struct Schemas(Map<String, Value>);

impl Schemas {
    /// Adds a wire type and all that it consists of; gives the reference to it.
    fn add<T: ToSchema + PartialSchema>(&mut self) -> Value {
        let mut parts: Vec<(String, RefOr<Schema>)> = vec![(T::name().into_owned(), T::schema())];
        T::schemas(&mut parts);
        for (name, schema) in parts {
            let schema = serde_json::to_value(schema).expect("a schema has only string keys");
            self.0.insert(name, schema);
        }
        json!({ "$ref": format!("#/components/schemas/{}", T::name()) })
    }
}
