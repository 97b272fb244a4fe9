//! The API document.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use server::{Access, ROUTES, Verb};

use crate::given::{World, world};

async fn document(world: &World) -> Value {
    world.get("/openapi.json").anonymous().send().await.ok()
}

#[tokio::test]
async fn document_names_every_route_and_nothing_else() {
    let world = world().await;
    let document = document(&world).await;
    assert_eq!(document["openapi"], "3.1.0");
    let mut described = BTreeSet::new();
    let mut names = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            described.insert((path.clone(), method.clone()));
            assert!(names.insert(operation["operationId"].as_str().unwrap().to_owned()), "{operation}");
        }
    }
    let routes: BTreeSet<_> = ROUTES
        .iter()
        .map(|route| {
            let method = match route.verb {
                Verb::Get => "get",
                Verb::Post => "post",
                Verb::Patch => "patch",
                Verb::Delete => "delete",
            };
            let open = document["paths"][route.path][method]["security"] == json!([]);
            assert_eq!(open, route.access == Access::Open, "{}", route.path);
            (route.path.to_owned(), method.to_owned())
        })
        .collect();
    assert_eq!(described, routes);
}

#[tokio::test]
async fn every_reference_of_the_document_leads_somewhere() {
    let world = world().await;
    let document = document(&world).await;
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let mut waiting = vec![&document];
    let mut references = 0;
    while let Some(value) = waiting.pop() {
        match value {
            Value::Object(members) => {
                if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
                    let name = reference.strip_prefix("#/components/schemas/").unwrap();
                    assert!(schemas.contains_key(name), "{reference}");
                    references += 1;
                }
                waiting.extend(members.values());
            }
            Value::Array(items) => waiting.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    assert!(references > 30);
}

/// Compares a value with a component of the document.
fn check(document: &Value, name: &str, value: &Value) {
    let schema = &document["components"]["schemas"][name];
    assert!(schema.is_object(), "there is no schema {name}");
    let errors = mistakes(document, schema, value, name);
    assert!(errors.is_empty(), "{errors:?}\n{value}");
}

/// What does not fit, for the words of JSON Schema that the document uses; an unknown word is a mistake too.
fn mistakes(document: &Value, schema: &Value, value: &Value, place: &str) -> Vec<String> {
    let mut found = Vec::new();
    let Some(words) = schema.as_object() else { return vec![format!("{place}: no schema")] };
    for (word, said) in words {
        match word.as_str() {
            "$ref" => {
                let name = said.as_str().unwrap().rsplit('/').next().unwrap();
                let target = &document["components"]["schemas"][name];
                found.extend(mistakes(document, target, value, place));
            }
            "type" => {
                let allowed: Vec<&str> = match said {
                    Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
                    one => one.as_str().into_iter().collect(),
                };
                if !allowed.iter().any(|kind| is(kind, value)) {
                    found.push(format!("{place}: {value} is no {said}"));
                }
            }
            "required" => {
                for key in said.as_array().unwrap().iter().filter_map(Value::as_str) {
                    if value.is_object() && value.get(key).is_none() {
                        found.push(format!("{place}: {key} is missing"));
                    }
                }
            }
            "properties" => {
                for (key, schema) in said.as_object().unwrap() {
                    if let Some(member) = value.get(key) {
                        found.extend(mistakes(document, schema, member, &format!("{place}.{key}")));
                    }
                }
            }
            "additionalProperties" if *said == json!(false) => {
                let known = words["properties"].as_object().unwrap();
                let unknown =
                    value.as_object().into_iter().flatten().find(|(key, _)| !known.contains_key(*key));
                found.extend(unknown.map(|(key, _)| format!("{place}: {key} is unknown")));
            }
            "items" => {
                for item in value.as_array().into_iter().flatten() {
                    found.extend(mistakes(document, said, item, &format!("{place}[]")));
                }
            }
            "oneOf" | "anyOf" => {
                let fits = said
                    .as_array()
                    .unwrap()
                    .iter()
                    .filter(|one| mistakes(document, one, value, place).is_empty());
                if fits.count() == 0 {
                    found.push(format!("{place}: {value} fits none of {said}"));
                }
            }
            "enum" if !said.as_array().unwrap().contains(value) => {
                found.push(format!("{place}: {value} is not in {said}"))
            }
            "minimum" if value.as_f64() < said.as_f64() => {
                found.push(format!("{place}: {value} is below {said}"))
            }
            "enum"
            | "minimum"
            | "description"
            | "format"
            | "default"
            | "additionalProperties"
            | "propertyNames" => {}
            unknown => found.push(format!("{place}: the word {unknown} is not checked here")),
        }
    }
    found
}

fn is(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("there is no type {other}"),
    }
}

