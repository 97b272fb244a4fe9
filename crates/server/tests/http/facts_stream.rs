//! The ledger on the wire.

use api::Role;
use serde_json::json;

use crate::given::{working_world, world};

#[tokio::test]
async fn facts_of_a_job_are_paged_oldest_first() {
    let world = world().await;
    let id = world.create(json!({ "title": "t" })).await;
    for number in 0..4 {
        world
            .patch(&id, json!({ "state": "running", "progress_note": format!("{number}") }))
            .send()
            .await
            .ok();
    }
    let path = format!("/jobs/{id}/facts");
    let all = world.get(&path).send().await.ok();
    let facts = all["facts"].as_array().unwrap();
    assert_eq!(facts.len(), 5);
    assert_eq!(facts[0]["kind"], "job.created/1");
    assert_eq!(facts[0]["payload"]["created"]["spec"]["title"], "t");
    assert_eq!(all["next_cursor"], json!(null));
    let first = world.get(&format!("{path}?limit=3")).send().await.ok();
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = world.get(&format!("{path}?limit=3&cursor={cursor}")).send().await.ok();
    let joined: Vec<_> =
        [&first, &rest].into_iter().flat_map(|page| page["facts"].as_array().unwrap().clone()).collect();
    assert_eq!(&joined, facts);
    world.get(&format!("{path}?cursor=x")).send().await.problem(422, "invalid_cursor");
}

#[tokio::test]
async fn stream_tells_what_was_and_what_comes_and_is_resumed_by_position() {
    let world = world().await;
    let id = world.create(json!({})).await;
    let mut events = world.get("/facts/stream").follow().await;
    assert_eq!(events.headers["content-type"], "text/event-stream");
    let (first, fact) = events.fact().await.unwrap();
    assert_eq!((fact["stream"].as_str(), fact["position"].as_u64()), (Some(id.as_str()), Some(first)));
    world.patch(&id, json!({ "state": "running" })).send().await.ok();
    let (second, fact) = events.fact().await.unwrap();
    assert_eq!(fact["kind"], "job.started/1");
    assert!(second > first);
    drop(events);
    world.patch(&id, json!({ "state": "completed" })).send().await.ok();
    let mut by_query = world.get(&format!("/facts/stream?after={second}")).follow().await;
    let mut by_header =
        world.get("/facts/stream?after=0").header("last-event-id", &second.to_string()).follow().await;
    for events in [&mut by_query, &mut by_header] {
        assert_eq!(events.fact().await.unwrap().1["kind"], "job.completed/1");
    }
    world.get("/facts/stream?after=x").send().await.problem(422, "invalid_cursor");
    world.get("/facts/stream").header("last-event-id", "x").send().await.problem(422, "invalid_cursor");
}

#[tokio::test]
async fn long_ledger_comes_whole_and_in_order() {
    let world = world().await;
    let jobs: Vec<_> = (0..600).map(|_| json!({})).collect();
    world.post("/jobs/batch", json!({ "jobs": jobs })).send().await.ok();
    let mut events = world.get("/facts/stream").follow().await;
    let mut last = 0;
    for _ in 0..600 {
        let (position, _) = events.fact().await.unwrap();
        assert!(position > last);
        last = position;
    }
}

#[tokio::test]
async fn stream_of_a_circle_tells_nothing_of_other_circles() {
    let world = world().await;
    let token = world.token(Role::Viewer, json!({ "circle": "press" })).await;
    let mine = world.create(json!({ "circle": "press" })).await;
    let mut events = world.get("/facts/stream").bearer(&token).follow().await;
    let (first, fact) = events.fact().await.unwrap();
    assert_eq!(fact["stream"], mine.as_str());
    assert_eq!(fact["position"], first, "the cursor and the place are one number");
    let mut places = vec![first];
    for (others, state) in [(0, "running"), (1, "blocked"), (7, "running"), (0, "completed")] {
        for _ in 0..others {
            world.create(json!({ "circle": "bindery" })).await;
        }
        world.patch(&mine, json!({ "state": state })).send().await.ok();
        let (place, fact) = events.fact().await.unwrap();
        assert_eq!((fact["stream"].as_str(), fact["position"].as_u64()), (Some(mine.as_str()), Some(place)));
        places.push(place);
    }
    let told: Vec<u64> = {
        let page = world.get(&format!("/jobs/{mine}/facts")).bearer(&token).send().await.ok();
        page["facts"].as_array().unwrap().iter().map(|fact| fact["position"].as_u64().unwrap()).collect()
    };
    assert_eq!(told, places, "a page names the same places");
    let near = places.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 1_000).count();
    assert_eq!(near, 0, "the distance of two places tells what lies between them: {places:?}");
    for (resumed, place) in places.iter().enumerate() {
        let mut again = world.get(&format!("/facts/stream?after={place}")).bearer(&token).follow().await;
        for expected in &places[resumed + 1..] {
            assert_eq!(again.fact().await.unwrap().0, *expected);
        }
    }
    // A cursor of an older version is a plain position. It is honoured, and tells nothing exact: facts may come again.
    let mut old = world.get("/facts/stream?after=2").bearer(&token).follow().await;
    assert_eq!(old.fact().await.unwrap().0, first);
}

