//! The facts of every release, as they lie in somebody's ledger. A file of a release that is out is never edited. `before-0.1.0.jsonl` has those
//! that hold what a service said.
//!
//! The file of the version in the making is written by `LONGHAUL_BLESS=1 cargo test -p store --test facts`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use store::{decode_fact, encode_fact, fact_kind, lift_fact};

use crate::samples::{KINDS, every_fact};

/// One line of a file.
#[derive(Serialize, Deserialize)]
struct Line {
    kind: String,
    payload: Box<RawValue>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/releases")
}

fn lines(release: &Path) -> Vec<Line> {
    let text = fs::read_to_string(release).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn this_release() -> PathBuf {
    let release = folder().join(concat!(env!("CARGO_PKG_VERSION"), ".jsonl"));
    if std::env::var_os("LONGHAUL_BLESS").is_some_and(|value| value == "1") {
        let line = |fact| {
            let payload = RawValue::from_string(encode_fact(&fact)).unwrap();
            serde_json::to_string(&Line { kind: fact_kind(&fact).to_owned(), payload }).unwrap() + "\n"
        };
        fs::write(&release, every_fact().into_iter().map(line).collect::<String>()).unwrap();
    }
    release
}

#[test]
fn facts_of_this_release_are_read_and_written_word_for_word() {
    let release = this_release();
    let mut kinds = BTreeSet::new();
    for Line { kind, payload } in lines(&release) {
        let fact = decode_fact(&kind, payload.get()).unwrap();
        assert_eq!((fact_kind(&fact), encode_fact(&fact).as_str()), (kind.as_str(), payload.get()));
        kinds.insert(kind);
    }
    let missing: Vec<_> = KINDS.iter().filter(|kind| !kinds.contains(**kind)).collect();
    assert!(missing.is_empty(), "{} has no {missing:?}", release.display());
}

#[test]
fn facts_of_every_release_are_read() {
    let releases: Vec<PathBuf> = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!releases.is_empty());
    for release in releases {
        for Line { kind, payload } in lines(&release) {
            // An old kind may be lifted to another one; it is never refused.
            decode_fact(&kind, payload.get())
                .unwrap_or_else(|error| panic!("{}: {kind}: {error}", release.display()));
        }
    }
}

#[test]
fn words_of_services_in_old_facts_are_left_out() {
    let (mut held, mut kept) = (0, 0);
    for Line { kind, payload } in lines(&folder().join("before-0.1.0.jsonl")) {
        let shown = encode_fact(&decode_fact(&kind, payload.get()).unwrap());
        let (_, exported) = lift_fact(&kind, payload.get());
        for text in [&shown[..], &exported[..]] {
            assert!(!text.contains("PATIENT-7"), "{text}");
        }
        if payload.get().contains("PATIENT-7") {
            assert!(
                ["service_error", "connect_failed"].iter().any(|code| exported.contains(code)),
                "{exported}"
            );
            held += 1;
        } else {
            assert_eq!((&shown[..], &exported[..]), (payload.get(), payload.get()));
            kept += 1;
        }
    }
    assert_eq!((held, kept), (4, 4));
}
