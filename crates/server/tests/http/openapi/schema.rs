//! A reader of the few words of JSON Schema that the document uses. A word that it does not know is a mistake.

use serde_json::{Value, json};

/// Compares a value with a component of the document.
pub fn check(document: &Value, name: &str, value: &Value) {
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
                let name = said
                    .as_str()
                    .expect("the document is well formed")
                    .rsplit('/')
                    .next()
                    .expect("the document is well formed");
                let target = &document["components"]["schemas"][name];
                found.extend(mistakes(document, target, value, place));
            }
            "type" => {
                let allowed: Vec<&str> = match said {
                    Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
                    Value::String(one) => vec![one.as_str()],
                    Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
                };
                if !allowed.iter().any(|kind| is(kind, value)) {
                    found.push(format!("{place}: {value} is no {said}"));
                }
            }
            "required" => {
                for key in
                    said.as_array().expect("the document is well formed").iter().filter_map(Value::as_str)
                {
                    if value.is_object() && value.get(key).is_none() {
                        found.push(format!("{place}: {key} is missing"));
                    }
                }
            }
            "properties" => {
                for (key, schema) in said.as_object().expect("the document is well formed") {
                    if let Some(member) = value.get(key) {
                        found.extend(mistakes(document, schema, member, &format!("{place}.{key}")));
                    }
                }
            }
            "additionalProperties" if *said == json!(false) => {
                let known = words["properties"].as_object().expect("the document is well formed");
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
                    .expect("the document is well formed")
                    .iter()
                    .filter(|one| mistakes(document, one, value, place).is_empty());
                if fits.count() == 0 {
                    found.push(format!("{place}: {value} fits none of {said}"));
                }
            }
            "enum" if !said.as_array().expect("the document is well formed").contains(value) => {
                found.push(format!("{place}: {value} is not in {said}"));
            }
            "minimum" if value.as_f64() < said.as_f64() => {
                found.push(format!("{place}: {value} is below {said}"));
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
