//! A service that echoes its request in every error, in its progress and in its summaries: the private input is seen by those who may read the job, and nowhere else.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::given::{Daemon, create, ended, expect, longhaul, show, until_told, verify};
use crate::handed_over::call;

/// Stands in the input of the job alone.
const CANARY: &str = "canary 7f3a of the patient";
/// The same, in the form of a code.
const WORD: &str = "PATIENT-7F3A-SSN";

/// Takes work under an id that it was given, and answers every question and every cancel with its input and an error. Work that is to be
/// told of ends at the second question about it.
fn serve(listener: &TcpListener) {
    let told = &*Box::leak(Box::new(AtomicUsize::new(0)));
    for stream in listener.incoming().map_while(Result::ok) {
        std::thread::spawn(move || answer(stream, told));
    }
}

fn answer(mut stream: TcpStream, told_of: &AtomicUsize) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let header = header.to_ascii_lowercase();
        if let Some(told) = header.strip_prefix("content-length:") {
            length = told.trim().parse().ok()?;
        }
        if header.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let said = String::from_utf8_lossy(&body).into_owned();
    let told = format!("bad request: {said}");
    let mut words = line.split(' ');
    let (status, body) = match (words.next()?, words.next()?) {
        ("POST", _) if said.contains("refuse with a sentence") => {
            (400, json!({ "error": told, "code": told }))
        }
        ("POST", _) if said.contains("refuse with the input") => {
            (400, json!({ "error": told, "code": WORD }))
        }
        ("POST", _) if said.contains("refuse with a code") => {
            (400, json!({ "error": told, "code": "no_paper" }))
        }
        ("POST", _) if said.contains("fail with the input") => {
            (202, json!({ "id": "f-1", "state": "running" }))
        }
        ("POST", _) if said.contains("tell of the input") => {
            let stage = format!("took {CANARY}");
            (202, json!({ "id": "t-1", "state": "running", "stage": stage, "firm": format!("holds {WORD}") }))
        }
        ("POST", _) if said.contains("pause") => (202, json!({ "id": "p-1", "state": "running" })),
        ("POST", _) if said.contains("state with the input") => {
            (202, json!({ "id": "w-1", "state": "running" }))
        }
        ("POST", _) => (202, json!({ "id": "r-1", "state": "running" })),
        ("DELETE", _) => (409, json!({ "error": format!("cannot stop {CANARY}") })),
        (_, path) if path.ends_with("t-1") && told_of.fetch_add(1, Ordering::SeqCst) == 0 => {
            let progress = json!({ "percent": 40, "of": [CANARY], WORD: 1 });
            (
                200,
                json!({ "id": "t-1", "state": "running", "stage": format!("at {CANARY}"), "progress": progress }),
            )
        }
        (_, path) if path.ends_with("t-1") => {
            (200, json!({ "id": "t-1", "state": "done", "summary": format!("has {CANARY}, {WORD}") }))
        }
        (_, path) if path.ends_with("f-1") => {
            (200, json!({ "id": "f-1", "state": "failed", "error": format!("lost {CANARY}"), "code": WORD }))
        }
        (_, path) if path.ends_with("p-1") => (200, json!({ "id": "p-1", "state": "paused" })),
        (_, path) if path.ends_with("w-1") => (200, json!({ "id": "w-1", "state": WORD })),
        _ => (500, json!({ "error": format!("cannot render {CANARY}"), "code": WORD })),
    };
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).ok()
}

/// A daemon with a connector to such a service, which gives work up after four polls.
fn daemon(dir: &Path) -> Daemon {
    let listener = TcpListener::bind("127.0.0.1:0").expect("what the test needs is there");
    let address = listener.local_addr().expect("what the test needs is there");
    std::thread::spawn(move || serve(&listener));
    let connector = dir.join("echoing.yaml");
    let text = format!(
        r#"
name: echoing
execution_mode_support: either
allow: ["{address}"]
policy: {{ max_attempts: 4, default_retry_after_seconds: 1 }}
submit:
  url: http://{address}/jobs
  body: {{ $eval: input }}
  accept: [202]
  idempotent: true
status:
  url: http://{address}/jobs/${{operation.remote_id}}
cancel:
  method: DELETE
  url: http://{address}/jobs/${{operation.remote_id}}
  confirmed: [204]
read:
  id: answer.body.id
  status: answer.body.state
  error: answer.body.error
  error_code: answer.body.code
  progress_text: answer.body.stage
  progress: answer.body.progress
  summary: answer.body.summary
  not_cancelable_because: answer.body.firm
states: {{ running: running, failed: failed, done: completed }}
"#
    );
    std::fs::write(&connector, text).expect("what the test needs is there");
    let connector = connector.to_str().expect("what the test needs is there");
    expect(0, &longhaul(dir, &["connector", "check", connector]));
    Daemon::start_with(dir, &["--connector", connector])
}

