//! What a manifest may say, and how its mistakes are told.

use super::*;

const WHOLE: &str = "\
manifest_spec: ductile.plugin
manifest_version: 1
name: tide_gauge
version: 0.3.1
protocol: 2
entrypoint: gauge.py
concurrency_safe: false
commands:
  - name: poll
    type: read
    idempotent: true
    input_schema: { station: string }
    values: { consume: [payload.station] }
  - { name: health, type: read }
fact_outputs:
  - when: { command: poll }
    from: state_updates
    fact_type: tide_gauge.snapshot
    compatibility_view: mirror_object
config_keys: { required: [port], optional: [timeout_seconds] }
stopwatch: { max_subs: 64 }
";

fn mistake(text: &str) -> String {
    match Manifest::parse("m.yaml", text) {
        Ok(manifest) => panic!("it was taken: {manifest:?}"),
        Err(mistake) => mistake.to_string(),
    }
}

fn warnings(text: &str) -> Vec<String> {
    Manifest::parse("m.yaml", text).unwrap().warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn whole_manifest_is_read_without_a_warning() {
    let manifest = Manifest::parse("m.yaml", WHOLE).unwrap();
    assert_eq!(manifest.name, "tide_gauge");
    assert_eq!(manifest.version.as_deref(), Some("0.3.1"));
    assert!(!manifest.concurrency_safe);
    assert_eq!(manifest.command("poll").unwrap().effect, Effect::Read);
    assert_eq!(manifest.fact_outputs[0].view, FactView::Mirror);
    assert_eq!(manifest.required_keys, ["port"]);
    assert_eq!(warnings(WHOLE), [""; 0]);
}

#[test]
fn manifest_of_the_first_era_is_accepted_with_warnings() {
    let text = "name: echo\nprotocol: 2\nentrypoint: run.sh\ncommands: [poll, handle]\n";
    let manifest = Manifest::parse("m.yaml", text).unwrap();
    assert_eq!(manifest.command("handle").unwrap().effect, Effect::Write);
    assert!(manifest.concurrency_safe);
    let told = warnings(text);
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(told[0].contains("manifest_spec: ductile.plugin"), "{told:?}");
    assert!(told[2].starts_with("m.yaml:4:12: \"poll\" should be"), "{told:?}");
}

#[test]
fn keys_that_nobody_reads_are_told_with_their_places() {
    let text =
        WHOLE.replace("version: 0.3.1", "versoin: 0.3.1").replace("idempotent: true", "idempotnet: true");
    assert_eq!(
        warnings(&text),
        [
            "m.yaml:4:1: unknown key \"versoin\" is ignored; did you mean \"version\"?",
            "m.yaml:11:5: unknown key \"idempotnet\" is ignored; did you mean \"idempotent\"?",
        ]
    );
}

#[test]
fn every_mistake_is_told_with_its_place() {
    for (from, to, told) in [
        ("ductile.plugin", "other.plugin", "m.yaml:1:16: manifest_spec must be \"ductile.plugin\""),
        ("manifest_version: 1", "manifest_version: 2", "m.yaml:2:19: manifest_version must be 1"),
        ("name: tide_gauge", "name: tide gauge", "m.yaml:3:7: a name has 1 to 64 letters"),
        ("name: tide_gauge\n", "", "m.yaml:20:1: the key \"name\" is missing"),
        ("protocol: 2", "protocol: 1", "m.yaml:5:11: protocol must be 2"),
        ("gauge.py", "../gauge.py", "m.yaml:6:13: entrypoint may not contain `..`"),
        ("gauge.py", "/bin/sh", "m.yaml:6:13: entrypoint must be relative"),
        ("- name: poll", "- name: 1poll", "m.yaml:9:11: the name of a command begins with a letter"),
        ("    type: read\n", "", "m.yaml:9:11: the command \"poll\" needs a type: read or write"),
        ("    type: read\n", "    type: execute\n", "m.yaml:10:11: type must be read or write"),
        ("name: health", "name: poll", "m.yaml:14:5: there are two commands named \"poll\""),
        ("{ command: poll }", "{ command: pol }", "m.yaml:16:5: fact_outputs: \"pol\" is no command"),
        ("from: state_updates", "from: events", "m.yaml:16:5: fact_outputs: from must be state_updates"),
        ("mirror_object", "mirror", "m.yaml:16:5: fact_outputs: compatibility_view must be"),
        ("concurrency_safe: false", "concurrency_safe: maybe", "m.yaml:7:19: "),
        ("commands:", "commands: [", "m.yaml:"),
    ] {
        let mistake = mistake(&WHOLE.replacen(from, to, 1));
        assert!(mistake.starts_with(told), "{from} to {to}: {mistake}");
    }
    let none = "name: a\nprotocol: 2\nentrypoint: a\ncommands: []\n";
    assert_eq!(mistake(none), "m.yaml:4:11: commands must list 1 to 100 commands");
}
