//! The daemon on PostgreSQL: the same verbs, the same promises, and clear words for what cannot be.

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use serde_json::{Value, json};
use test_postgres::{Schema, server};

use crate::given::{Daemon, binary, create, ended, expect, show, stderr, until};
use crate::outside::productions_are_exported_flat;

/// A schema of its own.
fn schema() -> Schema {
    tokio::runtime::Runtime::new().expect("there is room").block_on(Schema::new())
}

fn serve(dir: &Path, schema: &Schema, more: &[&str]) -> Daemon {
    Daemon::start_with(dir, &[&["--database", &schema.address], more].concat())
}

/// One command that needs the store itself.
fn on(schema: &Schema, arguments: &[&str]) -> Output {
    binary(arguments).args(["--database", &schema.address]).output().expect("the binary runs")
}

#[track_caller]
fn verify(schema: &Schema) {
    let verified = expect(0, &on(schema, &["verify"]));
    assert!(verified.contains(" 0 differences"), "{verified}");
}

#[test]
fn queued_jobs_survive_kill_9_and_are_done_after_the_restart() {
    let (dir, schema) = (tempfile::tempdir().unwrap(), schema());
    let daemon = serve(dir.path(), &schema, &["--no-dispatch"]);
    let input = r#"{"n":18446744073709551615}"#;
    let ids: Vec<String> =
        (0..5).map(|_| create(dir.path(), &["kept", "--executor", "noop", "--input", input])).collect();
    daemon.kill();
    let _daemon = serve(dir.path(), &schema, &[]);
    for id in ids {
        assert_eq!(ended(dir.path(), &id, "completed")["data"].to_string(), input);
    }
    assert!(!dir.path().join("longhaul.sqlite").exists());
    verify(&schema);
}

/// The lease has a minute left: that a node does not wait for its own earlier life is what is tested.
#[test]
fn job_that_ran_on_a_killed_node_is_tried_again_as_soon_as_the_node_is_back() {
    let (dir, schema) = (tempfile::tempdir().unwrap(), schema());
    let daemon = serve(dir.path(), &schema, &[]);
    let id = create(dir.path(), &["slow", "--executor", "slow", "--input", r#"{"seconds":3}"#]);
    until(dir.path(), &id, "running");
    daemon.kill();
    let restarted = std::time::Instant::now();
    let _daemon = serve(dir.path(), &schema, &[]);
    assert_eq!(ended(dir.path(), &id, "completed")["data"]["attempt"], 2);
    assert!(restarted.elapsed() < Duration::from_secs(40), "the lease of the dead daemon was waited for");
    verify(&schema);
}

#[test]
fn any_node_serves_what_another_has_accepted() {
    let (one, other, schema) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), schema());
    let _first = serve(one.path(), &schema, &["--no-dispatch"]);
    let _second = serve(other.path(), &schema, &["--no-dispatch"]);
    let id = create(one.path(), &["shared", "--executor", "noop"]);
    assert_eq!(show(other.path(), &id)["state"], "queued");
}

#[test]
fn verify_rebuild_and_export_take_the_database_by_the_same_flag() {
    let (dir, schema) = (tempfile::tempdir().unwrap(), schema());
    let daemon = serve(dir.path(), &schema, &[]);
    let id = create(dir.path(), &["kept", "--executor", "noop"]);
    ended(dir.path(), &id, "completed");
    // Beside the daemon.
    verify(&schema);
    let rebuilt = expect(0, &on(&schema, &["rebuild"]));
    assert!(rebuilt.starts_with("rebuilt 1 records from "), "{rebuilt}");
    verify(&schema);
    let facts = expect(0, &on(&schema, &["export", "facts"]));
    let first: Value = serde_json::from_str(facts.lines().next().unwrap()).unwrap();
    assert_eq!((&first["stream"], &first["kind"]), (&json!(id), &json!("job.created/1")));
    let claims = expect(0, &on(&schema, &["export", "claims"]));
    assert!(claims.contains(&id), "{claims}");
    assert_eq!(show(dir.path(), &id)["state"], "completed");
    daemon.kill();
}

