//! Probes, load and the end.

use serde_json::json;

use crate::given::world;

#[tokio::test]
async fn probes_need_no_token() {
    let world = world().await;
    assert_eq!(world.get("/healthz").anonymous().send().await.ok(), json!({ "status": "ok" }));
    assert_eq!(world.get("/readyz").anonymous().send().await.ok(), json!({ "status": "ready" }));
}

// conforms: R57
#[tokio::test]
async fn status_reads_are_stable() {
    let world = world().await;
    let body = r#"{"title":"t","prompt":"p","request":{"z":1,"a":2}}"#;
    let created = world.call("POST", "/jobs").text(body).send().await.ok();
    let id = created["job_id"].as_str().unwrap();
    let path = format!("/jobs/{id}");
    let first = world.get(&path).send().await.body;
    world.clock.advance_seconds(60);
    assert_eq!(world.get(&path).send().await.body, first);
    assert!(first.contains(r#"{"z":1,"a":2,"execution""#), "keys stay in the order of the caller: {first}");
}

#[tokio::test]
async fn job_that_was_answered_for_is_in_the_file() {
    let world = world().await;
    let id = world.create(json!({ "title": "t" })).await;
    let copy = world.directory.path().join("copy.sqlite");
    for end in ["", "-wal"] {
        let from = world.directory.path().join(format!("longhaul.sqlite{end}"));
        let to = world.directory.path().join(format!("copy.sqlite{end}"));
        if from.exists() {
            std::fs::copy(from, to).unwrap();
        }
    }
    let connection = store_sql::open_for_reading(&copy).unwrap();
    let facts = store_sql::facts_after(&connection, 0).unwrap();
    assert!(facts.iter().any(|fact| fact.stream == id));
}

#[tokio::test]
async fn server_that_stops_takes_nothing_more_in() {
    let world = world().await;
    let address = world.address.clone();
    world.stop_serving().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn when_too_much_waits_new_work_is_sent_away_until_later_and_what_waited_is_kept() {
    let world = world().await;
    let file = rusqlite::Connection::open(world.directory.path().join("longhaul.sqlite")).unwrap();
    file.execute_batch("BEGIN IMMEDIATE").unwrap();
    let jobs: Vec<_> = (0..1_000).map(|_| json!({})).collect();
    let flood = (0..6).map(|_| world.post("/jobs/batch", json!({ "jobs": jobs })).send());
    let flood = futures::future::join_all(flood);
    let one = async {
        // Asked again and again until the flood has filled the queue.
        let answer = loop {
            let ask = world.post("/jobs", json!({})).send();
            match tokio::time::timeout(std::time::Duration::from_millis(50), ask).await {
                Ok(answer) if answer.status == 503 => break answer,
                Ok(_) | Err(_) => {}
            }
        };
        file.execute_batch("ROLLBACK").unwrap();
        answer
    };
    let (answers, sent_away) = tokio::join!(flood, one);
    sent_away.problem(503, "busy");
    assert_eq!(sent_away.headers["retry-after"], "1");
    let accepted: u64 = answers.iter().map(|answer| answer.ok()["accepted"].as_u64().unwrap()).sum();
    assert!((1_000..6_000).contains(&accepted), "{accepted}");
    let metrics = world.get("/metrics").send().await.body;
    let line =
        metrics.lines().find(|line| line.starts_with("longhaul_jobs{state=\"queued\"}")).unwrap().to_owned();
    let kept: u64 = line.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(kept >= accepted, "{kept} of {accepted}");
}
