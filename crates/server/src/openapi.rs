//! `/openapi.json`: the API document, made from the list of operations and the wire types. It cannot drift from either.

mod examples;
pub(crate) mod parameters;
pub(crate) mod request_limits;
mod responses;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use api::Problem;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

use crate::access::authorise::Access;
use crate::external::sensorium;
use crate::operations::{Body, Route, Verb, routes};
use crate::reply::{Given, Reply};

static DOCUMENT: LazyLock<String> = LazyLock::new(|| document().to_string());

pub(crate) fn read() -> Reply {
    Reply::rendered(DOCUMENT.as_bytes(), Given::Now)
}

/// The document.
pub fn document() -> Value {
    let mut schemas = Schemas::default();
    let mut paths = Map::new();
    for route in routes() {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[method(route.verb)] = operation(route, route.path, &mut schemas);
        if route.operation.invokes {
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
    examples::complete(&mut paths, &components);
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
        "summary": own.map_or(operation.summary, |own| own.described().summary),
        "parameters": parameters::of(operation, path),
        "responses": responses::of(route, own, schemas),
        "security": match operation.access {
            Access::Open => json!([]),
            Access::Needs(_) => json!([{ "bearer": [] }]),
        },
    });
    if let Some(takes) = own.map_or(operation.takes, |own| Some(own.described().takes)) {
        let mut content = json!({ "schema": takes(schemas) });
        if let Some(example) = own.map_or(operation.request_example, |_| None) {
            content["example"] = example();
        }
        let required = matches!(operation.body, Body::Json(_)) && own != Some(sensorium::Name::DirectiveList);
        described["requestBody"] =
            json!({ "required": required, "content": { "application/json": content } });
    }
    described
}

/// The capability of the host's own that a path names.
fn own_capability(path: &str) -> Option<sensorium::Name> {
    sensorium::Name::ALL.into_iter().find(|name| path.contains(name.as_str()))
}

/// One name per route: the aliases of an operation differ by their path.
fn operation_id(route: &Route, path: &str) -> String {
    let place = path.replace(['/', '.'], "_").replace(['{', '}'], "");
    format!("{}{place}", route.operation.name)
}

fn method(verb: Verb) -> &'static str {
    match verb {
        Verb::Get => "get",
        Verb::Post => "post",
        Verb::Patch => "patch",
        Verb::Delete => "delete",
    }
}

/// The schemas of the wire types that are used.
#[derive(Default)]
pub(crate) struct Schemas {
    components: Map<String, Value>,
    /// Those that requests consist of.
    requests: BTreeSet<String>,
}

impl Schemas {
    /// Adds a wire type and all that it consists of; gives the reference to it.
    pub(crate) fn add<T: ToSchema>(&mut self) -> Value {
        for (name, schema) in parts::<T>() {
            let schema = serde_json::to_value(schema).expect("a schema has only string keys");
            self.components.insert(name, schema);
        }
        json!({ "$ref": format!("#/components/schemas/{}", T::name()) })
    }

    /// The same, for what is sent: what the daemon checks of it is said too.
    pub(crate) fn request<T: ToSchema>(&mut self) -> Value {
        self.requests.extend(parts::<T>().into_iter().map(|(name, _)| name));
        self.add::<T>()
    }
}

/// A wire type and all that it consists of.
fn parts<T: ToSchema>() -> Vec<(String, RefOr<Schema>)> {
    let mut parts = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut parts);
    parts
}
