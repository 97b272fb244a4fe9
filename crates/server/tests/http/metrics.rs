//! Figures.

use std::collections::BTreeSet;

use serde_json::json;

use crate::given::world;

#[tokio::test]
async fn figures_follow_the_conventions_and_count() {
    let world = world().await;
    world.create(json!({})).await;
    let done = world.create(json!({})).await;
    world.patch(&done, json!({ "state": "completed" })).send().await.ok();
    world.post("/jobs", json!({ "tilte": 1 })).send().await.problem(422, "invalid_request");
    let page = world.get("/metrics").send().await;
    assert_eq!(page.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    for line in [
        "longhaul_jobs{state=\"queued\"} 1",
        "longhaul_jobs{state=\"completed\"} 1",
        "longhaul_jobs{state=\"failed\"} 0",
        "longhaul_jobs_accepted_total 2",
        "longhaul_http_requests_total{operation=\"create_job\",code=\"2xx\"} 2",
        "longhaul_http_requests_total{operation=\"create_job\",code=\"4xx\"} 1",
        "longhaul_http_request_duration_seconds_count{operation=\"create_job\"} 3",
        "longhaul_http_request_duration_seconds_bucket{operation=\"create_job\",le=\"+Inf\"} 3",
        "longhaul_attempts_running 0",
    ] {
        assert!(page.body.lines().any(|found| found == line), "{line}\n{}", page.body);
    }
    let mut families = BTreeSet::new();
    for line in page.body.lines() {
        if let Some(family) = line.strip_prefix("# TYPE ") {
            let (name, kind) = family.split_once(' ').unwrap();
            assert!(name.starts_with("longhaul_"), "{name}");
            assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
            assert!(families.insert(name.to_owned()), "{name} is declared twice");
        } else if !line.starts_with('#') {
            let name = line.split(['{', ' ']).next().unwrap();
            let family =
                ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
            assert!(families.contains(family) || families.contains(name), "{line}");
            assert!(line.rsplit(' ').next().unwrap().parse::<f64>().is_ok(), "{line}");
            assert!(!line.contains("work-"), "{line}");
        }
    }
}
