//! Examples of answers, made from the schemas of the wire types and from `samples.json`: what stands in which field.
//!
//! A type shows the members that it always has and those that have a sample. So an operation has an example as soon as
//! its answer has a schema, and a sample is added where the plainest value says too little.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

/// By field, or by component and field where fields of one name say different things.
static SAMPLES: LazyLock<Map<String, Value>> =
    LazyLock::new(|| serde_json::from_str(include_str!("samples.json")).expect("the samples are an object"));

/// The sample of a member that is shown although it may be absent, as the plainest value of its type.
const PLAIN: &str = "@";
/// A time, as answers have it.
const AT: &str = "2026-11-16T09:30:00.000000+00:00";

/// Puts an example to every answer of JSON that has none.
pub(super) fn complete(paths: &mut Map<String, Value>, components: &Map<String, Value>) {
    let operations = paths.values_mut().filter_map(Value::as_object_mut).flat_map(Map::values_mut);
    for operation in operations {
        let Some(responses) = operation["responses"].as_object_mut() else { continue };
        for (_, response) in responses.iter_mut().filter(|(status, _)| status.starts_with('2')) {
            let content = response.pointer_mut("/content/application~1json");
            if let Some(content) = content.filter(|content| content.get("example").is_none()) {
                content["example"] = example(&content["schema"], components, "", "");
            }
        }
    }
}

/// A value that fits a schema, which is that of a field of a component.
fn example(schema: &Value, components: &Map<String, Value>, component: &str, field: &str) -> Value {
    if let Some(sample) = sample(component, field).filter(|sample| **sample != PLAIN) {
        return sample.clone();
    }
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap_or_default();
        return example(&components[name], components, name, "");
    }
    for keyword in ["anyOf", "oneOf"] {
        let choices = schema[keyword].as_array().into_iter().flatten();
        if let Some(choice) = choices.into_iter().find(|choice| choice["type"] != "null") {
            return example(choice, components, component, field);
        }
    }
    if schema["type"].is_array() {
        // Whatever may be absent is.
        return Value::Null;
    }
    match schema["type"].as_str().unwrap_or_default() {
        "object" => {
            let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
            let shown =
                |name: &str| required.iter().any(|one| one == name) || sample(component, name).is_some();
            let members = schema["properties"].as_object().into_iter().flatten();
            let members = members.filter(|(name, _)| shown(name));
            let member = |(name, schema): (&String, &Value)| {
                (name.clone(), example(schema, components, component, name))
            };
            Value::Object(members.map(member).collect())
        }
        "array" => json!([example(&schema["items"], components, component, field)]),
        "integer" | "number" => json!(1),
        "boolean" => json!(false),
        "string" if field.ends_with("_at") => AT.into(),
        "string" => schema["enum"][0].as_str().unwrap_or(field).into(),
        _ => json!({}),
    }
}

fn sample(component: &str, field: &str) -> Option<&'static Value> {
    SAMPLES.get(&format!("{component}.{field}")).or_else(|| SAMPLES.get(field))
}