#[tokio::test]
async fn stream_of_one_job_tells_its_facts_alone_and_ends_when_it_is_gone() {
    let world = world().await;
    let other = world.create(json!({})).await;
    let id = world.create(json!({})).await;
    let path = format!("/facts/stream?job={id}");
    let mut events = world.get(&path).follow().await;
    let (first, fact) = events.fact().await.unwrap();
    assert_eq!((fact["stream"].as_str(), fact["version"].as_u64()), (Some(id.as_str()), Some(1)));
    world.patch(&other, json!({ "state": "running" })).send().await.ok();
    world.patch(&id, json!({ "state": "running" })).send().await.ok();
    let next = events.next().await.unwrap();
    assert!(next["data"].contains("job.started/1"), "nothing of the other job comes between: {next:?}");
    let mut resumed = world.get(&format!("{path}&after={first}")).follow().await;
    assert_eq!(resumed.fact().await.unwrap().1["kind"], "job.started/1");
    world.patch(&id, json!({ "state": "completed" })).send().await.ok();
    for events in [&mut events, &mut resumed] {
        assert_eq!(events.fact().await.unwrap().1["kind"], "job.completed/1");
    }
    world.clock.advance_seconds(8 * 86_400);
    while events.block().await.is_some() {}
    world.get(&path).send().await.problem(404, "not_found");
}

#[tokio::test]
async fn stream_of_a_job_that_is_not_yours_is_not_there() {
    let world = world().await;
    let token = world.token(Role::Viewer, json!({ "circle": "press" })).await;
    let theirs = world.create(json!({ "circle": "bindery" })).await;
    let nothing = "work-00000000000000000000000000000000";
    for id in [theirs.as_str(), nothing, "op-1", "x"] {
        let answer = world.get(&format!("/facts/stream?job={id}")).bearer(&token).send().await;
        assert_eq!(answer.problem(404, "not_found")["detail"], format!("No work: {id}"));
    }
}

#[tokio::test]
async fn quiet_stream_shows_that_it_lives_and_ends_with_its_token_or_the_server() {
    let world = world().await;
    let made = world.post("/tokens", json!({ "role": "viewer" })).send().await.ok();
    let mut events = world.get("/facts/stream").bearer(made["secret"].as_str().unwrap()).follow().await;
    let mut other = world.get("/facts/stream").follow().await;
    assert!(events.block().await.unwrap().starts_with(": the ledger follows"));
    assert_eq!(events.block().await.unwrap(), ": heartbeat\n\n");
    let path = format!("/tokens/{}", made["token"]["id"].as_str().unwrap());
    world.call("DELETE", &path).send().await.ok();
    while events.block().await.is_some() {}
    world.stop_serving().await;
    while other.block().await.is_some() {}
}

#[tokio::test]
async fn stream_of_a_job_tells_how_the_work_outside_goes_that_it_waits_for() {
    let world = working_world().await;
    let script = json!({ "polls": 2, "hint": true });
    let id = world.create(json!({ "executor": "defers", "input": script })).await;
    world.until(&id, "awaiting_external").await;
    let mut events = world.get(&format!("/facts/stream?job={id}")).follow().await;
    let mut kinds = Vec::new();
    while kinds.last().is_none_or(|kind| kind != "job.deferred/1") {
        kinds.push(events.fact().await.unwrap().1["kind"].as_str().unwrap().to_owned());
    }
    for page in 1..=2 {
        // A stream that has told all facts watches; a heartbeat shows that it does.
        events.until("heartbeat").await;
        world.polled(&id, page).await;
        let told = events.named("outside").await;
        assert_eq!((&told["polls"], &told["progress_hint"]), (&json!(page), &json!(format!("page {page}"))));
    }
    world.clock.advance_seconds(10);
    let (_, fact) = events.fact().await.unwrap();
    assert_eq!(fact["kind"], "job.completed/1");
}
