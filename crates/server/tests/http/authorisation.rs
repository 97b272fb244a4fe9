//! The walk over every route and role: whoever is not on the table is turned away before anything is read.

use api::Role;
use serde_json::json;
use server::{Access, Operation, ROUTES, Verb, allows};

use crate::given::{Call, World, world};

/// What each role may ask for, written out apart from the table that the server uses.
fn expected(role: Role, operation: Operation) -> bool {
    match operation {
        Operation::ListJobs
        | Operation::ReadStatus
        | Operation::ReadResult
        | Operation::ReadArtifact
        | Operation::ReadFacts
        | Operation::ReadWhy
        | Operation::ListOrphans
        | Operation::ListCapabilities
        | Operation::ReadOutcome
        | Operation::ListDeferred
        | Operation::ReadDeferred
        | Operation::ReadDeferredStatus
        | Operation::ListPeers
        | Operation::ReadPeer
        | Operation::ListAsks
        | Operation::ListPendingAsks
        | Operation::ReadAsk
        | Operation::ListEvents
        | Operation::ReadEvent
        | Operation::ListPipelines
        | Operation::ReadPipeline
        | Operation::ListRuns
        | Operation::ReadRun
        | Operation::ReadPluginJob
        | Operation::ReadPluginTree
        | Operation::ListPlugins
        | Operation::ReadPlugin
        | Operation::ReadPluginDocument
        | Operation::ListSkills
        | Operation::StreamFacts => true,
        Operation::CreateJob
        | Operation::CreateBatch
        | Operation::UpdateJob
        | Operation::RunJob
        | Operation::RetryJob
        | Operation::CancelJob
        | Operation::CancelOrphan
        | Operation::InvokeCapability
        | Operation::PollDeferred
        | Operation::CancelDeferred
        | Operation::AnswerJob
        | Operation::PullJob
        | Operation::HeartbeatJob
        | Operation::CompleteJob
        | Operation::FailJob
        | Operation::AskInput
        | Operation::DeferJob
        | Operation::AcquireClaim
        | Operation::RenewClaim
        | Operation::ReleaseClaim
        | Operation::RegisterPeer
        | Operation::ForgetPeer
        | Operation::CreateAsk
        | Operation::TriggerPlugin
        | Operation::TriggerPipeline
        | Operation::AckAsk
        | Operation::PublishEvent
        | Operation::StartPipeline
        | Operation::CancelRun
        | Operation::RetryRun
        | Operation::WaitAsk => role != Role::Viewer,
        Operation::PurgeJob
        | Operation::SettleOrphan
        | Operation::ReloadPipelines
        | Operation::ReadPluginState
        | Operation::ResetPlugin
        | Operation::DrainNode
        | Operation::UndrainNode => {
            matches!(role, Role::Admin | Role::Operator)
        }
        Operation::ReadMetrics | Operation::ReadClock | Operation::ListNodes => {
            matches!(role, Role::Admin | Role::Operator | Role::Viewer)
        }
        Operation::CreateToken
        | Operation::ListTokens
        | Operation::RevokeToken
        | Operation::SetClockRight => role == Role::Admin,
        Operation::TakeCallback
        | Operation::TakeWebhook
        | Operation::ReadHealth
        | Operation::ReadReadiness
        | Operation::ReadDocument => true,
    }
}

fn call<'a>(world: &'a World, verb: Verb, path: &str) -> Call<'a> {
    let method = match verb {
        Verb::Get => "GET",
        Verb::Post => "POST",
        Verb::Patch => "PATCH",
        Verb::Delete => "DELETE",
    };
    let call = Call::new(&world.address, method, &path.replace("{id}", "work-0").replace("{name}", "stdout"));
    if verb == Verb::Get { call } else { call.json(&json!({ "none": "of our keys" })) }
}

#[tokio::test]
async fn every_route_admits_exactly_the_roles_on_the_table_and_nobody_without_a_token() {
    let world = world().await;
    for role in Role::ALL {
        let circle = matches!(role, Role::Peer | Role::Agent).then_some("press");
        let secret = world.token(role, json!({ "circle": circle })).await;
        for route in ROUTES {
            let request = || call(&world, route.verb, route.path);
            if route.operation == Operation::StreamFacts {
                continue; // it does not end; its own tests follow it
            }
            let answer = request().bearer(&secret).send().await;
            let refused = answer.status == 403;
            assert_eq!(
                refused,
                !expected(role, route.operation),
                "{role:?} {:?} {}: {} {}",
                route.verb,
                route.path,
                answer.status,
                answer.body
            );
            if refused && route.operation.speaks_ductile() {
                assert!(answer.value()["error"].is_string(), "{}", answer.body);
            } else if refused {
                answer.problem(403, "forbidden");
            }
            let anonymous = request().send().await;
            assert_eq!(anonymous.status == 401, route.access != Access::Open, "{}", route.path);
        }
    }
}

#[test]
fn table_says_for_every_route_and_role_what_the_walk_expects() {
    for role in Role::ALL {
        for route in ROUTES {
            let allowed = match route.access {
                Access::Open => true,
                Access::Needs(permission) => allows(role, permission),
            };
            assert_eq!(allowed, expected(role, route.operation), "{role:?} {}", route.path);
        }
    }
}

#[test]
fn every_operation_has_a_route() {
    for operation in Operation::ALL {
        assert!(ROUTES.iter().any(|route| route.operation == operation), "{operation:?}");
    }
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
