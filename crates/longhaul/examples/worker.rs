//! A worker in Rust: pulls jobs of the lane "words" and counts the words of their input.
//!
//! Usage: `LONGHAUL_URL=http://127.0.0.1:7420 LONGHAUL_TOKEN=... cargo run --example worker`

use std::env::var;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::{Value, json};

fn post(path: &str, body: &Value) -> anyhow::Result<Value> {
    let request = ureq::post(format!("{}{path}", var("LONGHAUL_URL")?))
        .header("Authorization", format!("Bearer {}", var("LONGHAUL_TOKEN")?))
        .header("Content-Type", "application/json");
    Ok(serde_json::from_str(&request.send(body.to_string())?.body_mut().read_to_string()?)?)
}

fn main() -> anyhow::Result<()> {
    let asked = json!({ "worker_id": format!("rust-{}", std::process::id()), "lanes": ["words"] });
    loop {
        let job = post("/jobs/next", &asked)?["job"].take();
        let Some(id) = job["job_id"].as_str() else { continue };
        let attempt = json!({ "attempt_id": job["attempt_id"] });
        let (done, is_done) = channel::<()>();
        let every = Duration::from_secs(job["heartbeat_every_seconds"].as_u64().unwrap_or(10));
        let (beat, told) = (format!("/jobs/{id}/heartbeat"), attempt.clone());
        // Is heard of while the work goes on; a refused heartbeat ends it.
        std::thread::spawn(move || {
            while is_done.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                if post(&beat, &told).is_err() {
                    std::process::exit(1);
                }
            }
        });
        let words = job["input"]["text"].as_str().unwrap_or_default().split_whitespace().count();
        drop(done);
        let mut result = attempt;
        result["result"] = json!({ "words": words });
        match post(&format!("/jobs/{id}/complete"), &result) {
            // It took too long, and somebody else has it by now.
            Err(error) if matches!(error.downcast_ref(), Some(ureq::Error::StatusCode(409))) => {}
            other => drop(other?),
        }
    }
}