/// PostgreSQL reads no JSON in which U+0000 is written: one such view, and nothing of all jobs could be counted any more.
#[test]
fn what_a_plugin_says_never_keeps_the_store_from_being_verified_and_rebuilt() {
    let (dir, schema) = (tempfile::tempdir().unwrap(), schema());
    let plugin = dir.path().join("plugins/zoo");
    std::fs::create_dir_all(&plugin).unwrap();
    let manifest = "name: zoo\nprotocol: 2\nentrypoint: run\ncommands: [poll]\n";
    std::fs::write(plugin.join("manifest.yaml"), manifest).unwrap();
    let answer = r#"{"status": "ok", "result": "a\u0000b"}"#;
    std::fs::write(plugin.join("run"), format!("#!/bin/sh\ncat <<'END'\n{answer}\nEND\n")).unwrap();
    std::fs::set_permissions(plugin.join("run"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let config = dir.path().join("longhaul.yaml");
    std::fs::write(&config, "plugin_roots: [plugins]\n").unwrap();
    let _daemon = serve(dir.path(), &schema, &["--config", config.to_str().unwrap()]);
    let id = create(dir.path(), &["a job", "--executor", "zoo", "--input", "{}"]);
    assert_eq!(ended(dir.path(), &id, "completed")["summary"], "a\u{fffd}b");
    verify(&schema);
    expect(0, &on(&schema, &["rebuild"]));
    // A view of an earlier version, which let it in.
    let spoil = "UPDATE jobs SET view = replace(view, 'a\u{fffd}b', 'a\\u0000b')";
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let spoilt = runtime.block_on(async { schema.client().await.execute(spoil, &[]).await.unwrap() });
    assert_eq!(spoilt, 1);
    let told = on(&schema, &["verify"]);
    assert!(!stderr(&told).contains("store_broken"), "{}", stderr(&told));
    expect(0, &on(&schema, &["rebuild"]));
    verify(&schema);
}

#[test]
fn database_that_cannot_be_used_is_refused_with_a_code_and_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let missing = server().replace("/postgres", "/nobody_made_this");
    for (database, code, told) in [
        ("mysql://somewhere/else", "database_address", "postgres://user:password@host"),
        ("postgres://ada:secret@127.0.0.1:9/work", "database_unreachable", "check the address"),
        (missing.as_str(), "database_missing", "createdb nobody_made_this"),
        ("postgres://ada@127.0.0.1/work?sslmode=prefer", "database_address", "sslmode=prefer"),
    ] {
        let data_dir = dir.path().to_str().unwrap();
        let commands: [&[&str]; 3] = [
            &["serve", "--listen", "127.0.0.1:0", "--data-dir", data_dir],
            &["verify"],
            &["export", "facts"],
        ];
        for command in commands {
            let refused = binary(command).args(["--database", database]).output().unwrap();
            expect(1, &refused);
            let said = stderr(&refused);
            assert!(said.starts_with(&format!("error[{code}]")), "{said}");
            assert!(said.contains(told) && !said.contains("secret"), "{said}");
        }
    }
}

#[test]
fn second_daemon_in_one_data_directory_is_refused() {
    let (dir, schema) = (tempfile::tempdir().unwrap(), schema());
    let daemon = serve(dir.path(), &schema, &[]);
    let data_dir = dir.path().to_str().unwrap();
    let refused = on(&schema, &["serve", "--listen", "127.0.0.1:0", "--data-dir", data_dir]);
    expect(1, &refused);
    let told = stderr(&refused);
    assert!(told.contains(&format!("in use by the process {}", daemon.pid())), "{told}");
}

// conforms: L94
#[test]
fn productions_are_exported_flat_from_a_database() {
    let schema = schema();
    productions_are_exported_flat(&["--database", &schema.address]);
}
