//! Every example of the language's documentation does what it says, and nothing is missing from it.

#[path = "support/rendering.rs"]
mod rendering;

use rendering::{eval, render};
use serde_json::{Value as Json, json};

const LANGUAGE: &str = include_str!("../LANGUAGE.md");

#[test]
fn every_example_gives_what_it_says() {
    let examples = examples();
    assert!(examples.len() > 40);
    for example in examples {
        let context = example.get("context").cloned().unwrap_or(json!({}));
        let rendered = render(&example["template"], &context);
        match example.get("error") {
            Some(error) => assert_eq!(json!(rendered.unwrap_err().to_string()), *error, "{example}"),
            None => assert_eq!(rendered.as_ref(), Ok(&example["result"]), "{example}"),
        }
    }
}

#[test]
fn every_operator_and_every_function_has_a_heading_and_an_example() {
    let headings: Vec<&str> = LANGUAGE.lines().filter(|line| line.starts_with("### ")).collect();
    let templates: Vec<String> = examples().iter().map(|example| example["template"].to_string()).collect();
    for name in jsone::OPERATORS.iter().chain(&jsone::BUILTINS) {
        let heading = format!("`{name}`");
        assert!(headings.iter().any(|line| line.contains(&heading)), "{name} has no heading");
        let used = if name.starts_with('$') { format!("\"{name}\":") } else { format!("{name}(") };
        assert!(templates.iter().any(|template| template.contains(&used)), "{name} has no example");
    }
}

#[test]
fn every_infix_operator_has_a_heading_and_an_example() {
    let headings: Vec<&str> = LANGUAGE.lines().filter(|line| line.starts_with("### ")).collect();
    let templates: Vec<String> = examples().iter().map(|example| example["template"].to_string()).collect();
    for symbol in jsone::INFIX {
        let heading = format!("`{symbol}`");
        assert!(headings.iter().any(|line| line.contains(&heading)), "{symbol} has no heading");
        let used = format!(" {symbol} ");
        assert!(templates.iter().any(|template| template.contains(&used)), "{symbol} has no example");
    }
}

#[test]
fn every_listed_operator_and_function_exists() {
    for operator in jsone::OPERATORS {
        let reserved = render(&json!({operator: 1}), &json!({}));
        assert_ne!(
            reserved.map_err(|error| error.to_string()),
            Err("TemplateError: $<identifier> is reserved; use $$<identifier>".to_owned()),
            "{operator}"
        );
    }
    for builtin in jsone::BUILTINS {
        assert_eq!(eval(&format!("typeof({builtin})"), &json!({})), Ok(json!("function")), "{builtin}");
    }
}

fn examples() -> Vec<Json> {
    LANGUAGE
        .split("```json\n")
        .skip(1)
        .map(|block| {
            let text = block.split("```").next().unwrap_or_default();
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in\n{text}"))
        })
        .collect()
}
