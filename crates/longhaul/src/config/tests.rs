//! What a configuration may say, and how its mistakes are told.

use engine::process::{Limits, NewPrivileges};

use super::*;

fn mistake(text: &str) -> String {
    match Config::parse(Path::new("f.yaml"), text) {
        Ok(_) => panic!("{text:?} was taken"),
        Err(mistake) => mistake.to_string(),
    }
}

const WHOLE: &str = "
listen: 127.0.0.1:0
durability: relaxed
lease: { seconds: 30, renew_every_seconds: 10 }
retention: { completed_seconds: 60 }
lanes: { gpu: { limit: 2 } }
executors:
  - name: resize
    kind: process
    argv: [sh, -c, 'cat']
    cwd: /tmp
    env: { allow: [PATH], set: { MODE: 'on' } }
    concurrency: 7
    retry: { max_attempts: 5 }
    timeout_seconds: 9
    grace_seconds: 1
    output_limit_bytes: 1000
    limits: { memory_bytes: 67108864, cpu_seconds: 5, open_files: 64, processes: 9, new_privileges: true }
";

#[test]
fn whole_file_is_read() {
    let config = Config::parse(Path::new("f.yaml"), WHOLE).unwrap();
    assert_eq!(config.listen, Some("127.0.0.1:0".parse().unwrap()));
    assert_eq!(config.durability(), Durability::Relaxed);
    assert_eq!(config.lease(), Lease::new(30, 10).unwrap());
    assert_eq!(config.retention(), Retention { completed_seconds: 60, ..Retention::DEFAULT });
    assert_eq!(config.lane_limits(), BTreeMap::from([("gpu".to_owned(), 2)]));
    let executor = &config.executors[0].value;
    assert_eq!((executor.concurrency(), executor.retry().max_attempts), (7, 5));
    let settings = executor.settings();
    assert_eq!(settings.inherited, ["PATH"]);
    assert_eq!(settings.environment["MODE"], "on");
    assert_eq!(settings.output_limit_bytes, 1_000);
    let limits = Limits {
        memory_bytes: Some(64 * 1_048_576),
        cpu_seconds: Some(5),
        open_files: Some(64),
        processes: Some(9),
        new_privileges: NewPrivileges::Allowed,
    };
    assert_eq!(settings.limits, limits);
}

#[test]
fn workspaces_are_bounded_and_shared_only_by_the_operators_word() {
    use engine::Reach;
    let parse = |text: &str| Config::parse(Path::new("f.yaml"), text).unwrap();
    let usual = parse("");
    assert_eq!(usual.workspaces.settings(Among::Alone).reach, Reach::EveryNode);
    assert_eq!(usual.workspaces.settings(Among::Others).reach, Reach::ItsNode);
    let said =
        parse("workspaces: { max_bytes: 8192, max_files: 7, shared: true, allowed_dirs: [/srv/ws] }\n");
    let settings = said.workspaces.settings(Among::Others);
    assert_eq!(
        (settings.limits.bytes, settings.limits.entries, settings.reach),
        (8_192, 7, Reach::EveryNode)
    );
    assert_eq!(settings.allowed, [Path::new("/srv/ws")]);
    assert!(mistake("workspaces: { max_byte: 1 }\n").contains("max_bytes"));
    assert!(mistake("workspaces: { max_bytes: 0 }\n").contains("must be 4096 to"));
    let told = mistake("workspaces: { allowed_dirs: [srv] }\n");
    assert!(told.contains("1:") && told.contains("begins with a slash"), "{told}");
}

#[test]
fn nothing_is_required() {
    for text in ["", "\n# nothing\n", "{}"] {
        let config = Config::parse(Path::new("f.yaml"), text).unwrap();
        assert_eq!(config.lease(), Lease::DEFAULT);
        assert_eq!(config.durability(), Durability::Full);
    }
}

