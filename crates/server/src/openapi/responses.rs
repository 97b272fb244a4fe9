//! What an operation may be answered with: every status with its media types, its schemas and the codes of its problems.

use api::ProblemCode;
use serde_json::{Map, Value, json};

use super::Schemas;
use crate::access::authorise::Access;
use crate::external::sensorium;
use crate::operations::{Body, Dialect, Operation, Route};

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
                code.status() == status
                    && (status != 400 || reads(route.operation) || BEFORE_ROUTING.contains(code))
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
    let mut successes = Vec::new();
    let answers = own.map_or(route.operation.answers, |own| own.described().answers);
    for (place, answer) in answers.iter().enumerate() {
        let mut content = json!({ "schema": (answer.schema)(schemas) });
        if let (0, Some(example)) = (place, route.operation.answer_example) {
            content["example"] = example();
        }
        // What is accepted comes to something after the answer.
        let (status, description) =
            if answer.status == 202 { ("202", "Accepted, and goes on") } else { ("200", "Done") };
        successes.push((status, description, json!({ answer.media_type: content })));
    }
    successes
}

/// The forms of a refusal with this status.
fn refusal(route: &Route, own: Option<sensorium::Name>, status: u16, schemas: &mut Schemas) -> Value {
    let problem = json!({ "schema": { "$ref": "#/components/schemas/Problem" } });
    let mut content = json!({ "application/problem+json": problem });
    if route.operation.dialect == Dialect::Ductile {
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
fn reads(operation: &Operation) -> bool {
    operation.body != Body::None || operation.also_refused.contains(&400)
}

/// Whether the operation may be answered with this status.
fn applies(route: &Route, own: Option<sensorium::Name>, status: u16) -> bool {
    let operation = route.operation;
    if own == Some(sensorium::Name::DirectiveList) && status == 404
        || operation.never_refused.contains(&status)
    {
        return false;
    }
    let (has_body, is_open) = (operation.body != Body::None, operation.access == Access::Open);
    let is_raw = matches!(operation.body, Body::Raw(_));
    let follows = match status {
        400 | 503 => true,
        401 | 403 => !is_open,
        404 => route.path.contains('{'),
        408 | 409 | 413 => has_body,
        415 => has_body && !is_raw,
        // Ductile knows no 422.
        422 => operation.dialect == Dialect::Own && (has_body && !is_raw || operation.reads_query),
        500 => !is_open || is_raw,
        _ => false,
    };
    follows || operation.also_refused.contains(&status)
}
