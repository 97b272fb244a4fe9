//! What `longhaul connector` says of itself, and the recorded exchange that its help prints.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::json;

use crate::config::copied;
use crate::given::{Daemon, binary, expect, longhaul, stderr};
use crate::handed_over::call;

const RECIPE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/connectors/accepted-location.yaml");

#[test]
fn connector_help_names_the_verbs_that_there_are() {
    let dir = tempfile::tempdir().unwrap();
    let help = expect(0, &longhaul(dir.path(), &["connector", "--help"]));
    assert!(help.starts_with("Check and sign connector files, and replay recorded exchanges\n"), "{help}");
    let verbs = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let verbs: Vec<&str> = verbs.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(verbs, ["check", "test", "sign", "keygen", "help"]);
    assert!(!help.to_lowercase().contains(" try connectors"), "{help}");
}

#[test]
fn exchange_in_the_help_can_be_copied_and_replayed() {
    for columns in ["80", "200"] {
        let dir = tempfile::tempdir().unwrap();
        let help = binary(&["connector", "test", "--help"]).env("COLUMNS", columns).output().unwrap();
        let exchange = copied(&expect(0, &help), "  input: { month: '2026-10' }         # the job's input");
        let file = dir.path().join("recorded.yaml");
        let file = file.to_str().unwrap();
        std::fs::write(file, &exchange).unwrap();
        let told = expect(0, &longhaul(dir.path(), &["connector", "test", RECIPE, "--exchange", file]));
        assert!(told.contains("step 2: ") && told.contains(r#""completed":{"rows":12}"#), "{told}");
        std::fs::write(file, exchange.replace("rows: 12 } }\n      then", "rows: 13 } }\n      then"))
            .unwrap();
        let differs = longhaul(dir.path(), &["connector", "test", RECIPE, "--exchange", file]);
        expect(1, &differs);
        assert!(stderr(&differs).contains("step 2: expected"), "{}", stderr(&differs));
    }
}

/// Every field of the format is in the page that documents it.
#[test]
fn page_of_connectors_documents_every_field_of_an_exchange() {
    let page = include_str!("../../../../examples/connectors/README.md");
    let (_, page) = page.split_once("## Recorded exchanges").expect("it has its part");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("recorded.yaml");
    for text in [
        "zzzzzzzzzz: 1\n",
        "steps: [{ zzzzzzzzzz: 1 }]\n",
        "steps: [{ call: poll, exchange: [{ zzzzzzzzzz: 1 }] }]\n",
        "steps: [{ call: poll, exchange: [{ request: { zzzzzzzzzz: 1 } }] }]\n",
        "steps: [{ call: poll, exchange: [{ request: { method: GET, url: x }, answer: { zzzzzzzzzz: 1 } }] }]\n",
    ] {
        std::fs::write(&file, text).unwrap();
        let refused =
            longhaul(dir.path(), &["connector", "test", RECIPE, "--exchange", file.to_str().unwrap()]);
        expect(1, &refused);
        let told = stderr(&refused);
        let (_, known) = told.split_once("known here: ").expect("what is known is listed");
        for key in known.trim().split(", ") {
            assert!(
                page.contains(&format!("`{key}`")) || page.contains(&format!(".{key}`")),
                "{key} of {text}"
            );
        }
    }
}

const SERVICE: &str = include_str!("../../../../examples/connectors/slow-service.yaml");

/// Makes a key, and gives the line of the configuration that wants its signature.
fn keygen(dir: &Path, name: &str) -> String {
    let key = dir.join(name);
    let line = expect(
        0,
        &longhaul(
            dir,
            &["connector", "keygen", "--out", key.to_str().expect("what the test needs is there")],
        ),
    );
    assert_eq!(fs::metadata(&key).expect("what the test needs is there").permissions().mode() & 0o777, 0o600);
    line
}

fn sign(dir: &Path, key: &str) {
    let (file, key) = (dir.join("slow.yaml"), dir.join(key));
    expect(
        0,
        &longhaul(
            dir,
            &[
                "connector",
                "sign",
                file.to_str().expect("what the test needs is there"),
                "--key",
                key.to_str().expect("what the test needs is there"),
            ],
        ),
    );
}

/// Every way in which a connector is loaded refuses it, with the file and the reason, and nothing is begun.
#[track_caller]
fn is_refused(dir: &Path, reason: &str) {
    let path = |name: &str| dir.join(name).to_str().expect("what the test needs is there").to_owned();
    let (file, listing, keys) = (path("slow.yaml"), path("listing.yaml"), path("keys.yaml"));
    for arguments in [&["connector", "check", &file, "--config", &keys][..], &["config", "check", &listing]] {
        let refused = longhaul(dir, arguments);
        expect(1, &refused);
        let told = stderr(&refused);
        assert!(told.contains(&format!("{file}: {reason}")), "{arguments:?}: {told}");
    }
    for arguments in [&["--config", &listing][..], &["--config", &keys, "--connector", &file]] {
        let serve = [&["serve", "--listen", "127.0.0.1:0"], arguments].concat();
        // What was said before is none of it.
        let _ = fs::remove_file(dir.join("log"));
        match Daemon::try_verb(dir, &serve) {
            Ok(_) => panic!("{arguments:?}: it is served"),
            Err(told) => assert!(told.contains(&format!("{file}: {reason}")), "{arguments:?}: {told}"),
        }
    }
    assert!(!dir.join("longhaul.sqlite").exists());
}

// conforms: O129
#[test]
fn connector_without_the_operators_signature_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let keys = keygen(dir, "operator.key");
    keygen(dir, "other.key");
    fs::write(dir.join("keys.yaml"), &keys).unwrap();
    fs::write(dir.join("listing.yaml"), format!("{keys}connectors: [slow.yaml]\n")).unwrap();
    fs::write(dir.join("slow.yaml"), SERVICE).unwrap();
    is_refused(dir, "is not signed");

    sign(dir, "other.key");
    is_refused(dir, "is not as it was signed");

    sign(dir, "operator.key");
    fs::write(dir.join("slow.yaml"), format!("{SERVICE}# one line more\n")).unwrap();
    is_refused(dir, "is not as it was signed");

    fs::write(dir.join("slow.yaml.sig"), "no signature").unwrap();
    is_refused(dir, "is not as it was signed");
}

// conforms: O129
#[test]
fn connector_signed_by_a_listed_key_is_served() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let first = keygen(dir, "operator.key");
    let second = keygen(dir, "other.key");
    let both = first.trim().replace(']', ", ") + second.trim().strip_prefix("connector_keys: [").unwrap();
    let config = dir.join("longhaul.yaml");
    fs::write(&config, format!("{both}\nconnectors: [slow.yaml]\n")).unwrap();
    fs::write(dir.join("slow.yaml"), SERVICE).unwrap();
    for key in ["operator.key", "other.key"] {
        sign(dir, key);
        let file = dir.join("slow.yaml");
        let (file, config) = (file.to_str().unwrap(), config.to_str().unwrap());
        expect(0, &longhaul(dir, &["connector", "check", file, "--config", config]));
        let _daemon = Daemon::start_with(dir, &["--config", config]);
        let executors = expect(0, &longhaul(dir, &["executors"]));
        assert!(executors.contains("slow-service"), "{executors}");
        // What a call is given says by which file, as its operator has written and signed it.
        let body = json!({ "input": {}, "timing": { "mode": "async" } });
        let (status, handle) = call(dir, "/v1/capabilities/slow-service/invoke", &body);
        assert_eq!(status, 202, "{handle}");
        let digest = format!("sha256:{}", store::sha256(SERVICE.as_bytes()));
        assert_eq!(handle["extensions"]["catalog_digest"], digest);
    }
}

