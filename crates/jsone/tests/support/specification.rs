//! The official specification, read from where cargo keeps the published package that carries it.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Map, Value as Json};
use yaml_rust::{Yaml, YamlLoader};

/// One case of the suite.
pub struct Case {
    pub section: String,
    pub title: String,
    pub template: Json,
    pub context: Json,
    pub expected: Expected,
}

pub enum Expected {
    Result(Json),
    /// The message that the suite gives; `None` where any error will do.
    Error(Option<String>),
}

pub fn cases() -> Vec<Case> {
    let text = std::fs::read_to_string(path()).expect("the published package carries the specification");
    let documents = YamlLoader::load_from_str(&text).expect("the specification is YAML");
    let mut section = String::new();
    let mut cases = Vec::new();
    for document in documents {
        if let Some(name) = document["section"].as_str() {
            name.clone_into(&mut section);
            continue;
        }
        cases.push(Case {
            section: section.clone(),
            title: document["title"].as_str().expect("a case has a title").to_owned(),
            template: json(&document["template"]),
            context: json(&document["context"]),
            expected: expected(&document),
        });
    }
    cases
}

fn expected(document: &Yaml) -> Expected {
    let error = &document["error"];
    if error.is_badvalue() {
        return Expected::Result(json(&document["result"]));
    }
    Expected::Error(error.as_str().map(str::to_owned))
}

fn path() -> PathBuf {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Json = serde_json::from_slice(&output.stdout).expect("cargo metadata answers in JSON");
    let packages = metadata["packages"].as_array().expect("metadata lists the packages");
    let package =
        packages.iter().find(|package| package["name"] == "json-e").expect("json-e is a dev-dependency");
    let manifest = PathBuf::from(package["manifest_path"].as_str().expect("a package has a manifest"));
    manifest.with_file_name("specification.yml")
}

fn json(yaml: &Yaml) -> Json {
    match yaml {
        Yaml::Null => Json::Null,
        Yaml::Boolean(bool) => Json::Bool(*bool),
        Yaml::Integer(integer) => (*integer).into(),
        Yaml::Real(text) => text.parse::<f64>().expect("a number").into(),
        Yaml::String(text) => Json::String(text.clone()),
        Yaml::Array(items) => Json::Array(items.iter().map(json).collect()),
        Yaml::Hash(entries) => Json::Object(
            entries
                .iter()
                .map(|(key, value)| (key.as_str().expect("keys are strings").to_owned(), json(value)))
                .collect::<Map<_, _>>(),
        ),
        Yaml::Alias(_) | Yaml::BadValue => panic!("the specification has no aliases and no bad values"),
    }
}