#[test]
fn unknown_key_is_refused_with_its_place_and_the_nearest_known_one() {
    assert_eq!(
        mistake("listen: 127.0.0.1:1\nexecutor: []\n"),
        "f.yaml:2:1: unknown key \"executor\"; did you mean \"executors\"?"
    );
    let nested = |key| mistake(&format!("executors:\n- name: a\n  kind: process\n  argv: [a]\n  {key}: 4\n"));
    assert_eq!(nested("timeout"), "f.yaml:5:3: unknown key \"timeout\"; did you mean \"timeout_seconds\"?");
    let far = nested("shell");
    assert!(
        far.starts_with("f.yaml:5:3: unknown key \"shell\"; known here: name, circle, kind, argv"),
        "{far}"
    );
    assert_eq!(
        mistake("retention:\n  complete_seconds: 4\n"),
        "f.yaml:2:3: unknown key \"complete_seconds\"; did you mean \"completed_seconds\"?"
    );
}

#[test]
fn every_mistake_is_told_with_its_place() {
    for (text, told) in [
        ("lanes:\n  gpu: { limit: 0 }\n", "f.yaml:2:17: must be 1 to 10000, and is 0"),
        ("durability: no\n", "f.yaml:1:13: \"no\" is not one of: full, relaxed"),
        (
            "durability: fulll\n",
            "f.yaml:1:13: \"fulll\" is not one of: full, relaxed; did you mean \"full\"?",
        ),
        ("lease: { seconds: 5, renew_every_seconds: 1 }\n", "f.yaml:1:8: a lease has 30 to 120 seconds"),
        (
            "lease: { seconds: 60, renew_every_seconds: 50 }\n",
            "f.yaml:1:8: a lease is renewed at least twice",
        ),
        ("executors:\n- { name: slow, kind: process, argv: [a] }\n", "f.yaml:2:3: \"slow\" is built in"),
        ("executors:\n- { name: a, kind: process, argv: [] }\n", "f.yaml:2:3: argv of \"a\" begins with"),
        (
            "executors:\n- { name: a, kind: process, argv: [a] }\n- { name: a, kind: process, argv: [a] }\n",
            "f.yaml:3:3: there are two executors named \"a\"",
        ),
        (
            "executors:\n- { name: a, kind: process, argv: [a], env: { set: { LONGHAUL_X: y } } }\n",
            "f.yaml:2:3: \"LONGHAUL_X\" in env",
        ),
        ("listen: nowhere\n", "f.yaml:1:9: "),
        ("listen: 127.0.0.1:1\nlisten: 127.0.0.1:2\n", "f.yaml:2:1: the key \"listen\" occurs twice"),
        ("lease: { seconds: 60 }\n", "f.yaml:1:10: the key \"renew_every_seconds\" is missing"),
        ("lanes: { gpu: 3 }\n", "f.yaml:1:15: keys with values are expected here"),
        (
            "executors:\n- { name: a, kind: process, argv: wc -w }\n",
            "f.yaml:2:35: a list is expected here, as [one, two]",
        ),
        ("retention: { other_seconds: long }\n", "f.yaml:1:29: a whole number is expected here"),
        ("a: [\n", "f.yaml:"),
    ] {
        let mistake = mistake(text);
        assert!(mistake.starts_with(told), "{text:?}: {mistake}");
    }
}

#[test]
fn bombs_are_refused() {
    let deep = format!("lanes: {}1{}", "[".repeat(40), "]".repeat(40));
    assert!(mistake(&deep).starts_with("f.yaml:"), "{}", mistake(&deep));
    assert!(mistake("lanes: &a { x: { limit: 1 } }\nlanes2: *a\n").starts_with("f.yaml:"));
}