#[test]
fn signatures_are_not_looked_at_without_connector_keys() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("slow.yaml");
    fs::write(&file, SERVICE).unwrap();
    fs::write(dir.path().join("slow.yaml.sig"), "no signature").unwrap();
    expect(0, &longhaul(dir.path(), &["connector", "check", file.to_str().unwrap()]));
    let _daemon = Daemon::start_with(dir.path(), &["--connector", file.to_str().unwrap()]);
}

/// A list that was emptied by mistake must not read as if no signature were wanted.
#[test]
fn connector_keys_without_a_usable_key_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("longhaul.yaml");
    for keys in ["", " []", " [press]", "\n  # - the only key"] {
        fs::write(&file, format!("durability: full\nconnector_keys:{keys}\n")).unwrap();
        let refused = longhaul(dir.path(), &["config", "check", file.to_str().unwrap()]);
        expect(1, &refused);
        assert!(stderr(&refused).contains("longhaul.yaml:2:"), "{keys:?}: {}", stderr(&refused));
    }
}

#[test]
fn keygen_replaces_no_file_and_sign_takes_no_broken_connector() {
    let dir = tempfile::tempdir().unwrap();
    keygen(dir.path(), "operator.key");
    let key = dir.path().join("operator.key");
    let key = key.to_str().unwrap();
    let before = fs::read(key).unwrap();
    expect(1, &longhaul(dir.path(), &["connector", "keygen", "--out", key]));
    assert_eq!(fs::read(key).unwrap(), before);
    let file = dir.path().join("slow.yaml");
    fs::write(&file, "name: slow\n").unwrap();
    expect(1, &longhaul(dir.path(), &["connector", "sign", file.to_str().unwrap(), "--key", key]));
    assert!(!dir.path().join("slow.yaml.sig").exists());
}
