//! What a daemon leaves for the other commands, and who may not start.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::given::{Daemon, binary, create, ended, expect, longhaul, show, stderr};

#[test]
fn daemon_leaves_its_address_and_a_token_for_its_user_alone() {
    let dir = tempfile::tempdir().unwrap();
    let data_dir = dir.path().join("made");
    std::fs::create_dir(&data_dir).unwrap();
    let daemon = Daemon::start(&data_dir);
    let file: Value =
        serde_json::from_str(&std::fs::read_to_string(data_dir.join("daemon.json")).unwrap()).unwrap();
    assert_eq!(file, json!({ "url": daemon.url, "pid": daemon.pid() }));
    for name in ["admin.token", "daemon.json"] {
        let mode = std::fs::metadata(data_dir.join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn token_of_the_first_start_stays_and_one_that_is_lost_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let token = dir.path().join("admin.token");
    let read = || std::fs::read_to_string(&token).unwrap();
    Daemon::start(dir.path()).kill();
    let first = read();
    Daemon::start(dir.path()).kill();
    assert_eq!(read(), first);
    std::fs::remove_file(&token).unwrap();
    let _daemon = Daemon::start(dir.path());
    assert_ne!(read(), first);
    expect(0, &longhaul(dir.path(), &["token", "list"]));
}

#[test]
fn second_daemon_on_the_same_directory_is_refused_with_the_process_that_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    let refused = longhaul(dir.path(), &["serve", "--listen", "127.0.0.1:0"]);
    expect(1, &refused);
    assert!(
        stderr(&refused).contains(&format!("in use by the process {}", daemon.pid())),
        "{}",
        stderr(&refused)
    );
    // And the first one is still found.
    expect(0, &longhaul(dir.path(), &["jobs", "list"]));
}

#[test]
fn port_that_is_taken_is_told_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = longhaul(dir.path(), &["serve", "--listen", &address]);
    expect(1, &refused);
    assert!(stderr(&refused).contains("choose another with --listen"), "{}", stderr(&refused));
    // It has left nothing behind, not even the directory.
    let nowhere = dir.path().join("nowhere");
    expect(1, &longhaul(&nowhere, &["serve", "--listen", &address]));
    assert!(!nowhere.exists());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn second_daemon_on_the_same_port_is_told_who_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    let address = daemon.url.strip_prefix("http://").unwrap();
    let refused = longhaul(dir.path(), &["serve", "--listen", address]);
    expect(1, &refused);
    let told = format!("process {} serves this data", daemon.pid());
    assert!(stderr(&refused).contains(&told), "{}", stderr(&refused));
}

#[test]
fn daemon_that_does_not_dispatch_runs_jobs_only_when_asked() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start_with(dir.path(), &["--no-dispatch"]);
    let asked = create(dir.path(), &["asked for", "--executor", "noop"]);
    let other = create(dir.path(), &["not asked for", "--executor", "noop"]);
    expect(0, &longhaul(dir.path(), &["jobs", "run", &asked]));
    ended(dir.path(), &asked, "completed");
    assert_eq!(show(dir.path(), &other)["state"], "queued");
}

#[test]
fn every_verb_teaches_with_examples() {
    for verb in [
        &["--help"][..],
        &["serve", "--help"],
        &["demo", "--help"],
        &["run", "--help"],
        &["jobs", "--help"],
        &["jobs", "create", "--help"],
        &["jobs", "list", "--help"],
        &["jobs", "show", "--help"],
        &["jobs", "run", "--help"],
        &["jobs", "retry", "--help"],
        &["jobs", "result", "--help"],
        &["jobs", "why", "--help"],
        &["jobs", "facts", "--help"],
        &["jobs", "logs", "--help"],
        &["jobs", "watch", "--help"],
        &["jobs", "wait", "--help"],
        &["jobs", "update", "--help"],
        &["jobs", "cancel", "--help"],
        &["jobs", "answer", "--help"],
        &["token", "--help"],
        &["token", "create", "--help"],
        &["token", "list", "--help"],
        &["token", "revoke", "--help"],
        &["executors", "--help"],
        &["orphans", "--help"],
        &["orphans", "list", "--help"],
        &["orphans", "cancel", "--help"],
        &["orphans", "settle", "--help"],
        &["nodes", "--help"],
        &["nodes", "drain", "--help"],
        &["nodes", "undrain", "--help"],
        &["config", "--help"],
        &["connector", "--help"],
        &["connector", "check", "--help"],
        &["connector", "test", "--help"],
        &["pipeline", "--help"],
        &["pipeline", "check", "--help"],
        &["pipeline", "graph", "--help"],
        &["purge", "--help"],
        &["config", "check", "--help"],
        &["completions", "--help"],
        &["verify", "--help"],
        &["rebuild", "--help"],
        &["export", "--help"],
        &["progress", "--help"],
    ] {
        let printed = expect(0, &binary(verb).output().unwrap());
        let examples = printed.split_once("\nExample").expect(&printed).1;
        // No line is so long that its end stands alone on the next.
        for (line, next) in examples.lines().zip(examples.lines().skip(1)) {
            let is_cut = line.len() < 60 && next.starts_with(|first: char| first.is_ascii_lowercase());
            assert!(!is_cut, "{verb:?}: {line:?} goes on as {next:?}\n{printed}");
        }
        for line in examples.lines().skip(1).take_while(|line| !line.is_empty()) {
            assert!(line.starts_with("  longhaul ") || verb[0] == "config", "{verb:?}: {line:?}");
        }
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(expect(0, &binary(&["completions", shell]).output().unwrap()).contains("longhaul"));
    }
}

/// The one that retired or purged a job was killed before it had removed the files.
#[test]
fn output_whose_job_is_gone_is_removed_at_the_start_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    let run = longhaul(dir.path(), &["run", "--detach", "--", "echo", "kept"]);
    let kept = expect(0, &run).trim().to_owned();
    ended(dir.path(), &kept, "completed");
    daemon.kill();
    let gone = dir.path().join("artifacts/work-00000000000000000000000000000000");
    std::fs::create_dir_all(gone.join("attempt-1")).unwrap();
    std::fs::write(gone.join("attempt-1/stdout"), "left").unwrap();
    let _daemon = Daemon::start(dir.path());
    while gone.exists() {
        std::thread::yield_now();
    }
    assert_eq!(expect(0, &longhaul(dir.path(), &["jobs", "logs", &kept])), "kept\n");
}
