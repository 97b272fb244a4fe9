//! Ductile's face against the real binary: a real plugin in bash, a pipeline of two steps, a webhook that starts it.

use std::path::Path;

use domain::Digest;
use executors::mac::hmac_sha256;
use serde_json::{Value, json};

use crate::given::{Daemon, within};
use crate::handed_over::call;

const SECRET: &str = "a secret of both sides";
const PLUGIN: &str = r#"#!/usr/bin/env bash
request=$(cat)
jq -c '{status: "ok", result: ("saw " + .command), events: [{type: "seen", payload: (.event.payload // .payload // {})}]}' <<< "$request"
"#;
const MANIFEST: &str = "name: eye\nprotocol: 2\nentrypoint: run\ncommands: [{ name: poll, type: read }, { name: handle, type: write }, { name: state, type: read }]\n";
const PIPELINES: &str = "
pipelines:
- name: look
  on: hook.came
  execution_mode: synchronous
  steps: [{ id: first, uses: eye }, { id: second, uses: eye }]
";
const CONFIG: &str = "
plugin_roots: [plugins]
pipelines: [pipelines.yaml]
webhooks:
- { name: press, path: /hooks/press, event: hook.came, secret: { file: secret }, signature_header: X-Signature }
";

fn put(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::create_dir_all(path.parent().expect("it has one")).expect("it can be");
    std::fs::write(path, text).expect("it can be");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("it can be");
}

fn daemon(dir: &Path) -> Daemon {
    put(&dir.join("plugins/eye/manifest.yaml"), MANIFEST);
    put(&dir.join("plugins/eye/run"), PLUGIN);
    put(&dir.join("pipelines.yaml"), PIPELINES);
    put(&dir.join("secret"), &format!("{SECRET}\n"));
    let config = dir.join("longhaul.yaml");
    put(&config, CONFIG);
    let config = config.to_str().expect("it is text");
    Daemon::verb(dir, &["serve", "--listen", "127.0.0.1:0", "--config", config])
}

/// Sends a message that is signed with this.
fn hook(daemon: &Daemon, secret: &str, body: &str) -> (u16, Value) {
    let config = ureq::Agent::config_builder().http_status_as_error(false).build();
    let signature = Digest(hmac_sha256(secret.as_bytes(), body.as_bytes()));
    let mut answer = ureq::Agent::new_with_config(config)
        .post(format!("{}/hooks/press", daemon.url))
        .header("X-Signature", format!("sha256={signature}"))
        .send(body)
        .expect("the daemon answers");
    let text = answer.body_mut().read_to_string().expect("it is text");
    (answer.status().as_u16(), serde_json::from_str(&text).expect("it is JSON"))
}

fn read(dir: &Path, daemon: &Daemon, path: &str) -> Value {
    let token = std::fs::read_to_string(dir.join("admin.token")).expect("it is there");
    let mut answer = ureq::get(format!("{}{path}", daemon.url))
        .header("Authorization", format!("Bearer {}", token.trim()))
        .call()
        .expect("the daemon answers");
    let text = answer.body_mut().read_to_string().expect("it is text");
    serde_json::from_str(&text).expect("it is JSON")
}

fn jobs(dir: &Path, daemon: &Daemon) -> Vec<Value> {
    read(dir, daemon, "/jobs")["work"].as_array().expect("a list").clone()
}

#[test]
fn plugin_and_pipeline_are_started_as_ductiles_clients_do() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = daemon(dir.path());
    let payload = json!({ "payload": { "n": 1 } });
    // A command may have the name of one of our own reads.
    let (status, asked) = call(dir.path(), "/plugin/eye/state", &payload);
    assert_eq!((status, &asked["command"]), (202, &json!("state")), "{asked}");
    let (status, asked) = call(dir.path(), "/plugin/eye/poll", &payload);
    assert_eq!((status, &asked["status"]), (202, &json!("queued")), "{asked}");
    let path = format!("/job/{}", asked["job_id"].as_str().unwrap());
    let job = within("the job is over", || {
        let job = read(dir.path(), &daemon, &path);
        (job["status"] == "succeeded").then_some(job)
    });
    assert_eq!(job["result"]["result"], "saw poll", "{job}");
    let (status, ended) = call(dir.path(), "/pipeline/look", &payload);
    assert_eq!((status, &ended["status"]), (200, &json!("succeeded")), "{ended}");
    assert_eq!(ended["tree"].as_array().map(Vec::len), Some(2), "{ended}");
    assert_eq!(ended["tree"][1]["parent_job_id"], ended["job_id"], "{ended}");
    assert_eq!(ended["result"]["result"], "saw handle", "{ended}");
}

#[test]
fn signed_webhook_starts_its_pipeline_once_and_one_that_is_not_starts_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = daemon(dir.path());
    assert_eq!(hook(&daemon, "another secret", "{\"n\":1}"), (403, json!({ "error": "forbidden" })));
    let (status, first) = hook(&daemon, SECRET, "{\"n\":1}");
    assert_eq!(status, 202, "{first}");
    assert_eq!(hook(&daemon, SECRET, "{\"n\":1}"), (202, first));
    let is_over = |jobs: &[Value]| jobs.len() == 2 && jobs.iter().all(|job| job["state"] == "completed");
    within("both steps are done", || is_over(&jobs(dir.path(), &daemon)).then_some(()));
    // What comes later is settled later: the replay would have started by then.
    assert_eq!(hook(&daemon, SECRET, "{\"n\":2}").0, 202);
    within("two more are done", || {
        let jobs = jobs(dir.path(), &daemon);
        (jobs.len() >= 4 && jobs.iter().all(|job| job["state"] == "completed")).then_some(())
    });
    assert_eq!(jobs(dir.path(), &daemon).len(), 4);
}
