//! `longhaul peers`, and what peers say to each other through kill -9 of the real binary.

use std::path::Path;

use serde_json::{Value, json};

use crate::given::{Daemon, create, expect, json as json_of, longhaul, stderr, verify};

/// Asks over HTTP, as the administrator.
pub fn send(dir: &Path, daemon: &Daemon, method: &str, path: &str, body: &Value) -> Value {
    let token = std::fs::read_to_string(dir.join("admin.token")).expect("the daemon has made it");
    let request = ureq::http::Request::builder()
        .method(method)
        .uri(format!("{}{path}", daemon.url))
        .header("authorization", format!("Bearer {}", token.trim()))
        .header("content-type", "application/json");
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let mut answer = ureq::Agent::new_with_defaults()
        .run(request.body(body).expect("it is a request"))
        .expect("the daemon answers");
    serde_json::from_str(&answer.body_mut().read_to_string().expect("it is text")).expect("it is JSON")
}

#[test]
fn peers_are_registered_listed_shown_named_and_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    for id in ["joan-1", "joan-2"] {
        let register =
            ["peers", "register", "--id", id, "--name", "joan", "--circle", "blue", "--label", "rust"];
        assert_eq!(json_of(dir.path(), &register)["peer"]["presence"], "present");
    }
    let table = expect(0, &longhaul(dir.path(), &["peers", "list", "--circle", "blue", "--name", "joan"]));
    assert!(table.contains("joan-1") && table.contains("joan-2") && table.contains("present"), "{table}");
    assert_eq!(json_of(dir.path(), &["peers", "list", "--label", "go"])["peers"], json!([]));
    assert_eq!(json_of(dir.path(), &["peers", "show", "joan-1"])["peer"]["labels"], json!(["rust"]));
    let named = ["jobs", "create", "review it", "--assigned-peer", "joan", "--circle", "blue"];
    let refused = longhaul(dir.path(), &named);
    assert_ne!(refused.status.code(), Some(0));
    assert!(stderr(&refused).contains("several peers are called"), "{}", stderr(&refused));
    expect(0, &longhaul(dir.path(), &["peers", "forget", "joan-2"]));
    expect(4, &longhaul(dir.path(), &["peers", "show", "joan-2"]));
    expect(0, &longhaul(dir.path(), &["peers", "register", "--id", "joan-1", "--circle", "red"]));
    let ambiguous = longhaul(dir.path(), &["peers", "show", "joan-1"]);
    assert_ne!(ambiguous.status.code(), Some(0));
    assert!(stderr(&ambiguous).contains(r#"["blue", "red"]"#), "{}", stderr(&ambiguous));
    let of_red = ["peers", "show", "joan-1", "--circle", "red"];
    assert_eq!(json_of(dir.path(), &of_red)["peer"]["circle"], json!("red"));
    expect(0, &longhaul(dir.path(), &["peers", "forget", "joan-1", "--circle", "red"]));
    expect(4, &longhaul(dir.path(), &of_red));
    expect(0, &longhaul(dir.path(), &named));
}

// conforms: R4 R37
#[test]
fn ask_that_was_answered_survives_the_end_of_the_process_and_so_does_the_one_of_a_delivery() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    expect(0, &longhaul(dir.path(), &["peers", "register", "--id", "joan"]));
    let job = create(dir.path(), &["print it", "--assigned-peer", "joan"]);
    let pull = json!({ "peer_id": "joan", "wait_seconds": 0 });
    let handed = send(dir.path(), &daemon, "POST", "/jobs/next", &pull)["job"].clone();
    assert_eq!(handed["job_id"], job.as_str());
    let ask = json!({ "to_peer": "joan", "text": "gloss or matt?" });
    let opened = send(dir.path(), &daemon, "POST", "/asks", &ask);
    daemon.kill();

    let daemon = Daemon::start(dir.path());
    let peer = json_of(dir.path(), &["peers", "show", "joan"]);
    assert_eq!(peer["peer"]["presence"], "absent", "the node that heard of it is dead");
    let pending = send(dir.path(), &daemon, "GET", "/asks/pending?peer_id=joan", &Value::Null);
    let ids: Vec<&Value> =
        pending["asks"].as_array().unwrap().iter().map(|ask| &ask["correlation_id"]).collect();
    assert_eq!(ids, [&opened["correlation_id"], &handed["correlation_id"]]);
    let path = format!("/asks/{}/ack", opened["correlation_id"].as_str().unwrap());
    send(dir.path(), &daemon, "POST", &path, &json!({ "message": "matt" }));
    daemon.kill();

    let daemon = Daemon::start(dir.path());
    let path = format!("/asks/{}", opened["correlation_id"].as_str().unwrap());
    let kept = send(dir.path(), &daemon, "GET", &path, &Value::Null)["ask"].clone();
    assert_eq!((&kept["close_reason"], &kept["message"]), (&json!("ack_with_msg"), &json!("matt")));
    verify(dir.path());
}
