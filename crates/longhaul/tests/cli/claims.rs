//! `longhaul claims` against a daemon whose configuration leaves a type of events to claimants.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};
use test_postgres::Schema;

use crate::given::{Daemon, binary, expect, json as json_of, longhaul, stderr, verify, within};

const LEFT: &str = "TICKET_READY";
const ROUTED: &str = "tide";

fn daemon(dir: &Path, more: &[&str]) -> Daemon {
    let config = dir.join("longhaul.yaml");
    let text = format!("events: [{{ type: {LEFT}, settled_by: claimants }}]\n");
    std::fs::write(&config, text).expect("it can be written");
    let config = config.to_str().expect("it is text");
    Daemon::start_with(dir, &[&["--config", config], more].concat())
}

fn published(dir: &Path, kind: &str) -> String {
    json_of(dir, &["events", "publish", kind])["event_id"].as_str().expect("it has an id").to_owned()
}

fn event(dir: &Path, id: &str) -> Value {
    json_of(dir, &["events", "show", id])["event"].clone()
}

/// The claim that a verb prints.
#[track_caller]
fn claim(output: &Output) -> Value {
    serde_json::from_str(&expect(0, output)).expect("it is JSON")
}

/// The oldest event of that type, or null.
#[track_caller]
fn acquired(dir: &Path, owner: &str) -> Value {
    claim(&longhaul(dir, &["claims", "acquire", "EVENT", "--owner", owner, "--type", LEFT]))
}

/// A verb of whoever holds this claim.
fn under(dir: &Path, claim: &Value, verb: &str, more: &[&str]) -> Output {
    let [kind, id, owner] = ["resource_type", "resource_id", "owner_id"]
        .map(|name| claim[name].as_str().expect("it is a claim record"));
    let version = claim["claim_version"].to_string();
    let held = ["claims", verb, kind, id, "--owner", owner, "--version", &version];
    longhaul(dir, &[&held, more].concat())
}

/// Claimed, renewed, given back, claimed by the next and settled.
fn event_goes_from_claimant_to_claimant(dir: &Path, id: &str) {
    let first = acquired(dir, "clerk-1");
    assert_eq!(first["resource_id"], id);
    assert_eq!(acquired(dir, "clerk-2"), json!(null), "it is held");
    let renewed = claim(&under(dir, &first, "renew", &[]));
    assert_eq!(renewed["claim_version"].as_u64(), first["claim_version"].as_u64().map(|version| version + 1));
    for (verb, more) in [("renew", &[][..]), ("release", &[]), ("settle", &["--reason", "LATE"])] {
        let stale = under(dir, &first, verb, more);
        expect(1, &stale);
        assert!(stderr(&stale).starts_with(&format!("longhaul: Failed to {verb}: ")), "{}", stderr(&stale));
    }
    claim(&under(dir, &renewed, "release", &[]));
    // As soon as a worker has looked at it.
    let second =
        within("it was given back", || Some(acquired(dir, "clerk-2")).filter(|claim| !claim.is_null()));
    assert_eq!(second["resource_id"], id, "it was given back");
    assert_eq!(event(dir, id)["status"], "waiting");
    claim(&under(dir, &second, "settle", &["--reason", "SCHEDULED", "--work-order", "work-7"]));
    let settled = event(dir, id);
    assert_eq!((&settled["status"], &settled["settled_by"]), (&json!("processed"), &json!("claimants")));
    let processed = json!({ "reason": "SCHEDULED", "owner_id": "clerk-2", "work_order_id": "work-7" });
    assert_eq!(settled["processed"], processed);
    assert_eq!(acquired(dir, "clerk-3"), json!(null), "nothing is left");
}

// conforms: A65
#[test]
fn configured_event_type_is_settled_by_claimants_alone() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = daemon(dir.path(), &[]);
    let (left, routed) = (published(dir.path(), LEFT), published(dir.path(), ROUTED));
    // The router looks at the older one first.
    let passed = within("the router settles the other type", || {
        let shown = event(dir.path(), &routed);
        (shown["status"] != "waiting").then_some(shown)
    });
    assert_eq!(passed["settled_by"], "router", "{passed}");
    event_goes_from_claimant_to_claimant(dir.path(), &left);
    drop(daemon);
    verify(dir.path());
}

#[test]
fn claimants_settle_events_of_a_daemon_that_dispatches_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = daemon(dir.path(), &["--no-dispatch"]);
    let left = published(dir.path(), LEFT);
    event_goes_from_claimant_to_claimant(dir.path(), &left);
    drop(daemon);
    verify(dir.path());
}

// conforms: A65
#[test]
fn claimants_settle_events_under_their_claims_on_postgresql() {
    let dir = tempfile::tempdir().unwrap();
    let schema = tokio::runtime::Runtime::new().expect("there is room").block_on(Schema::new());
    let database = ["--database", schema.address.as_str()];
    let daemon = daemon(dir.path(), &database);
    let left = published(dir.path(), LEFT);
    event_goes_from_claimant_to_claimant(dir.path(), &left);
    drop(daemon);
    let verified = binary(&["verify"]).args(database).output().expect("the binary runs");
    assert!(expect(0, &verified).contains(" 0 differences"), "{}", stderr(&verified));
}
