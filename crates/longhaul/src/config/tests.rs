//! What a configuration may say, and how its mistakes are told.

use domain::policy::JobLife;
use executors::process::{Limits, NewPrivileges};

use super::*;

fn parse(text: &str) -> Result<Config, Mistake> {
    Config::parse(Path::new("f.yaml"), text)
}

fn mistake(text: &str) -> String {
    parse(text).expect_err(text).to_string()
}

/// The file and what is beside it, in a directory of their own.
fn read(dir: &Path, file: &str) -> Result<Config, Mistake> {
    std::fs::write(dir.join("f.yaml"), file).unwrap();
    Config::read(&dir.join("f.yaml"))
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
    let config = parse(WHOLE).unwrap();
    assert_eq!(config.listen, Some("127.0.0.1:0".parse().unwrap()));
    assert_eq!(config.durability, Durability::Relaxed);
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
    use executors::Reach;
    let usual = parse("").unwrap();
    assert_eq!(usual.workspaces.settings(Among::Alone).reach, Reach::EveryNode);
    assert_eq!(usual.workspaces.settings(Among::Others).reach, Reach::ItsNode);
    let said = "workspaces: { max_bytes: 8192, max_files: 7, shared: true, allowed_dirs: [/srv/ws] }\n";
    let settings = parse(said).unwrap().workspaces.settings(Among::Others);
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
        let config = parse(text).unwrap();
        assert_eq!(config.lease(), Lease::DEFAULT);
        assert_eq!(config.durability, Durability::Full);
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
        ("retention: { other_seconds: long }\n", "f.yaml:1:29: must be a duration such as 90s, 1h30m or 7d"),
        ("lanes: { gpu: { limit: long } }\n", "f.yaml:1:24: a whole number is expected here"),
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
    let config = parse(&text).unwrap();
    let circles: Vec<_> = config.executors.iter().map(|one| one.value.circle.as_deref()).collect();
    assert_eq!(circles, [None, Some("acme"), Some("b")]);
    let twice = format!("executors:\n{}{}", entry("circle: acme, "), entry("circle: acme, "));
    assert_eq!(mistake(&twice), r#"f.yaml:3:5: there are two executors named "a" of the circle "acme""#);
    let dir = tempfile::tempdir().unwrap();
    let submit = "submit: { url: https://a.example.com/, idempotent: false }";
    for (name, seconds) in [("a.yaml", 60), ("b.yaml", 70)] {
        let text = format!("name: press\npolicy: {{ max_ttl_seconds: {seconds} }}\n{submit}\n");
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let policy = read(dir.path(), "connectors: [a.yaml, { file: b.yaml, circle: acme }]\n").unwrap().policy();
    let lives = |circle| policy.for_kind_in(circle, "press").max_ttl_seconds;
    assert_eq!((lives(None), lives(Some("acme")), lives(Some("umbrella"))), (60, 70, 60));
    let told =
        read(dir.path(), "connectors: [a.yaml, { file: b.yaml, circl: acme }]\n").unwrap_err().to_string();
    assert!(told.contains(r#"unknown key "circl"; did you mean "circle"?"#), "{told}");
    let told = read(dir.path(), "connectors: [a.yaml, b.yaml]\n").unwrap_err().to_string();
    assert!(told.contains(r#"there are two executors named "press""#), "{told}");
}

#[test]
fn mistakes_about_webhooks_are_told_with_their_place() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("secret"), "a secret of both").unwrap();
    std::fs::write(directory.path().join("short"), "abc\n").unwrap();
    let told = |webhooks: &str| {
        let text = format!("listen: 127.0.0.1:0\nwebhooks:\n{webhooks}");
        let mistake = read(directory.path(), &text).expect_err(webhooks).to_string();
        mistake.replace(&format!("{}/", directory.path().display()), "")
    };
    let one = |more: &str| {
        format!(
            "- {{ name: press, path: /hooks/press, event: called, secret: {{ file: secret }}, signature_header: X-S{more} }}\n"
        )
    };
    assert!(read(directory.path(), &format!("webhooks:\n{}", one(""))).is_ok());
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

/// Every key that the file of examples may leave out, by the text that is refused with the list of what is known there.
const PLACES: [(&str, &str); 15] = [
    ("", "ZZZZZZZZ: 1\n"),
    ("lease", "lease: { ZZZZZZZZ: 1 }\n"),
    ("retention", "retention: { ZZZZZZZZ: 1 }\n"),
    ("clock", "clock: { ZZZZZZZZ: 1 }\n"),
    ("lanes", "lanes: { gpu: { ZZZZZZZZ: 1 } }\n"),
    ("executors", "executors: [{ ZZZZZZZZ: 1 }]\n"),
    ("executors", "executors: [{ limits: { ZZZZZZZZ: 1 } }]\n"),
    ("plugins", "plugins: { tally: { ZZZZZZZZ: 1 } }\n"),
    ("plugins", "plugins: { tally: { retry: { ZZZZZZZZ: 1 } } }\n"),
    ("plugins", "plugins: { tally: { circuit_breaker: { ZZZZZZZZ: 1 } } }\n"),
    ("webhooks", "webhooks: [{ ZZZZZZZZ: 1 }]\n"),
    ("workspaces", "workspaces: { ZZZZZZZZ: 1 }\n"),
    ("events", "events: [{ ZZZZZZZZ: 1 }]\n"),
    ("policy", "policy: { ZZZZZZZZ: 1 }\n"),
    ("policy", "policy: { defaults: { ZZZZZZZZ: 1 } }\n"),
];
/// A key that is refused, with the way around it.
const REFUSED_KEY: &str = "schedules";

#[test]
fn example_has_every_key_of_the_configuration() {
    let example = include_str!("../../../../examples/longhaul.yaml");
    for (section, text) in PLACES {
        let key = format!("{section}:");
        let begins = |line: &str| line.strip_prefix("# ").unwrap_or(line).starts_with(&key);
        let before = example.lines().take_while(|line| !section.is_empty() && !begins(line));
        let from = before.map(|line| line.len() + 1).sum::<usize>();
        let rest = &example[from..];
        // Up to the next key of the whole file.
        let ends = rest.match_indices('\n').map(|(at, _)| at).filter(|at| begins_section(&rest[at + 1..]));
        let end = ends.min().filter(|_| !section.is_empty()).unwrap_or(rest.len());
        for key in known_keys(text).iter().filter(|key| *key != REFUSED_KEY) {
            assert!(
                rest[..end].contains(&format!("{key}:")),
                "examples/longhaul.yaml lacks {key:?} of {section:?}"
            );
        }
    }
}

/// Whether a line begins with a key of the whole file, commented out or not.
fn begins_section(line: &str) -> bool {
    let line = line.strip_prefix("# ").unwrap_or(line);
    known_keys("ZZZZZZZZ: 1\n").iter().any(|key| line.starts_with(&format!("{key}:")))
}

#[test]
fn example_can_be_used_with_what_is_commented_out() {
    let example = include_str!("../../../../examples/longhaul.yaml");
    let (before, from) = example.split_once("# webhooks:").expect("webhooks are commented out");
    let (webhooks, after) = from.split_once("\nworkspaces:").expect("workspaces come after them");
    let webhooks = webhooks.replace("\n# ", "\n");
    let whole =
        format!("{before}webhooks:{webhooks}\nworkspaces:{after}").replace("    # run_as", "    run_as");
    let config = parse(&whole).expect("it can be read");
    assert_eq!(config.webhooks.len(), 1);
}

/// Where durations are: the text before and after the keys, and the keys if the file does not name them.
const DURATION_PLACES: [(&str, &str, Option<&[&str]>); 12] = [
    ("retention: {", "}\n", None),
    ("clock: {", "}\n", None),
    ("policy: {", "}\n", None),
    ("policy: { defaults: {", "} }\n", None),
    ("policy: { kind_overrides: { press: {", "} } }\n", None),
    ("executors: [{ name: a, kind: process, argv: [a],", "}]\n", Some(&["timeout_seconds", "grace_seconds"])),
    ("executors: [{ name: a, kind: backend, argv: [a], roots: [/srv],", "}]\n", Some(&["idle_seconds"])),
    ("executors: [{ name: a, kind: process, argv: [a], retry: {", "} }]\n", None),
    ("executors: [{ name: a, kind: process, argv: [a], limits: {", "} }]\n", None),
    ("plugins: { a: { retry: {", "} } }\n", None),
    ("plugins: { a: { circuit_breaker: {", "} } }\n", None),
    (
        "webhooks: [{ name: a, path: /hooks/a, event: e, secret: { env: A }, signature_header: X, timestamp_header: Y,",
        "}]\n",
        Some(&["max_age_seconds"]),
    ),
];

/// The keys that are known where this text has one that is not.
fn known_keys(text: &str) -> Vec<String> {
    let told = mistake(text);
    let (_, known) = told.split_once("known here: ").unwrap_or_else(|| panic!("{text}: {told}"));
    known.split(", ").map(str::to_owned).collect()
}

/// The keys of a place where durations are.
fn keys_of(&(start, end, keys): &(&str, &str, Option<&[&str]>)) -> Vec<String> {
    match keys {
        Some(keys) => keys.iter().map(|key| (*key).to_owned()).collect(),
        None => known_keys(&format!("{start} ZZZZZZZZ: 1 {end}")),
    }
}

#[test]
fn every_key_of_seconds_is_among_the_places_of_durations() {
    let mut found = std::collections::BTreeSet::new();
    for (_, text) in PLACES {
        found.extend(known_keys(text).into_iter().filter(|key| key.ends_with("_seconds")));
    }
    // The lease has bounds of its own.
    found.remove("renew_every_seconds");
    for key in found {
        assert!(DURATION_PLACES.iter().any(|place| keys_of(place).contains(&key)), "{key}");
    }
}

#[test]
fn connector_file_takes_durations_with_units() {
    let dir = tempfile::tempdir().unwrap();
    let submit = "submit: { url: https://a.example.com/, idempotent: false, timeout_ms: 30s }";
    let press = format!("name: press\npolicy: {{ max_ttl_seconds: 2h }}\n{submit}\n");
    std::fs::write(dir.path().join("press.yaml"), press).unwrap();
    let config = read(dir.path(), "connectors: [press.yaml]\n").unwrap();
    assert_eq!(config.policy().for_kind("press").max_ttl_seconds, 7_200);
}

#[test]
fn example_leaves_the_life_of_work_of_jobs_as_it_is() {
    let example = include_str!("../../../../examples/longhaul.yaml");
    let policy = parse(example).unwrap().policy();
    let (granted, by) = policy.for_job(None, "anything", JobLife::Unbounded);
    assert_eq!((granted.max_ttl_seconds, by), (86_400, domain::policy::LifeLimit::JobTtl));
    let defaults = "policy: { defaults: { max_ttl_seconds: 900 } }\n";
    let policy = parse(defaults).unwrap().policy();
    let (granted, by) = policy.for_job(None, "anything", JobLife::Unbounded);
    assert_eq!((granted.max_ttl_seconds, by), (900, domain::policy::LifeLimit::MaxTtl));
}

#[test]
fn durations_have_one_grammar_in_the_file() {
    let retention = |written: &str| {
        let text = format!("retention: {{ completed_seconds: {written} }}\n");
        parse(&text).map(|config| config.retention().completed_seconds)
    };
    for (written, seconds) in
        [("604800", 604_800), ("7d", 604_800), ("1h30m", 5_400), ("'90'", 90), ("1w", 604_800)]
    {
        assert_eq!(retention(written).expect(written), seconds, "{written}");
        assert_eq!(crate::due_time::duration(written.trim_matches('\'')).unwrap().as_secs(), seconds);
    }
    for written in ["1y", "-5", "'5 m'", "[7d]"] {
        assert!(retention(written).is_err(), "{written}");
    }
    for place in DURATION_PLACES {
        let (known, (start, end, _)) = (keys_of(&place), place);
        let is_duration = |key: &&String| ["seconds", "adopt_after"].iter().any(|end| key.ends_with(end));
        let durations = known.iter().filter(is_duration).collect::<Vec<_>>();
        assert!(!durations.is_empty(), "{start}");
        // As long as each other: what is read knows its place.
        let read = |value: &str| {
            let pairs = durations.iter().map(|key| format!("{key}: {value}")).collect::<Vec<_>>();
            let text = format!("{start} {} {end}", pairs.join(", "));
            format!("{:?}", parse(&text).expect(&text))
        };
        assert_eq!(read("60"), read("1m"), "{start}");
        let text = format!("{start} {}: soon {end}", durations[0]);
        assert!(mistake(&text).contains("must be a duration such as"), "{}", mistake(&text));
    }
    let lease = "lease: { seconds: 1m, renew_every_seconds: 20s }\n";
    let config = parse(lease).unwrap();
    assert_eq!(config.lease(), Lease::new(60, 20).unwrap());
    let policy = |written: &str| {
        let text = format!("policy: {{ defaults: {{ invoke_timeout_ms: {written} }} }}\n");
        parse(&text).map(|config| config.policy().for_all().invoke_timeout_ms)
    };
    assert_eq!(
        (policy("1500").unwrap(), policy("1500ms").unwrap(), policy("2m").unwrap()),
        (1_500, 1_500, 120_000)
    );
    assert!(
        policy("'1500'").unwrap_err().to_string().contains("must be a duration such as 500ms, 30s or 2m")
    );
    assert!(policy("2000h").unwrap_err().to_string().contains("is out of range"));
    let told = retention("11y").unwrap_err().to_string();
    assert!(told.contains("must be a duration such as 90s, 1h30m or 7d"), "{told}");
    let clock = parse("clock: { adopt_after: 1h30m }\n").unwrap();
    assert_eq!(clock.adopt_after_seconds(), 5_400);
    assert!(mistake("clock: { adopt_after: 2d }\n").contains("must be 1 to 86400 seconds, and is 172800"));
}
