//! Private jobs: who sees them, in every place where a job is shown, and who may create them.

use std::sync::Arc;

use api::Role;
use domain::job::{JobCommand, JobSpec, NewJob, VISIBLE_TO_CIRCLE, VISIBLE_TO_OWN};
use domain::{JobId, RetryPolicy};
use engine::Order;
use serde_json::{Value, json};

use crate::given::{World, working_world, world};

/// What this caller finds of a job in the lists.
async fn listed(world: &World, token: &str, path: &str, id: &str) -> bool {
    world.get(path).bearer(token).send().await.body.contains(id)
}

// conforms: R97 R110
#[tokio::test]
async fn private_job_is_seen_by_its_peers_and_operators() {
    let world = world().await;
    let token =
        async |role: Role, peer: &str| world.token(role, json!({ "circle": "press", "peer_id": peer })).await;
    let creator = token(Role::Agent, "joan").await;
    let doer = token(Role::Peer, "ada").await;
    let operator = token(Role::Operator, "boss").await;
    let (peer, viewer) = (token(Role::Peer, "eve").await, token(Role::Viewer, "guest").await);
    let overseer = world.token(Role::Viewer, json!({})).await;
    let private = json!({ "title": "t", "visibility": "private", "assigned_peer_id": "repow-ada", "owner_peer_id": "ada" });
    let made = world.post("/jobs", private).bearer(&creator).send().await.ok();
    let id = made["job_id"].as_str().unwrap().to_owned();
    let shared = world.post("/jobs", json!({ "title": "t" })).bearer(&creator).send().await.ok();
    let shared = shared["job_id"].as_str().unwrap().to_owned();
    let routes = ["", "/status", "/result", "/why", "/facts", "/artifacts/stdout"];
    for (token, sees) in [
        (&creator, true),
        (&doer, true),
        (&operator, true),
        (&world.admin, true),
        (&peer, false),
        (&viewer, false),
        (&overseer, false),
    ] {
        for route in routes {
            let one = world.get(&format!("/jobs/{id}{route}")).bearer(token).send().await;
            let absent = world.get(&format!("/jobs/work-0{route}")).bearer(token).send().await;
            if !sees {
                one.problem(404, "not_found");
                assert_eq!(one.body.replace(&id, "work-0"), absent.body, "{route}");
            } else if route != "/artifacts/stdout" {
                one.ok();
            }
            if *token != overseer {
                world.get(&format!("/jobs/{shared}")).bearer(token).send().await.ok();
            }
        }
        for list in ["/jobs", "/jobs?view=summary", "/work"] {
            assert_eq!(listed(&world, token, list, &id).await, sees, "{list}");
            assert!(listed(&world, token, list, &shared).await, "{list}");
        }
    }
    // The stream of the whole circle: the shared job comes after the private one.
    for (token, sees) in [(&peer, false), (&overseer, false), (&doer, true)] {
        let mut stream = world.get("/facts/stream").bearer(token).follow().await;
        let mut seen = Vec::new();
        while !seen.contains(&shared) {
            let (_, fact) = stream.fact().await.expect("the stream goes on");
            seen.push(fact["stream"].as_str().unwrap_or_default().to_owned());
        }
        assert_eq!(seen.contains(&id), sees, "{seen:?}");
    }
    for (method, path) in [("PATCH", ""), ("POST", "/cancel"), ("POST", "/run"), ("POST", "/retry")] {
        let body = if method == "PATCH" { json!({ "state": "running" }) } else { json!({}) };
        let call = world.call(method, &format!("/jobs/{id}{path}")).bearer(&peer).json(&body);
        call.send().await.problem(404, "not_found");
    }
}

// conforms: R110
#[tokio::test]
async fn private_job_is_seen_by_whoever_pulled_it() {
    let world = world().await;
    let worker = world.token(Role::Agent, json!({ "circle": "press" })).await;
    let other = world.token(Role::Agent, json!({ "circle": "press" })).await;
    let private = json!({ "visibility": "private", "circle": "press", "lane": "fold" });
    let id = world.create(private).await;
    let path = format!("/jobs/{id}");
    world.get(&path).bearer(&worker).send().await.problem(404, "not_found");
    let asked = json!({ "lanes": ["fold"], "wait_seconds": 0 });
    let job = world.post("/jobs/next", asked).bearer(&worker).send().await.ok()["job"].clone();
    assert_eq!(job["job_id"], json!(id));
    world.get(&path).bearer(&worker).send().await.ok();
    world.get(&path).bearer(&other).send().await.problem(404, "not_found");
}