#[test]
fn executors_and_connectors_are_named_once_for_everybody_and_once_for_each_circle() {
    let entry = |circle: &str| format!("  - {{ name: a, {circle}kind: process, argv: [a] }}\n");
    let text = format!("executors:\n{}{}{}", entry(""), entry("circle: acme, "), entry("circle: b, "));
    let config = Config::parse(Path::new("f.yaml"), &text).unwrap();
    let circles: Vec<_> = config.executors.iter().map(|one| one.value.circle.as_deref()).collect();
    assert_eq!(circles, [None, Some("acme"), Some("b")]);
    let twice = format!("executors:\n{}{}", entry("circle: acme, "), entry("circle: acme, "));
    assert_eq!(mistake(&twice), r#"f.yaml:3:5: there are two executors named "a" of the circle "acme""#);
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    file(
        "a.yaml",
        "name: press\npolicy: { max_ttl_seconds: 60 }\nsubmit: { url: https://a.example.com/, idempotent: false }\n",
    );
    file(
        "b.yaml",
        "name: press\npolicy: { max_ttl_seconds: 70 }\nsubmit: { url: https://b.example.com/, idempotent: false }\n",
    );
    file("longhaul.yaml", "connectors: [a.yaml, { file: b.yaml, circle: acme }]\n");
    let config = Config::read(&dir.path().join("longhaul.yaml")).unwrap();
    let policy = config.policy();
    let lives = |circle| policy.for_kind_in(circle, "press").max_ttl_seconds;
    assert_eq!((lives(None), lives(Some("acme")), lives(Some("umbrella"))), (60, 70, 60));
    file("longhaul.yaml", "connectors: [a.yaml, { file: b.yaml, circl: acme }]\n");
    let told = Config::read(&dir.path().join("longhaul.yaml")).unwrap_err().to_string();
    assert!(told.contains(r#"unknown key "circl"; did you mean "circle"?"#), "{told}");
    file("longhaul.yaml", "connectors: [a.yaml, b.yaml]\n");
    let told = Config::read(&dir.path().join("longhaul.yaml")).unwrap_err().to_string();
    assert!(told.contains(r#"there are two executors named "press""#), "{told}");
}

#[test]
fn mistakes_about_webhooks_are_told_with_their_place() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("secret"), "a secret of both").unwrap();
    std::fs::write(directory.path().join("short"), "abc\n").unwrap();
    let file = directory.path().join("f.yaml");
    let told = |webhooks: &str| {
        std::fs::write(&file, format!("listen: 127.0.0.1:0\nwebhooks:\n{webhooks}")).unwrap();
        let mistake = Config::read(&file).expect_err(webhooks).to_string();
        mistake.replace(&format!("{}/", directory.path().display()), "")
    };
    let one = |more: &str| {
        format!(
            "- {{ name: press, path: /hooks/press, event: called, secret: {{ file: secret }}, signature_header: X-S{more} }}\n"
        )
    };
    std::fs::write(&file, format!("webhooks:\n{}", one(""))).unwrap();
    assert!(Config::read(&file).is_ok());
    for (webhooks, expected) in [
        (one(", sekret: 1"), "unknown key \"sekret\"; did you mean \"secret\"?"),
        (one(", max_age_seconds: 60"), "f.yaml:3:3: max_age_seconds of \"press\" needs a timestamp_header"),
        (one(", timestamp_header: X-T, max_age_seconds: 0"), "f.yaml:3:"),
        (one(", max_body_bytes: 2000000"), "f.yaml:3:"),
        (one(", dedupe_header: 'X Y'"), "f.yaml:3:3: \"X Y\" of \"press\" is no name of a header"),
        (one(", circle: ''"), "f.yaml:3:3: "),
        (one("").replace("/hooks/press", "/hooks/a/b"), "f.yaml:3:3: the path \"a/b\" of a webhook"),
        (one("").replace("event: called", "event: ''"), "f.yaml:3:3: the event of \"press\" has 1 to"),
        (one("").replace("file: secret", "file: nowhere"), "nowhere"),
        (one("").replace("file: secret", "file: short"), "has fewer than 8 bytes"),
        (
            one("").replace("{ file: secret }", "{ env: NO_SUCH_VARIABLE_ANYWHERE }"),
            "NO_SUCH_VARIABLE_ANYWHERE",
        ),
        (one("").replace(", signature_header: X-S", ""), "the key \"signature_header\" is missing"),
        (one("") + &one(""), "f.yaml:4:3: there are two webhooks named \"press\""),
        (
            one("") + &one("").replace("name: press", "name: other"),
            "f.yaml:4:3: \"other\" has the path \"press\" of \"press\"",
        ),
    ] {
        let told = told(&webhooks);
        assert!(told.starts_with("f.yaml:") && told.contains(expected), "{webhooks}: {told}");
    }
}