/// What the daemon answers to an operator.
fn get(dir: &Path, daemon: &Daemon, path: &str) -> String {
    let token = std::fs::read_to_string(dir.join("admin.token")).expect("what the test needs is there");
    let request = ureq::get(format!("{}{path}", daemon.url));
    let request = request.header("authorization", format!("Bearer {}", token.trim()));
    request
        .call()
        .expect("what the test needs is there")
        .body_mut()
        .read_to_string()
        .expect("what the test needs is there")
}

/// Gives the work out for a caller who takes a handle on it.
fn deferred(dir: &Path, input: &Value) -> Value {
    let body = json!({ "input": input, "timing": { "mode": "async" } });
    let (status, handle) = call(dir, "/v1/capabilities/echoing/invoke", &body);
    assert_eq!(status, 202, "{handle}");
    handle
}

/// What is shown of a handle: its status, what operators see of it, and the list of all.
#[track_caller]
fn assert_handle_is_not_telling(dir: &Path, daemon: &Daemon, handle: &Value) {
    let status = handle["status_href"].as_str().expect("it has one");
    let detail = status.strip_suffix("/status").expect("it is its status");
    for path in [status, detail, "/v1/deferred-operations"] {
        let seen = get(dir, daemon, path);
        let id = handle["operation/id"].as_str().expect("it has one");
        assert!(seen.contains(id), "{path}: {seen}");
        for private in [CANARY, WORD] {
            assert!(!seen.contains(private), "{private} in {path}: {seen}");
        }
    }
}

/// The jobs of the list with everything but what their creators sent.
fn listed_in_full(dir: &Path, daemon: &Daemon) -> String {
    let mut list: Value = serde_json::from_str(&get(dir, daemon, "/jobs?view=full")).expect("it is JSON");
    for job in list["work"].as_array_mut().expect("it is a list") {
        for field in ["request", "execution"] {
            assert!(job[field].is_object(), "{job}");
            job[field].take();
        }
    }
    list.to_string()
}

/// So many facts of the stream of all, from the first one on.
fn streamed(dir: &Path, daemon: &Daemon, facts: usize) -> String {
    let token = std::fs::read_to_string(dir.join("admin.token")).expect("what the test needs is there");
    let request = ureq::get(format!("{}/facts/stream?after=0", daemon.url));
    let request = request.header("authorization", format!("Bearer {}", token.trim()));
    let stream = request.call().expect("it is answered").into_body().into_reader();
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    lines.filter(|line| line.starts_with("data:")).take(facts).collect::<Vec<_>>().join("\n")
}

/// Every list, export, stream and log.
#[track_caller]
fn assert_not_public(dir: &Path, daemon: &Daemon, jobs: &[&str]) {
    let mut seen = vec![daemon.log(), listed_in_full(dir, daemon)];
    for path in ["/orphans", "/jobs?view=summary", "/metrics", "/events", "/runs"] {
        seen.push(get(dir, daemon, path));
    }
    for job in jobs {
        seen.push(get(dir, daemon, &format!("/jobs/{job}/facts")));
    }
    let facts = expect(0, &longhaul(dir, &["export", "facts"]));
    let stream = streamed(dir, daemon, facts.lines().count());
    for job in jobs {
        assert!(stream.contains(job) && facts.contains(job), "{job}: {stream}");
    }
    let productions = expect(0, &longhaul(dir, &["export", "productions"]));
    assert!(productions.contains("service_failed"), "{productions}");
    seen.extend([facts, stream, productions]);
    for text in seen {
        for private in [CANARY, WORD] {
            assert!(!text.contains(private), "{private}: {text}");
        }
    }
}

/// Whether it stands anywhere in the store's files.
fn is_stored(dir: &Path, private: &str) -> bool {
    let files = std::fs::read_dir(dir)
        .expect("what the test needs is there")
        .map(|file| file.expect("what the test needs is there").path());
    let stores = files.filter(|path| {
        path.file_name().expect("what the test needs is there").to_string_lossy().contains("sqlite")
    });
    stores
        .map(|path| std::fs::read(path).expect("what the test needs is there"))
        .any(|bytes| bytes.windows(private.len()).any(|window| window == private.as_bytes()))
}

/// A job that the service refuses, or takes and fails, as the note says.
fn noted(dir: &Path, note: &str) -> String {
    let input = json!({ "patient": CANARY, "number": WORD, "note": note }).to_string();
    create(dir, &["another", "--executor", "echoing", "--max-attempts", "1", "--input", &input])
}

