//! `longhaul plugin list | show | check | new`: what can be said of plugins without a daemon.

use std::path::Path;

use crate::given::{expect, json, longhaul, stderr};

/// A file, with the directories above it.
fn put(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("it can be")).expect("it can be");
    std::fs::write(path, text).expect("it can be");
}

fn new(dir: &Path, name: &str, lang: &str) {
    let plugins = dir.join("plugins");
    let made = longhaul(
        dir,
        &["plugin", "new", name, "--lang", lang, "--dir", plugins.to_str().expect("it is text")],
    );
    expect(0, &made);
}

#[test]
fn new_plugin_of_every_language_can_be_used_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    for lang in ["bash", "python", "rust"] {
        new(dir.path(), &format!("greet-{lang}"), lang);
        let plugin = dir.path().join("plugins").join(format!("greet-{lang}"));
        let checked = longhaul(dir.path(), &["plugin", "check", plugin.to_str().unwrap()]);
        assert!(expect(0, &checked).contains("poll, handle, health"));
        assert_eq!(stderr(&checked), "");
    }
    let all = longhaul(dir.path(), &["plugin", "check", dir.path().join("plugins").to_str().unwrap()]);
    assert!(expect(0, &all).starts_with("3 can be used: greet-bash, greet-python, greet-rust; 0 cannot"));
    let twice = longhaul(dir.path(), &["plugin", "new", "a b", "--lang", "bash"]);
    expect(2, &twice);
}

#[test]
fn broken_plugin_is_told_with_file_and_line_and_the_others_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    new(dir.path(), "good", "bash");
    put(
        &dir.path().join("plugins/bad/manifest.yaml"),
        "name: bad\nprotocol: 2\nentrypoint: ../x\ncommands: [poll]\n",
    );
    let config = dir.path().join("longhaul.yaml");
    put(&config, "plugin_roots: [plugins]\nplugins:\n  other: { uses: good, parallelism: 3 }\n  lost: {}\n");
    let config = config.to_str().unwrap();
    let checked = longhaul(dir.path(), &["plugin", "check", "--config", config]);
    assert!(expect(1, &checked).starts_with("2 can be used: good, other; 2 cannot"));
    let told = stderr(&checked);
    assert!(told.contains("bad/manifest.yaml:3:13: entrypoint may not contain `..`"), "{told}");
    assert!(told.contains("longhaul.yaml:4:9: no plugin is named \"lost\""), "{told}");
    let list = json(dir.path(), &["plugin", "list", "--config", config]);
    let lanes: Vec<_> = list["plugins"].as_array().unwrap().iter().map(|one| &one["lane"]).collect();
    assert_eq!(lanes, ["serial:plugin:good", "plugin:other"]);
    let shown = longhaul(dir.path(), &["plugin", "show", "other", "--config", config]);
    assert!(expect(0, &shown).contains("uses: good"));
    let missing = longhaul(dir.path(), &["plugin", "show", "goood", "--config", config]);
    expect(4, &missing);
    assert!(stderr(&missing).contains("did you mean \"good\"?"));
}

#[test]
fn mistakes_about_plugins_are_told_with_their_places() {
    let dir = tempfile::tempdir().unwrap();
    new(dir.path(), "good", "bash");
    let config = dir.path().join("longhaul.yaml");
    for (text, told) in [
        ("plugin_roots: [nowhere]\n", "longhaul.yaml:1:16: "),
        (
            "plugin_roots: [plugins]\nplugins:\n  a: { uses: b }\n",
            "longhaul.yaml:3:6: \"a\" uses \"b\", and no plugin is named so",
        ),
        (
            "plugin_roots: [plugins]\nplugins:\n  good: { schedules: [{ every: 5m }] }\n",
            "schedules come later with calendars",
        ),
        (
            "plugin_roots: [plugins]\nplugins:\n  noop: { uses: good }\n",
            "longhaul.yaml:3:9: the plugin \"noop\" is left out: every daemon has",
        ),
        (
            "plugin_roots: [plugins]\nexecutors: [{ name: good, kind: process, argv: [a] }]\n",
            "good/manifest.yaml:3:7: the plugin \"good\" is left out: the configuration has an executor of that name",
        ),
        (
            "plugins:\n  good: { timeout: {} }\n",
            "longhaul.yaml:2:11: unknown key \"timeout\"; did you mean \"timeouts\"?",
        ),
        (
            "plugins:\n  good: { secrets: { KEY: {} } }\n",
            "longhaul.yaml:2:9: the secret \"KEY\" of \"good\" comes from either",
        ),
    ] {
        put(&config, text);
        for command in [&["plugin", "check"][..], &["config", "check"]] {
            let config = config.to_str().unwrap();
            let checked = longhaul(dir.path(), &[command, &["--config", config]].concat());
            // A plugin that is left out keeps nothing else from being used.
            let costs_only_itself = command[0] == "config" && stderr(&checked).starts_with("warning: ");
            expect(i32::from(!costs_only_itself), &checked);
            let said = stderr(&checked);
            assert!(said.contains(told), "{text}: {said}");
        }
    }
}
