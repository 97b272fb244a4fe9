//! Every dependency, on every platform, comes under a licence that lets longhaul ship under Apache-2.0.
//! Reads the licence that each package states about itself; does not look into its files.

use std::process::Command;

use serde_json::Value;

const ALLOWED: [&str; 12] = [
    "MIT",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "CC0-1.0",
    "MIT-0",
    "BSL-1.0",
    "Unlicense",
    "0BSD",
];

/// The published evaluator (MPL-2.0) that tests compare ours with; nothing that ships is linked with it.
const ORACLE: &str = "json-e";

#[test]
fn every_dependency_has_an_allowed_licence() {
    let metadata = cargo_metadata();
    let ours = metadata["workspace_members"].as_array().expect("metadata lists the members");
    let packages = metadata["packages"].as_array().expect("metadata lists the packages");
    let refused: Vec<String> = packages
        .iter()
        .filter(|package| !ours.contains(&package["id"]))
        .filter(|package| package["name"] != ORACLE)
        .filter(|package| !package["license"].as_str().is_some_and(is_allowed))
        .map(|package| format!("{} {}: {}", package["name"], package["version"], package["license"]))
        .collect();
    assert!(refused.is_empty(), "licences that are not on the list:\n{}", refused.join("\n"));
}

#[test]
fn one_allowed_choice_is_enough() {
    for expression in ["MIT", "MIT OR GPL-3.0", "GPL-3.0/MIT", "(GPL-3.0 OR MIT) AND Zlib"] {
        assert!(is_allowed(expression), "{expression}");
    }
}

#[test]
fn every_joined_licence_must_be_allowed() {
    for expression in ["GPL-3.0", "MIT AND GPL-3.0", "GPL-3.0 OR MIT AND GPL-3.0", "(MIT OR ISC) AND GPL-3.0"]
    {
        assert!(!is_allowed(expression), "{expression}");
    }
}

#[test]
fn an_exception_leaves_its_licence_as_it_is() {
    assert!(is_allowed("Apache-2.0 WITH LLVM-exception OR GPL-3.0"));
    assert!(!is_allowed("GPL-2.0 WITH Classpath-exception-2.0"));
}

#[test]
fn a_malformed_expression_is_refused() {
    for expression in ["", "MIT OR", "MIT MIT", "(MIT", "MIT)", "MIT OR AND", "MIT WITH"] {
        assert!(!is_allowed(expression), "{expression}");
    }
}

fn cargo_metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata answers in JSON")
}

/// Whether an SPDX expression can be met with allowed licences alone.
fn is_allowed(expression: &str) -> bool {
    // Older packages write "MIT/Apache-2.0" for OR.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = tokens.as_slice();
    any_of(&mut rest) == Some(true) && rest.is_empty()
}

// Each of these reads its part off the front of `rest`; `None` is malformed.

fn any_of(rest: &mut &[&str]) -> Option<bool> {
    let mut allowed = all_of(rest)?;
    while take(rest, "OR") {
        allowed |= all_of(rest)?;
    }
    Some(allowed)
}

fn all_of(rest: &mut &[&str]) -> Option<bool> {
    let mut allowed = one(rest)?;
    while take(rest, "AND") {
        allowed &= one(rest)?;
    }
    Some(allowed)
}

fn one(rest: &mut &[&str]) -> Option<bool> {
    if take(rest, "(") {
        let allowed = any_of(rest)?;
        return take(rest, ")").then_some(allowed);
    }
    let licence = name(rest)?;
    if take(rest, "WITH") {
        // An exception only adds permissions.
        name(rest)?;
    }
    Some(ALLOWED.contains(&licence))
}

fn name<'a>(rest: &mut &[&'a str]) -> Option<&'a str> {
    let (first, after) = rest.split_first()?;
    *rest = after;
    (!["OR", "AND", "WITH", "(", ")"].contains(first)).then_some(*first)
}

fn take(rest: &mut &[&str], token: &str) -> bool {
    match rest.split_first() {
        Some((first, after)) if *first == token => {
            *rest = after;
            true
        }
        Some(_) | None => false,
    }
}