/// Work whose service repeats the input in all that it says of how it goes; its job.
fn told_of(dir: &Path, daemon: &Daemon) -> String {
    let job = noted(dir, "tell of the input");
    let result = ended(dir, &job, "completed");
    let not_shown = "the text of the service repeats the job's input and is not shown";
    assert_eq!(result["summary"], not_shown);
    let facts = expect(0, &longhaul(dir, &["export", "facts"]));
    let operation = facts.lines().filter(|line| line.contains("external_production") && line.contains("t-1"));
    assert!(operation.clone().count() >= 1, "{facts}");
    assert!(facts.contains(r#""percent":40"#), "numbers of the progress stay: {facts}");
    // The reason and the hint of the submit, the hint and the text of the progress, and the summary twice.
    assert!(facts.matches(not_shown).count() >= 5, "{facts}");
    assert_not_public(dir, daemon, &[&job]);
    job
}

// conforms: O52 O79 O133
#[test]
fn echoed_input_is_private_and_goes_with_a_purge() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = daemon(dir.path());
    let handle = deferred(dir.path(), &json!({ "patient": CANARY, "number": WORD }));
    let shown = handle.to_string();
    let connector = std::fs::read_to_string(dir.path().join("echoing.yaml")).unwrap();
    let allowed = connector.split_once("allow: [\"").and_then(|(_, rest)| rest.split_once('"')).unwrap().0;
    for private in [CANARY, WORD, allowed] {
        assert!(!shown.contains(private), "{private}: {shown}");
    }
    let id = handle["audit/outcome-ref"].as_str().unwrap().to_owned();
    let mut jobs = vec![id.clone()];
    for (note, code) in [
        ("refuse with a sentence", "submit_refused"),
        ("refuse with the input", "submit_refused"),
        ("refuse with a code", "no_paper"),
        ("fail with the input", "service_failed"),
    ] {
        let job = noted(dir.path(), note);
        let error = ended(dir.path(), &job, "failed")["error"].clone();
        assert_eq!(error["code"], code, "{note}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(CANARY), "who may read the result reads why: {message}");
        let facts = get(dir.path(), &daemon, &format!("/jobs/{job}/facts"));
        assert!(facts.contains(code), "{note}: {facts}");
        jobs.push(job);
    }
    jobs.push(told_of(dir.path(), &daemon));
    let asked = |status: &Value| status["runner"]["outside"]["last_error"]["in_row"].as_u64() >= Some(1);
    until_told(dir.path(), &id, "polled in vain", asked);
    // Who may read the job reads what its service said.
    let error = show(dir.path(), &id)["runner"]["outside"]["last_error"].clone();
    assert_eq!(error["code"], "service_error");
    assert!(error["message"].as_str().unwrap().contains(CANARY), "{error}");
    assert_handle_is_not_telling(dir.path(), &daemon, &handle);
    expect(0, &longhaul(dir.path(), &["jobs", "cancel", &id]));
    let stays = |status: &Value| status["state"] != "awaiting_external";
    until_told(dir.path(), &id, "given up", stays);
    let why = expect(0, &longhaul(dir.path(), &["jobs", "why", &id]));
    assert!(why.contains(CANARY), "{why}");
    assert_handle_is_not_telling(dir.path(), &daemon, &handle);
    let jobs: Vec<&str> = jobs.iter().map(String::as_str).collect();
    assert_not_public(dir.path(), &daemon, &jobs);
    assert!([CANARY, WORD].iter().all(|text| is_stored(dir.path(), text)), "it is kept until a purge");
    for job in jobs {
        expect(0, &longhaul(dir.path(), &["purge", job]));
        let told =
            [&["jobs", "why", job][..], &["jobs", "show", job, "--json"], &["jobs", "result", job, "--json"]];
        for verb in told {
            let said = expect(0, &longhaul(dir.path(), verb));
            assert!(!said.contains(CANARY) && !said.contains(WORD), "{verb:?}: {said}");
        }
    }
    daemon.signal(rustix::process::Signal::TERM);
    assert!(daemon.wait().success());
    for text in [CANARY, WORD] {
        assert!(!is_stored(dir.path(), text), "nothing of {text:?} is left in the files");
    }
    verify(dir.path());
}

// conforms: O79
#[test]
fn state_that_no_connector_lists_is_named_to_readers_of_the_job() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = daemon(dir.path());
    let mut jobs = Vec::new();
    for (note, word) in [("pause", "paused"), ("state with the input", WORD)] {
        let id = noted(dir.path(), note);
        let asked = |status: &Value| status["runner"]["outside"]["last_error"]["in_row"].as_u64() >= Some(1);
        let status = until_told(dir.path(), &id, "polled in vain", asked);
        let error = &status["runner"]["outside"]["last_error"];
        assert_eq!(error["code"], "status-payload-invalid", "{error}");
        let why = expect(0, &longhaul(dir.path(), &["jobs", "why", &id]));
        let named = format!("the state \"{word}\" is not in the connector's states");
        for part in ["without a usable status: status-payload-invalid: ", named.as_str()] {
            assert!(why.contains(part), "{part}: {why}");
        }
        assert!(!why.contains("without an answer"), "the service did answer: {why}");
        jobs.push(id);
    }
    for id in &jobs {
        let facts = get(dir.path(), &daemon, &format!("/jobs/{id}/facts"));
        assert!(facts.contains("job.deferred/1"), "{facts}");
        for seen in [facts, expect(0, &longhaul(dir.path(), &["export", "facts"])), daemon.log()] {
            assert!(!seen.contains(WORD) && !seen.contains("paused"), "{seen}");
        }
        expect(0, &longhaul(dir.path(), &["jobs", "cancel", id]));
    }
}
