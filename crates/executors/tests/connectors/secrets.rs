//! A secret that a service echoes wherever it can is seen nowhere: not in facts, views, bodies or log lines.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use domain::job::JobStateName;
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use crate::service::{Service, reply};
use crate::submits::connector;
use crate::world::{TOKEN, World};

/// Log lines, kept.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// The secret in every way that a service may write it.
fn echoes() -> String {
    let percent = TOKEN.bytes().map(|byte| format!("%{byte:02x}")).collect::<Vec<_>>().concat();
    let basic = STANDARD.encode(format!("user:{TOKEN}"));
    format!(
        "{TOKEN} {percent} {} {basic} {}",
        STANDARD.encode(TOKEN),
        URL_SAFE_NO_PAD.encode(format!("x{TOKEN}"))
    )
}

fn assert_unseen(text: &str) {
    for form in echoes().split(' ') {
        assert!(!text.contains(form), "{form} is seen");
    }
    assert!(!text.contains("t0p/s3cret"));
    assert!(!text.contains("dDBwL3MzY3JldC"), "in base64");
}

fn logged() -> (Lines, tracing::subscriber::DefaultGuard) {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(lines.clone())
        .finish();
    (lines, tracing::subscriber::set_default(subscriber))
}

#[tokio::test]
async fn a_secret_that_is_echoed_everywhere_is_seen_nowhere() {
    let (lines, _guard) = logged();
    let polls = AtomicUsize::new(0);
    let service = Service::start(move |asked| {
        let said = format!("{} {}", echoes(), asked.header("authorization").unwrap());
        let answer = |status: u16, state: &str| {
            let body = json!({ "id": "r-1", "state": state, "stage": said, "message": said, "output": { "echo": said, "list": [said] } });
            reply(status, body)
                .with("X-Echo", said.replace('\n', " "))
                .with("Location", format!("/at?token={TOKEN}"))
        };
        match (asked.method.as_str(), polls.load(Ordering::SeqCst)) {
            ("POST", _) => answer(202, "queued"),
            ("DELETE", _) => answer(409, "queued"),
            (_, poll) => {
                polls.fetch_add(1, Ordering::SeqCst);
                match poll {
                    0 => answer(200, "rendering"),
                    1 => answer(500, "oops"),
                    2 => answer(200, TOKEN),
                    _ => answer(200, "done"),
                }
            }
        }
    });
    let world = World::new(&connector(&service, "  idempotent: true\n  keep: { headers: answer.headers }"));
    let id = world.create(r#"{"scene":"forest"}"#, 1).await;
    world.until_state(&id, JobStateName::AwaitingExternal).await;
    world.next_poll(&id).await;
    assert!(world.operation(&id).progress_hint.unwrap().contains("[secret token]"));
    for _ in 0..3 {
        world.next_poll(&id).await;
    }
    let done = world.until_state(&id, JobStateName::Completed).await;
    assert!(world.result(&done)["echo"].as_str().unwrap().contains("[secret token]"));
    // The service had it, and in a header, not only in our hopes.
    assert!(service.asked().iter().all(|asked| asked.header("authorization").unwrap().contains(TOKEN)));
    assert_unseen(&world.everything());
    assert_unseen(&String::from_utf8_lossy(&lines.0.lock().unwrap()));
}

#[tokio::test]
async fn refusals_failures_and_cancels_do_not_tell_it_either() {
    let (lines, _guard) = logged();
    let service = Service::start(|asked| match (asked.method.as_str(), asked.path.as_str()) {
        ("POST", "/refused") => reply(400, format!("{} {}", "x".repeat(480), echoes())),
        ("POST", _) => reply(202, json!({ "id": "r-1", "state": "queued" })),
        ("DELETE", _) => reply(409, echoes()),
        _ => reply(200, json!({ "state": "broken", "message": echoes() })),
    });
    let yaml = connector(&service, "  idempotent: true");
    let refused = World::new(&yaml.replace("/renders\n", "/refused\n"));
    let id = refused.create(r#"{"scene":"forest"}"#, 1).await;
    refused.until_state(&id, JobStateName::Failed).await;
    assert_unseen(&refused.everything());
    let world = World::new(&yaml);
    let id = world.create(r#"{"scene":"forest"}"#, 1).await;
    world.until_state(&id, JobStateName::AwaitingExternal).await;
    world.cancel(&id).await;
    world.until(|world| world.operation(&id).cancel.is_some_and(|cancel| !cancel.answers.is_empty())).await;
    world.next_poll(&id).await;
    assert_unseen(&world.everything());
    assert_unseen(&String::from_utf8_lossy(&lines.0.lock().unwrap()));
}

#[tokio::test]
async fn a_secret_in_a_url_is_not_kept_and_not_told_when_the_url_fails() {
    let (lines, _guard) = logged();
    let service = Service::start(|asked| match asked.method.as_str() {
        "POST" => reply(202, json!({ "id": "r-1", "state": "queued" })),
        _ => reply(302, "").with("Location", format!("http://127.0.0.1:1/?{}", asked.path)),
    });
    let yaml = connector(&service, "  idempotent: true")
        .replace("/renders\n", "/renders/${secrets.token}?key=${uri(secrets.token)}\n")
        .replace("${operation.remote_id}\n", "${operation.remote_id}?key=${secrets.token}\n");
    let world = World::new(&yaml);
    let id = world.create(r#"{"scene":"forest"}"#, 1).await;
    world.until_state(&id, JobStateName::AwaitingExternal).await;
    let operation = world.next_poll(&id).await;
    assert_eq!(operation.last_error.unwrap().code, "refused_address");
    assert!(service.asked()[0].path.contains("s3cret"));
    assert_unseen(&world.everything());
    assert_unseen(&String::from_utf8_lossy(&lines.0.lock().unwrap()));
}
