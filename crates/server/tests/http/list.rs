//! Lists of jobs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::given::{World, world};

fn ids(list: &Value) -> Vec<String> {
    let jobs = list["work"].as_array().expect("a list").iter();
    jobs.map(|job| job["job_id"].as_str().expect("it has an id").to_owned()).collect()
}

async fn created(world: &World, bodies: &[Value]) -> Vec<String> {
    let mut ids = Vec::new();
    for body in bodies {
        world.clock.advance_seconds(1);
        ids.push(world.create(body.clone()).await);
    }
    ids
}

// conforms: R13 R95
#[tokio::test]
async fn list_is_filtered_by_state_owner_creator_session_and_circle_together() {
    let world = world().await;
    let jobs = created(
        &world,
        &[
            json!({ "owner_peer_id": "a", "circle": "x" }),
            json!({ "owner_peer_id": "a", "circle": "y", "created_by_peer_id": "c" }),
            json!({ "owner_peer_id": "b", "circle": "x", "repowire_session_id": "s" }),
            json!({ "repowire_session_id": "s" }),
        ],
    )
    .await;
    world.patch(&jobs[2], json!({ "state": "running" })).send().await.ok();
    assert_eq!(world.status(&jobs[3]).await["owner_peer_id"], json!(null), "nobody has it");
    for (query, expected) in [
        ("", vec![3, 2, 1, 0]),
        ("?owner_peer_id=a", vec![1, 0]),
        ("?owner_peer_id=a&circle=x", vec![0]),
        ("?created_by_peer_id=c", vec![1]),
        ("?repowire_session_id=s", vec![3, 2]),
        ("?repowire_session_id=s&owner_peer_id=b", vec![2]),
        ("?state=running", vec![2]),
        ("?state=queued&circle=x", vec![0]),
        ("?state=completed", vec![]),
        ("?view=summary&circle=x", vec![2, 0]),
    ] {
        let expected: Vec<String> = expected.into_iter().map(|index: usize| jobs[index].clone()).collect();
        for route in ["/jobs", "/work"] {
            let list = world.get(&format!("{route}{query}")).send().await.ok();
            assert_eq!(ids(&list), expected, "{route}{query}");
            assert_eq!(list["recurring"], json!([]));
            assert_eq!(list["next_cursor"], json!(null));
        }
    }
}

#[tokio::test]
async fn unknown_state_or_view_is_refused() {
    let world = world().await;
    let problem = world.get("/jobs?state=active").send().await.problem(400, "invalid_value");
    assert!(problem["detail"].as_str().unwrap().starts_with("state must be one of ['queued', "));
    assert!(problem["detail"].as_str().unwrap().ends_with("; got 'active'"));
    let problem = world.get("/jobs?view=tiny").send().await.problem(400, "invalid_value");
    assert_eq!(problem["detail"], "view must be one of: full, summary");
    for query in ["limit=0", "limit=1001", "limit=x", "limit=-1"] {
        world.get(&format!("/jobs?{query}")).send().await.problem(422, "invalid_request");
    }
    for cursor in ["x", "1.2", "x.work-1", ".work-1"] {
        world.get(&format!("/jobs?cursor={cursor}")).send().await.problem(422, "invalid_cursor");
    }
}

#[tokio::test]
async fn pages_follow_each_other_without_gap_or_repetition_also_when_times_are_equal() {
    let world = world().await;
    let mut jobs = BTreeSet::new();
    for index in 0..7 {
        if index == 4 {
            world.clock.advance_seconds(1);
        }
        jobs.insert(world.create(json!({})).await);
    }
    let mut seen = Vec::new();
    let mut cursor = String::new();
    let mut pages = 0;
    loop {
        let list = world.get(&format!("/jobs?limit=2{cursor}")).send().await.ok();
        seen.extend(ids(&list));
        pages += 1;
        match list["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!((pages, seen.len()), (4, 7));
    assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), jobs);
}

#[tokio::test]
async fn a_page_has_a_hundred_rows_unless_asked_otherwise() {
    let world = world().await;
    let jobs: Vec<Value> = (0..101).map(|_| json!({})).collect();
    world.post("/jobs/batch", json!({ "jobs": jobs })).send().await.ok();
    let list = world.get("/jobs").send().await.ok();
    assert_eq!(ids(&list).len(), 100);
    assert!(list["next_cursor"].is_string());
    assert_eq!(ids(&world.get("/jobs?limit=1000").send().await.ok()).len(), 101);
}

#[tokio::test]
async fn summary_keeps_the_row_and_leaves_out_what_is_large() {
    let world = world().await;
    let body = json!({
        "title": "t", "prompt": "long", "path": "/srv", "backend": "pi", "request": { "x": 1 },
        "due_at": "2026-02-01T00:00:00Z", "provenance": { "links": {} },
    });
    world.create(body).await;
    let summary = world.get("/jobs?view=summary").send().await.ok()["work"][0].clone();
    assert_eq!(
        summary["execution"],
        json!({
            "target": { "path": "/srv", "backend": "pi" }, "delivery": { "kind": "ask" },
            "process_scope": "per_fire", "continuity": "fresh",
        })
    );
    assert_eq!(summary["due_at"], "2026-02-01T00:00:00Z");
    for left_out in
        ["request", "provenance", "progress", "progress_events", "runner", "protocol_cancel", "links"]
    {
        assert!(summary.get(left_out).is_none(), "{left_out}");
    }
    assert_eq!(summary.as_object().unwrap().len(), 35 - 7);
}

#[tokio::test]
async fn a_full_page_is_cut_where_its_bodies_grow_too_large_and_goes_on_from_there() {
    let world = world().await;
    let prompt = "x".repeat(1_000_000);
    let mut jobs = BTreeSet::new();
    for _ in 0..10 {
        jobs.insert(world.create(json!({ "prompt": prompt })).await);
    }
    let first = world.get("/jobs").send().await.ok();
    let shown = ids(&first);
    assert!(shown.len() < 10, "{}", shown.len());
    let next = first["next_cursor"].as_str().unwrap();
    let rest = ids(&world.get(&format!("/jobs?cursor={next}")).send().await.ok());
    assert_eq!(shown.into_iter().chain(rest).collect::<BTreeSet<_>>(), jobs);
}

#[tokio::test]
async fn jobs_are_listed_by_their_tag() {
    let world = world().await;
    let tagged = world.create(json!({ "tags": ["a%b", "spring"] })).await;
    let other = world.create(json!({ "tags": ["axb"], "circle": "press" })).await;
    world.create(json!({ "title": "\"spring\"" })).await;
    let ids = async |query: &str| {
        let page = world.get(&format!("/jobs?{query}")).send().await.ok();
        let work = page["work"].as_array().expect("a list").clone();
        work.iter().map(|job| job["job_id"].as_str().expect("an id").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids("tag=spring").await, [tagged.as_str()]);
    assert_eq!(ids("tag=a%25b").await, [tagged.as_str()]);
    assert_eq!(ids("tag=axb&circle=press").await, [other.as_str()]);
    assert_eq!(ids("tag=axb&state=queued").await, [other.as_str()]);
    assert!(ids("tag=axb&state=failed").await.is_empty());
    assert!(ids("tag=spri").await.is_empty());
}
