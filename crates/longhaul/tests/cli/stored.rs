//! What is known of a job is in the store: after a kill the daemon says the same of it, word for word.

use std::path::Path;

use serde_json::{Value, json};

use crate::given::{Daemon, json as json_of, show, verify};
use crate::peers::send;

fn result(dir: &Path, id: &str) -> Value {
    json_of(dir, &["jobs", "result", id])
}

// conforms: R10 R79 R80
#[test]
fn killed_daemon_shows_the_same_jobs_and_results() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start_with(dir.path(), &["--no-dispatch"]);
    let given = json!({
        "title": "Print the cover", "kind": "print", "created_by_peer_id": "peer-ada", "owner_peer_id": "peer-grace",
        "assigned_peer_id": "repow-press-1", "repowire_session_id": "rw-session-1", "correlation_id": "ask-7",
        "circle": "press", "source_kind": "cli", "source_id": "7", "scope": "books", "prompt": "in blue",
        "backend": "codex", "path": "/srv/books", "due_at": "2126-01-02T03:04:05Z", "deadline_at": "2126-02-01T00:00:00Z",
        "provenance": { "links": { "ask": "ask-7" } },
    });
    let update =
        |id: &str, report: Value| send(dir.path(), &daemon, "PATCH", &format!("/jobs/{id}"), &report);
    let create = |route: &str, body: &Value| {
        send(dir.path(), &daemon, "POST", route, body)["job_id"].as_str().expect("it has an id").to_owned()
    };
    let open = create("/jobs", &given);
    update(
        &open,
        json!({ "state": "running", "phase": "inking", "progress": { "page": 6 }, "progress_note": "half of it" }),
    );
    let cancel = json!({ "requested_by_peer_id": "peer-ada", "reason": "changed my mind" });
    send(dir.path(), &daemon, "POST", &format!("/jobs/{open}/cancel"), &cancel);
    let over = create("/work", &json!({ "title": "Fold it" }));
    update(
        &over,
        json!({ "state": "failed", "state_reason": "no_paper", "result_summary": "6 pages", "result_data": { "pages": 6 },
            "error": { "code": "no_paper", "message": "out of paper" }, "artifacts": ["cover.pdf"] }),
    );
    let look = || [show(dir.path(), &open), show(dir.path(), &over), result(dir.path(), &over)];
    let before = look();
    for (key, value) in given.as_object().unwrap() {
        let shown = match key.as_str() {
            "prompt" => &before[0]["execution"]["prompt"]["body"],
            "backend" | "path" => &before[0]["execution"]["target"][key],
            "due_at" | "deadline_at" => continue,
            "provenance" => {
                // What the daemon itself knows stands beside what was sent.
                assert_eq!(before[0]["links"]["ask"], value["links"]["ask"]);
                continue;
            }
            _ => &before[0][key],
        };
        assert_eq!(shown, value, "{key}");
    }
    assert_eq!((&before[0]["state"], &before[0]["cancel_requested"]), (&json!("running"), &json!(true)));
    assert_eq!((&before[2]["summary"], &before[2]["data"]), (&json!("6 pages"), &json!({ "pages": 6 })));
    daemon.kill();

    let _daemon = Daemon::start_with(dir.path(), &["--no-dispatch"]);
    assert_eq!(look(), before);
    verify(dir.path());
}
