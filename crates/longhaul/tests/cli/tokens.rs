//! `longhaul token`: effective at once, and only what the role allows.

use std::path::Path;
use std::process::Output;

use crate::given::{Daemon, expect, json, longhaul, stderr};

fn with(dir: &Path, secret: &str, arguments: &[&str]) -> Output {
    longhaul(dir, &[arguments, &["--token", secret]].concat())
}

#[test]
fn token_is_made_used_within_its_role_and_revoked_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    let made = json(dir.path(), &["token", "create", "--name", "reader", "--role", "viewer"]);
    let (id, secret) = (made["token"]["id"].as_str().unwrap(), made["secret"].as_str().unwrap());
    expect(0, &with(dir.path(), secret, &["jobs", "list"]));
    let refused = with(dir.path(), secret, &["jobs", "create", "not mine"]);
    expect(1, &refused);
    assert!(stderr(&refused).contains("Failed to create job: "), "{}", stderr(&refused));
    let listed = expect(0, &longhaul(dir.path(), &["token", "list"]));
    assert!(listed.contains(id) && listed.contains("reader") && !listed.contains(secret), "{listed}");
    expect(0, &longhaul(dir.path(), &["token", "revoke", id]));
    expect(1, &with(dir.path(), secret, &["jobs", "list"]));
    expect(4, &longhaul(dir.path(), &["token", "revoke", "token-0"]));
}

#[test]
fn command_is_only_for_tokens_with_the_scope_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    let secret = |more: &[&str]| {
        let printed =
            expect(0, &longhaul(dir.path(), &[&["token", "create", "--role", "operator"], more].concat()));
        printed.trim().to_owned()
    };
    let run = ["run", "--token"];
    let refused = longhaul(dir.path(), &[&run[..], &[&secret(&[]), "--", "true"]].concat());
    expect(1, &refused);
    assert!(stderr(&refused).contains("scope \"exec\""), "{}", stderr(&refused));
    expect(0, &longhaul(dir.path(), &[&run[..], &[&secret(&["--scope", "exec"]), "--", "true"]].concat()));
}
