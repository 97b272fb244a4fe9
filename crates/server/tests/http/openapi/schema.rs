//! Values against the schemas of the document, by a validator that is not ours.

use serde_json::{Value, json};

/// Compares a value with a component of the document.
pub fn check(document: &Value, name: &str, value: &Value) {
    assert!(document["components"]["schemas"][name].is_object(), "there is no schema {name}");
    let errors = mistakes(document, &json!({ "$ref": format!("#/components/schemas/{name}") }), value);
    assert!(errors.is_empty(), "{name}: {errors:?}\n{value}");
}

/// What does not fit a schema of the document.
pub fn mistakes(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut root = schema.clone();
    root["components"] = document["components"].clone();
    let validator = jsonschema::options().should_validate_formats(true).build(&root).expect("it is a schema");
    validator.iter_errors(value).map(|error| format!("{} {error}", error.instance_path())).collect()
}
