//! A worker in Rust: pulls jobs of the lane "words" and counts the words of their input.
//!
//! With "seconds" in the input it takes that long, so that a cancel can be tried.
//! Usage: `LONGHAUL_URL=http://127.0.0.1:7420 LONGHAUL_TOKEN=... cargo run --example worker`

use std::env::var;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{sleep, spawn};
use std::time::Duration;

use serde_json::{Value, json};
use ureq::RequestBuilder;
use ureq::typestate::WithBody;

const PAUSE: Duration = Duration::from_secs(2);

type Method = fn(String) -> RequestBuilder<WithBody>;
const POST: Method = ureq::post::<String>;
const PATCH: Method = ureq::patch::<String>;

fn try_send(method: Method, path: &str, body: &Value) -> anyhow::Result<Value> {
    let request = method(format!("{}{path}", var("LONGHAUL_URL")?))
        .header("Authorization", format!("Bearer {}", var("LONGHAUL_TOKEN")?))
        .header("Content-Type", "application/json");
    Ok(serde_json::from_str(&request.send(body.to_string())?.body_mut().read_to_string()?)?)
}

/// The answer, however long the daemon is away; none if the daemon refuses.
fn send(method: Method, path: &str, body: &Value) -> Option<Value> {
    loop {
        match try_send(method, path, body) {
            Ok(answer) => return Some(answer),
            Err(error) => {
                eprintln!("{path}: {error}");
                if matches!(error.downcast_ref(), Some(ureq::Error::StatusCode(400..500))) {
                    return None;
                }
            }
        }
        sleep(PAUSE);
    }
}

/// The work; none if it was stopped before its end, which is when the other end of `stop` is gone.
fn count_words(input: &Value, stop: &Receiver<()>) -> Option<usize> {
    let time = Duration::from_secs(input["seconds"].as_u64().unwrap_or_default());
    let ended = stop.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
    ended.then(|| input["text"].as_str().unwrap_or_default().split_whitespace().count())
}

fn attempt(mut job: Value) {
    let path = format!("/jobs/{}", job["job_id"].as_str().unwrap_or_default());
    let mut report = json!({ "attempt_id": job["attempt_id"] });
    let every = Duration::from_secs(job["heartbeat_every_seconds"].as_u64().unwrap_or(10));
    let ((stop, is_stopped), (end, ended)) = (channel::<()>(), channel());
    let input = job["input"].take();
    spawn(move || end.send(count_words(&input, &is_stopped)));
    let words = loop {
        match ended.recv_timeout(every) {
            Ok(words) => break words,
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {}
        }
        // A refused heartbeat means that somebody else has the job, or that it is over.
        let Some(heard) = send(POST, &format!("{path}/heartbeat"), &report) else { return };
        if heard["cancel_requested"] == true {
            drop(stop);
            let _ = ended.recv();
            report["state"] = json!("cancelled");
            send(PATCH, &path, &report);
            return;
        }
    };
    report["result"] = json!({ "words": words });
    // Refused with 409 if it took too long, and somebody else has the job by now.
    send(POST, &format!("{path}/complete"), &report);
}

fn main() {
    let asked = json!({ "worker_id": format!("rust-{}", std::process::id()), "lanes": ["words"] });
    loop {
        match send(POST, "/jobs/next", &asked) {
            None => sleep(PAUSE),
            Some(mut pulled) if pulled["job"].is_object() => attempt(pulled["job"].take()),
            Some(_) => {}
        }
    }
}