// conforms: R110
#[tokio::test]
async fn end_of_a_private_job_is_no_event_of_its_circle() {
    let world = working_world().await;
    world.pipelines(
        "pipelines:\n  - { name: done, on-hook: job.completed, steps: [{ uses: echo }] }\n  \
         - { name: broken, on-hook: job.failed, steps: [{ uses: echo }] }\n  \
         - { name: outside, on-hook: operation.completed, steps: [{ uses: echo }] }\n",
    );
    let creator = world.token(Role::Agent, json!({ "circle": "press", "peer_id": "joan" })).await;
    let peer = world.token(Role::Peer, json!({ "circle": "press", "peer_id": "eve" })).await;
    let mut private = Vec::new();
    // The shared ones end last: when their events are there, those of the private ones would be.
    for visibility in ["private", "circle"] {
        let mut ends = Vec::new();
        for (executor, end) in [("echo", "completed"), ("fails", "failed"), ("defers", "completed")] {
            let job =
                json!({ "title": "a secret", "executor": executor, "visibility": visibility, "input": {} });
            let made = world.post("/jobs", job).bearer(&creator).send().await.ok();
            ends.push((made["job_id"].as_str().unwrap().to_owned(), executor, end));
        }
        for (id, executor, end) in &ends {
            if *executor == "defers" {
                world.until(id, "awaiting_external").await;
                // Its first poll is its last.
                world.clock.advance_seconds(60);
            }
            world.until(id, end).await;
        }
        let ids: Vec<String> = ends.into_iter().map(|(id, _, _)| id).collect();
        if visibility == "private" {
            private = ids;
            continue;
        }
        for token in [&peer, &world.admin] {
            let events = world.get("/events").bearer(token).send().await.body;
            let told = |id: &&String| events.contains(id.as_str());
            assert_eq!(ids.iter().filter(told).count(), 3, "{events}");
            assert_eq!(private.iter().filter(told).count(), 0, "{events}");
        }
    }
}

// conforms: R110
#[tokio::test]
async fn visibility_that_cannot_be_kept_is_refused() {
    let world = world().await;
    let agent = world.token(Role::Agent, json!({ "circle": "press" })).await;
    let create = async |visibility: &str, token: &str| {
        world.post("/jobs", json!({ "visibility": visibility })).bearer(token).send().await
    };
    let refused = create("private", &agent).await.problem(422, "invalid_request");
    assert_eq!(refused["errors"][0]["type"], "private_without_peer");
    assert!(refused["detail"].as_str().unwrap().contains("bound to a peer"), "{refused}");
    let refused = create("everybody", &world.admin).await.problem(422, "invalid_request");
    assert_eq!(refused["errors"][0]["loc"], json!(["body", "visibility"]));
    for visibility in ["circle", "private"] {
        let made = create(visibility, &world.admin).await.ok();
        assert_eq!(made["status"]["visibility"], Value::from(visibility));
    }
}

/// Tokens, and whether each sees the private jobs of others in this circle.
async fn viewers(world: &World) -> Vec<(String, bool)> {
    let of_press =
        async |role: Role, peer: &str| world.token(role, json!({ "circle": "press", "peer_id": peer })).await;
    vec![
        (of_press(Role::Operator, "boss").await, true),
        (world.admin.clone(), true),
        (of_press(Role::Viewer, "guest").await, false),
        (world.token(Role::Viewer, json!({ "circle": "press" })).await, false),
        (world.token(Role::Viewer, json!({})).await, false),
    ]
}

