//! The walk over every route and role: whoever is not on the table is turned away before anything is read.

use std::fmt::Write as _;
use std::path::Path;

use api::Role;
use serde_json::json;
use server::{Access, Dialect, Operation, SlotClass, Verb, allows, operations, routes};

use crate::given::{Call, World, world};

/// Whether the table lets the role ask for it.
fn is_allowed(role: Role, operation: &Operation) -> bool {
    match operation.access {
        Access::Open => true,
        Access::Needs(permission) => allows(role, permission),
    }
}

fn method(verb: Verb) -> &'static str {
    match verb {
        Verb::Get => "GET",
        Verb::Post => "POST",
        Verb::Patch => "PATCH",
        Verb::Delete => "DELETE",
    }
}

fn call<'a>(world: &'a World, verb: Verb, path: &str) -> Call<'a> {
    let call =
        Call::new(&world.address, method(verb), &path.replace("{id}", "work-0").replace("{name}", "stdout"));
    if verb == Verb::Get { call } else { call.json(&json!({ "none": "of our keys" })) }
}

#[tokio::test]
async fn every_route_admits_exactly_the_roles_on_the_table_and_nobody_without_a_token() {
    let world = world().await;
    for role in Role::ALL {
        let circle = matches!(role, Role::Peer | Role::Agent).then_some("press");
        let secret = world.token(role, json!({ "circle": circle })).await;
        for route in routes() {
            let request = || call(&world, route.verb, route.path);
            if route.operation.slot == SlotClass::Stream {
                continue; // it does not end; its own tests follow it
            }
            let answer = request().bearer(&secret).send().await;
            let refused = answer.status == 403;
            assert_eq!(
                refused,
                !is_allowed(role, route.operation),
                "{role:?} {:?} {}: {} {}",
                route.verb,
                route.path,
                answer.status,
                answer.body
            );
            if refused && route.operation.dialect == Dialect::Ductile {
                assert!(answer.value()["error"].is_string(), "{}", answer.body);
            } else if refused {
                answer.problem(403, "forbidden");
            }
            let anonymous = request().send().await;
            assert_eq!(anonymous.status == 401, route.operation.access != Access::Open, "{}", route.path);
        }
    }
}

/// The page of all operations. A change of who may ask for something shows as a change of this page.
fn page() -> String {
    let mut page = String::from(PAGE_HEAD);
    for operation in operations() {
        let paths = operation.paths.iter().map(|(verb, path)| format!("`{} {path}`", method(*verb)));
        let roles: Vec<&str> = match operation.access {
            Access::Open => vec!["no token needed"],
            Access::Needs(_) => {
                Role::ALL.into_iter().filter(|role| is_allowed(*role, operation)).map(Role::as_str).collect()
            }
        };
        let (paths, roles) = (paths.collect::<Vec<_>>().join("<br>"), roles.join(", "));
        writeln!(page, "| {paths} | {} | {roles} |", operation.summary).expect("a text takes everything");
    }
    page
}

const PAGE_HEAD: &str = "# Operations\n\n\
    Everything that may be asked for, and the roles whose tokens may ask. Generated from the table of operations \
    (`crates/server/src/operations.rs`)\nby `crates/server/tests/http/authorisation.rs`. Do not edit; run\n\
    `LONGHAUL_BLESS=1 cargo test -p server --test http page_of_operations`.\n\n\
    | asked for by | what it does | roles |\n| --- | --- | --- |\n";

#[test]
fn page_of_operations_is_what_the_table_says() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations.md");
    if std::env::var_os("LONGHAUL_BLESS").is_some() {
        std::fs::write(&place, page()).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&place).unwrap_or_default(), page(), "run with LONGHAUL_BLESS=1");
}

#[tokio::test]
async fn token_of_a_circle_does_not_reach_what_spans_circles() {
    let world = world().await;
    let admin = world.token(Role::Admin, json!({ "circle": "press" })).await;
    for (verb, path) in [
        ("GET", "/metrics"),
        ("GET", "/nodes"),
        ("GET", "/clock"),
        ("POST", "/clock/set-right"),
        ("POST", "/nodes/x/drain"),
        ("POST", "/pipelines/reload"),
        ("POST", "/plugin/echo/breaker/reset"),
        ("GET", "/plugin/echo/state"),
        ("GET", "/tokens"),
        ("DELETE", "/tokens/token-0"),
    ] {
        world.call(verb, path).bearer(&admin).send().await.problem(403, "forbidden");
    }
    let more = json!({ "role": "admin" });
    world.post("/tokens", more).bearer(&admin).send().await.problem(403, "forbidden");
}

#[tokio::test]
async fn peers_steer_what_is_theirs_or_nobodys_in_their_circle() {
    let world = world().await;
    let me = world.token(Role::Peer, json!({ "circle": "press", "peer_id": "peer-me" })).await;
    let unbound = world.token(Role::Agent, json!({ "circle": "press" })).await;
    for (job, mine, anybodys) in [
        (json!({ "assigned_peer_id": "peer-me" }), true, false),
        (json!({ "assigned_peer_id": "peer-you", "owner_peer_id": "peer-me" }), true, false),
        (json!({ "assigned_peer_id": "peer-you", "created_by_peer_id": "peer-me" }), true, false),
        (json!({}), true, true),
        (json!({ "owner_peer_id": "peer-you" }), true, true),
        (json!({ "assigned_peer_id": "peer-you" }), false, false),
    ] {
        let mut body = job.clone();
        body["circle"] = json!("press");
        let id = world.create(body).await;
        for (token, allowed) in [(&me, mine), (&unbound, anybodys)] {
            let report = world.patch(&id, json!({ "state": "running" })).bearer(token).send().await;
            assert_eq!(report.status, if allowed { 200 } else { 403 }, "{job}: {}", report.body);
            let cancel = world.post(&format!("/jobs/{id}/cancel"), json!({})).bearer(token).send().await;
            assert_eq!(cancel.status, if allowed { 200 } else { 403 }, "{job}: {}", cancel.body);
        }
    }
    let id = world.create(json!({ "circle": "press", "assigned_peer_id": "peer-you" })).await;
    let claimed = json!({ "requested_by_peer_id": "peer-you" });
    let path = format!("/jobs/{id}/cancel");
    world.post(&path, claimed.clone()).bearer(&me).send().await.problem(403, "forbidden");
    world.post(&path, claimed).bearer(&unbound).send().await.ok();
}