#[tokio::test]
async fn answers_are_as_their_schemas_say() {
    let world = world().await;
    let document = document(&world).await;
    let plain = world.post("/jobs", json!({ "title": "t", "provenance": { "links": {} } })).send().await.ok();
    check(&document, "JobCreated", &plain);
    let (id, attempt) = world.delivered().await;
    check(&document, "StatusAnswer", &world.get(&format!("/jobs/{id}")).send().await.ok());
    check(&document, "ResultAnswer", &world.get(&format!("/jobs/{id}/result")).send().await.ok());
    check(&document, "Why", &world.get(&format!("/jobs/{id}/why")).send().await.ok());
    check(&document, "FactList", &world.get(&format!("/jobs/{id}/facts")).send().await.ok());
    let report = json!({ "state": "completed", "attempt_id": attempt, "result_data": { "n": 1 }, "progress_note": "x" });
    check(&document, "StatusAnswer", &world.patch(&id, report).send().await.ok());
    check(&document, "ResultAnswer", &world.get(&format!("/jobs/{id}/result")).send().await.ok());
    check(&document, "JobList", &world.get("/jobs").send().await.ok());
    check(&document, "JobList", &world.get("/jobs?view=summary").send().await.ok());
    check(&document, "TokenCreated", &world.post("/tokens", json!({ "role": "viewer" })).send().await.ok());
    check(&document, "TokenList", &world.get("/tokens").send().await.ok());
    check(
        &document,
        "BatchAnswer",
        &world.post("/jobs/batch", json!({ "jobs": [{}, { "x": 1 }] })).send().await.ok(),
    );
    check(
        &document,
        "Problem",
        &world.post("/jobs", json!({ "x": 1 })).send().await.problem(422, "invalid_request"),
    );
}

#[tokio::test]
async fn every_example_is_accepted_as_it_stands_and_fits_its_schema() {
    let world = world().await;
    let document = document(&world).await;
    for path in ["/jobs", "/jobs/batch", "/tokens"] {
        let content = &document["paths"][path]["post"]["requestBody"]["content"]["application/json"];
        let name = content["schema"]["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
        check(&document, name, &content["example"]);
        world.post(path, content["example"].clone()).send().await.ok();
    }
    let id = world.create(json!({})).await;
    let example = |path: &str, method: &str| {
        document["paths"][path][method]["requestBody"]["content"]["application/json"]["example"].clone()
    };
    world.patch(&id, example("/jobs/{id}", "patch")).send().await.ok();
    let id = world.create(json!({})).await;
    world.patch(&id, json!({ "state": "blocked" })).send().await.ok();
    world.post(&format!("/jobs/{id}/answer"), example("/jobs/{id}/answer", "post")).send().await.ok();
    world.post(&format!("/jobs/{id}/cancel"), example("/jobs/{id}/cancel", "post")).send().await.ok();
    let why = &document["paths"]["/jobs/{id}/why"]["get"]["responses"]["200"]["content"]["application/json"]
        ["example"];
    check(&document, "Why", why);
}

#[tokio::test]
async fn every_field_of_a_new_job_in_the_document_is_known_to_the_server() {
    let world = world().await;
    let document = document(&world).await;
    let fields = document["components"]["schemas"]["CreateJob"]["properties"].as_object().unwrap().clone();
    assert!(fields.len() >= 34, "{}", fields.len());
    for field in fields.keys() {
        let answer = world.post("/jobs", json!({ field: null })).send().await;
        assert!(!answer.body.contains("extra_forbidden"), "{field}: {}", answer.body);
    }
}