// conforms: R97 R110
#[tokio::test]
async fn ask_about_a_private_job_is_seen_by_its_parties_alone() {
    let world = world().await;
    let of_press =
        async |peer: &str| world.token(Role::Agent, json!({ "circle": "press", "peer_id": peer })).await;
    let (asker, asked, other) =
        (of_press("repow-joan").await, of_press("repow-eve").await, of_press("repow-ida").await);
    let mut asks = Vec::new();
    for visibility in ["private", "circle"] {
        let job = json!({ "title": "t", "visibility": visibility });
        let job = world.post("/jobs", job).bearer(&asker).send().await.ok()["job_id"].clone();
        let ask = json!({ "to_peer": "repow-eve", "text": "matt?", "job_id": job });
        let ask = world.post("/asks", ask).bearer(&asker).send().await.ok()["correlation_id"].clone();
        asks.push((ask.as_str().unwrap().to_owned(), job.as_str().unwrap().to_owned()));
    }
    let [(private, job), (shared, _)] = &asks[..] else { panic!("there are two") };
    let read = async |ask: &str, token: &str| world.get(&format!("/asks/{ask}")).bearer(token).send().await;
    let mut callers = viewers(&world).await;
    // Whoever is asked, and whoever asks, knows of it; the one that is asked does not see the job.
    world.get(&format!("/jobs/{job}")).bearer(&asked).send().await.problem(404, "not_found");
    callers.extend([(asker.clone(), true), (asked.clone(), true)]);
    for (token, sees) in &callers {
        let one = read(private, token).await;
        if *sees {
            assert_eq!(one.ok()["ask"]["job_id"], **job);
        } else {
            one.problem(404, "not_found");
            let absent = read("ask-0", token).await;
            assert_eq!(one.body.replace(private.as_str(), "ask-0"), absent.body);
        }
        read(shared, token).await.ok();
        for (peer, direction) in [("repow-eve", "inbound"), ("repow-joan", "outbound"), ("repow-eve", "both")]
        {
            let path = format!("/asks/pending?circle=press&peer_id={peer}&direction={direction}");
            let page = world.get(&path).bearer(token).send().await;
            if page.status == 403 {
                // A peer looks into its own box alone.
                continue;
            }
            page.ok();
            assert_eq!(page.body.contains(private.as_str()), *sees, "{path}: {}", page.body);
            assert_eq!(page.body.contains(job.as_str()), *sees, "{path}: {}", page.body);
            assert!(page.body.contains(shared.as_str()), "{path}: {}", page.body);
        }
    }
    read(private, &other).await.problem(404, "not_found");
    // Once the job is gone nobody knows any more that it was private.
    world.post(&format!("/jobs/{job}/cancel"), json!({})).send().await.ok();
    let order = Order::new(JobId::new(job.as_str()), JobCommand::Retire, Arc::from("test"));
    world.daemon.engine().execute(order).await.expect("it is over");
    for (token, sees) in &callers {
        assert_eq!(read(private, token).await.status, if *sees { 200 } else { 404 });
    }
}

// conforms: R97 R110
#[tokio::test]
async fn private_work_outside_is_in_no_list_of_its_circle() {
    let world = working_world().await;
    let creator = world.token(Role::Agent, json!({ "circle": "press", "peer_id": "repow-joan" })).await;
    let (mut private, mut shared) = (Vec::new(), Vec::new());
    for (visibility, jobs) in [(VISIBLE_TO_OWN, &mut private), (VISIBLE_TO_CIRCLE, &mut shared)] {
        let input = json!({ "ends": "never", "external_id": "r-1" });
        let job = json!({ "executor": "defers", "visibility": visibility, "input": input });
        let made = world.post("/jobs", job).bearer(&creator).send().await.ok();
        jobs.push(made["job_id"].as_str().unwrap().to_owned());
        // As an invoke writes it; none makes private work today.
        let mut spec = JobSpec::plain(Some("defers"), RetryPolicy::ONCE);
        spec.circle = Some("press".to_owned());
        spec.visibility = visibility.to_owned();
        (spec.source_kind, spec.source_id) = (Some("invoke".to_owned()), Some("async".to_owned()));
        let id = format!("work-{:032x}", world.daemon.engine().ids().next());
        let create = JobCommand::Create(Box::new(NewJob { spec, due_at: None, bodies: Vec::new() }));
        let order = Order::new(JobId::new(id.as_str()), create, Arc::from("test"));
        world.daemon.engine().execute(order).await.expect("it is new");
        jobs.push(id);
    }
    for id in private.iter().chain(&shared) {
        world.until(id, "awaiting_external").await;
    }
    let callers = viewers(&world).await;
    let check = async |path: &str, place: usize| {
        for (token, sees) in &callers {
            let page = world.get(path).bearer(token).send().await;
            page.ok();
            assert_eq!(page.body.contains(&private[place]), *sees, "{path}: {}", page.body);
            assert!(page.body.contains(&shared[place]), "{path}: {}", page.body);
        }
    };
    check("/jobs?external_job_id=r-1", 0).await;
    check("/v1/deferred-operations", 1).await;
    check("/v1/deferred", 1).await;
    world.clock.advance_seconds(86_400);
    for id in [&private[0], &shared[0]] {
        world.until(id, "expired").await;
    }
    check("/orphans", 0).await;
    check("/jobs?external_job_id=r-1", 0).await;
}
