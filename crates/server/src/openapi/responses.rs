//! What an operation may be answered with: every status with its media types, its schemas and the codes of its problems.

use api::ProblemCode;
use serde_json::{Map, Value, json};

use super::{Answer, Schemas, answer_schema, examples};
use crate::authorise::Access;
use crate::operation::Operation;
use crate::routes::{Body, Route};
use crate::sensorium;

/// The codes of what is refused before the operation is known: always in the form of a problem.
const BEFORE_ROUTING: [ProblemCode; 1] = [ProblemCode::InvalidHost];

pub(super) fn of(route: &Route, own: Option<sensorium::Name>, schemas: &mut Schemas) -> Value {
    let mut responses = Map::new();
    for (status, description, content) in successes(route, own, schemas) {
        responses.insert(status.to_owned(), json!({ "description": description, "content": content }));
    }
    let mut statuses: Vec<u16> = ProblemCode::ALL.iter().map(|code| code.status()).collect();
    statuses.sort_unstable();
    statuses.dedup();
    for status in statuses.into_iter().filter(|status| applies(route, own, *status)) {
        let codes: Vec<&str> = ProblemCode::ALL
            .iter()
            .filter(|code| {
                code.status() == status && (status != 400 || reads(route) || BEFORE_ROUTING.contains(code))
            })
            .map(|code| code.as_str())
            .collect();
        let content = refusal(route, own, status, schemas);
        let mut response =
            json!({ "description": format!("code: {}", codes.join(", ")), "content": content });
        if status == 401 {
            response["headers"] = json!({ "WWW-Authenticate": { "schema": { "type": "string" } } });
        }
        if status == 503 {
            response["headers"] = json!({ "Retry-After": { "schema": { "type": "integer", "minimum": 1 } } });
        }
        responses.insert(status.to_string(), response);
    }
    responses.into()
}

/// Each status of success with what it says and brings.
fn successes(
    route: &Route,
    own: Option<sensorium::Name>,
    schemas: &mut Schemas,
) -> Vec<(&'static str, &'static str, Value)> {
    let json = |schema: Value| json!({ "application/json": { "schema": schema } });
    let (done, goes_on) = ("Done", "Accepted, and goes on");
    if let Some(name) = own {
        let status = |schemas: &mut Schemas| schemas.add::<api::deferred::DeferredStatus>();
        return match name {
            sensorium::Name::DirectiveInvoke => {
                let result = schemas.add::<api::sensorium::DirectiveResult>();
                let either = json!({ "anyOf": [result, status(schemas)] });
                let handle = schemas.add::<api::deferred::DeferredOperation>();
                vec![("200", done, json(either)), ("202", goes_on, json(handle))]
            }
            sensorium::Name::DirectiveList => {
                vec![("200", done, json(schemas.add::<api::sensorium::ActionCatalog>()))]
            }
            sensorium::Name::OperationStatus => vec![("200", done, json(status(schemas)))],
            sensorium::Name::OperationCancel => {
                vec![("200", done, json(status(schemas))), ("202", goes_on, json(status(schemas)))]
            }
        };
    }
    let content = match answer_schema(route.operation, schemas) {
        Answer::Json(schema) => {
            let mut content = json!({ "schema": schema });
            if let Some(example) = examples::answer(route.operation) {
                content["example"] = example;
            }
            json!({ "application/json": content })
        }
        Answer::Other(media_type, schema) => json!({ media_type: { "schema": schema } }),
    };
    // What is only written down when this answers, and comes to something after it.
    let only_accepts =
        [Operation::PublishEvent, Operation::TakeCallback, Operation::TakeWebhook, Operation::TriggerPlugin];
    if only_accepts.contains(&route.operation) {
        return vec![("202", goes_on, content)];
    }
    let mut successes = vec![("200", done, content)];
    let accepted = if route.operation == Operation::InvokeCapability {
        Some(schemas.add::<api::deferred::DeferredOperation>())
    } else if route.operation == Operation::CancelDeferred {
        Some(schemas.add::<api::deferred::DeferredStatus>())
    } else if route.operation == Operation::StartPipeline {
        Some(schemas.add::<api::PipelineStarted>())
    } else if route.operation == Operation::TriggerPipeline {
        let started = schemas.add::<api::ductile::DuctileTriggered>();
        Some(json!({ "anyOf": [started, schemas.add::<api::ductile::DuctileLate>()] }))
    } else {
        None
    };
    successes.extend(accepted.map(|schema| ("202", goes_on, json(schema))));
    successes
}

/// The forms of a refusal with this status.
fn refusal(route: &Route, own: Option<sensorium::Name>, status: u16, schemas: &mut Schemas) -> Value {
    let problem = json!({ "schema": { "$ref": "#/components/schemas/Problem" } });
    let mut content = json!({ "application/problem+json": problem });
    if route.operation.speaks_ductile() {
        let error = schemas.add::<api::ductile::DuctileError>();
        // A header that is wrong is found before it is known that a client of Ductile asks.
        if status != 400 {
            content = json!({});
        }
        content["application/json"] = json!({ "schema": error });
    }
    // A directive that is rejected has a record, and is answered with it.
    if own == Some(sensorium::Name::DirectiveInvoke) && matches!(status, 409 | 422) {
        content["application/json"] = json!({ "schema": schemas.add::<api::sensorium::DirectiveResult>() });
    }
    content
}

/// Whether the operation reads anything that may be wrong with 400.
fn reads(route: &Route) -> bool {
    // Of words that a list is asked for.
    let worded = [Operation::ListJobs, Operation::ListEvents, Operation::ListRuns];
    route.body != Body::None || worded.contains(&route.operation)
}

/// Whether the operation may be answered with this status.
fn applies(route: &Route, own: Option<sensorium::Name>, status: u16) -> bool {
    let operation = route.operation;
    let (has_body, is_open) = (route.body != Body::None, route.access == Access::Open);
    let is_raw = matches!(route.body, Body::Raw(_));
    let names_in_body = [
        Operation::StreamFacts,
        Operation::CreateJob,
        Operation::CreateAsk,
        Operation::ListAsks,
        Operation::AcquireClaim,
    ];
    match status {
        400 | 503 => true,
        401 => !is_open || operation == Operation::TakeCallback,
        403 => !is_open || operation == Operation::TakeWebhook,
        404 if own == Some(sensorium::Name::DirectiveList) => false,
        404 => route.path.contains('{') || names_in_body.contains(&operation),
        408 | 413 => has_body,
        409 => has_body && operation != Operation::TakeCallback,
        410 => operation == Operation::AckAsk,
        415 => has_body && !is_raw,
        // Ductile knows no 422.
        422 => !operation.speaks_ductile() && (has_body && !is_raw || operation.reads_query()),
        429 => matches!(operation, Operation::InvokeCapability | Operation::PollDeferred),
        500 => !is_open || is_raw || operation == Operation::ReadReadiness,
        _ => false,
    }
}
