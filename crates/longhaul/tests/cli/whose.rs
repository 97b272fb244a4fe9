//! A data directory is one store's: what another store knows nothing of would be swept away there.

use std::path::Path;
use std::process::Output;

use test_postgres::Schema;

use crate::given::{Daemon, binary, create, ended, expect, longhaul, stderr, verify};

fn schema() -> Schema {
    tokio::runtime::Runtime::new().expect("there is room").block_on(Schema::new())
}

/// A job whose output is in the directory.
fn talk(dir: &Path) -> String {
    let input = r#"{"argv":["echo","precious"]}"#;
    let id = create(dir, &["talks", "--executor", "command", "--input", input]);
    ended(dir, &id, "completed");
    id
}

#[track_caller]
fn is_there(dir: &Path, id: &str) {
    assert_eq!(expect(0, &longhaul(dir, &["jobs", "logs", id])), "precious\n");
}

fn serve(dir: &Path, more: &[&str]) -> Output {
    longhaul(dir, &[&["serve", "--listen", "127.0.0.1:0"], more].concat())
}

#[track_caller]
fn refused(code: &str, output: &Output) {
    expect(1, output);
    assert!(stderr(output).contains(&format!("error[{code}]: ")), "{}", stderr(output));
}

#[test]
fn directory_of_a_file_is_refused_to_a_database_and_keeps_its_output() {
    let (dir, schema) = (tempfile::tempdir().unwrap(), schema());
    let database = ["--database", &schema.address];
    let daemon = Daemon::start(dir.path());
    let id = talk(dir.path());
    refused("store_locked", &serve(dir.path(), &database));
    daemon.kill();
    refused("other_store", &serve(dir.path(), &database));
    let daemon = Daemon::start(dir.path());
    is_there(dir.path(), &id);
    drop(daemon);
    verify(dir.path());

    // Moved there, it is the same store.
    let elsewhere = tempfile::tempdir().unwrap();
    let (file, moved) = (elsewhere.path().join("moved.backup"), self::schema());
    let file = file.to_str().unwrap();
    expect(0, &longhaul(dir.path(), &["backup", file]));
    let database = ["--database", &moved.address];
    expect(0, &binary(&["restore", file]).args(database).current_dir(elsewhere.path()).output().unwrap());
    let _daemon = Daemon::start_with(dir.path(), &database);
    is_there(dir.path(), &id);
}

#[test]
fn directory_of_a_node_is_refused_to_a_file_and_to_another_database() {
    let (dir, ours, other) = (tempfile::tempdir().unwrap(), schema(), schema());
    let database = ["--database", &ours.address];
    let daemon = Daemon::start_with(dir.path(), &database);
    let id = talk(dir.path());
    refused("other_store", &serve(dir.path(), &[]));
    refused("store_locked", &serve(dir.path(), &["--database", &other.address]));
    // A backup of this store may go there, but not under its daemon.
    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().join("of.backup");
    let file = file.to_str().unwrap();
    expect(0, &binary(&["backup", file, "--data-dir"]).arg(dir.path()).args(database).output().unwrap());
    refused("store_locked", &longhaul(dir.path(), &["restore", file]));
    daemon.kill();
    refused("other_store", &serve(dir.path(), &[]));
    refused("other_store", &serve(dir.path(), &["--database", &other.address]));
    assert!(!dir.path().join("longhaul.sqlite").exists());
    let _daemon = Daemon::start_with(dir.path(), &database);
    is_there(dir.path(), &id);
}
