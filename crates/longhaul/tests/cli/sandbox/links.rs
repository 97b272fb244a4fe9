//! Links in the data directory: the store, the token and the key may lie elsewhere, and are out of the reach of commands there too.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::json;

use super::Project;
use crate::given::{create, ended};

/// Opens files to read and to append, and changes no content.
const TOUCH: &str = include_str!("touch.sh");
/// What links lead to, and what belongs to it.
const LINKED: [&str; 7] = [
    "disk/store.sqlite",
    "disk/store.sqlite-wal",
    "disk/store.sqlite-journal",
    "disk/store.sqlite.mark",
    "disk/store.sqlite.lock",
    "shared/admin.token",
    "shared/callback.key",
];

/// A project whose store is a link to a disk, and whose token and key are links to a directory with something else in it.
fn linked_project() -> Project {
    let mut project = Project::new();
    let (disk, shared) = (project.path().join("out/disk"), project.path().join("out/shared"));
    for made in [&disk, &shared] {
        std::fs::create_dir(made).expect("it is set up");
        std::fs::set_permissions(made, std::fs::Permissions::from_mode(0o777)).expect("it is set up");
    }
    symlink(disk.join("store.sqlite"), project.data().join("longhaul.sqlite")).expect("it is set up");
    project.start("", |command| command);
    project.daemon = None;
    for name in ["admin.token", "callback.key"] {
        std::fs::rename(project.data().join(name), shared.join(name)).expect("it is set up");
        symlink(shared.join(name), project.data().join(name)).expect("it is set up");
    }
    std::fs::write(shared.join("other"), "other").expect("it is set up");
    project
}

/// What a command says of these files.
fn touched(project: &Project, files: &[&str]) -> String {
    let out = project.path().join("out");
    let files = files.iter().map(|file| out.join(file).display().to_string());
    let argv: Vec<String> =
        ["bash", "-c", TOUCH, "touch"].map(str::to_owned).into_iter().chain(files).collect();
    let input = json!({ "argv": argv }).to_string();
    let id = create(
        &project.data(),
        &["touch", "--executor", "command", "--input", &input, "--max-attempts", "1"],
    );
    ended(&project.data(), &id, "completed")["data"]["stdout_tail"]
        .as_str()
        .expect("it has output")
        .to_owned()
}

#[test]
fn linked_store_token_and_key_are_out_of_reach() {
    let mut project = linked_project();
    project.start("", |command| command);
    assert_eq!(touched(&project, &LINKED), "");
    // The second one has the same supervisor.
    assert_eq!(touched(&project, &LINKED), "");
    assert_eq!(touched(&project, &["shared/other"]), "READ other\nWRITTEN other\n");
    let log = project.daemon.as_ref().unwrap().log();
    assert!(!log.contains("does not protect everything"), "{log}");
    project.daemon = None;
    project.start_under_layers("", &[], 1);
    assert_eq!(touched(&project, &LINKED), "", "with Landlock alone");
    assert_eq!(touched(&project, &["shared/other"]), "READ other\nWRITTEN other\n");
    assert!(!project.path().join("out/disk/store.sqlite-journal").exists());
}

#[test]
fn linked_store_of_unprivileged_daemon_is_out_of_reach() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let mut project = linked_project();
    project.start_as_nobody();
    assert_eq!(touched(&project, &LINKED), "");
    assert_eq!(touched(&project, &["shared/other"]), "READ other\nWRITTEN other\n");
}

#[test]
fn linked_store_among_other_files_is_announced_or_refused() {
    let mut project = linked_project();
    std::fs::write(project.path().join("out/disk/other"), "other").unwrap();
    project.start("", |command| command);
    let there =
        ["disk/store.sqlite", "disk/store.sqlite-wal", "disk/store.sqlite.mark", "disk/store.sqlite.lock"];
    assert_eq!(touched(&project, &there), "");
    assert_eq!(touched(&project, &["disk/other"]), "READ other\nWRITTEN other\n");
    let log = project.daemon.as_ref().unwrap().log();
    assert_eq!(log.matches("commands can create files beside the store").count(), 1, "{log}");
    project.daemon = None;
    project.start("sandbox: required\n", |command| command);
    let id = project.run("echo runs");
    let result = ended(&project.data(), &id, "failed");
    assert_eq!(result["error"]["code"], "sandbox_unavailable", "{result}");
}
