//! Backups beside a daemon that accepts two hundred jobs a second, each restored elsewhere and compared: nothing of the ledger up to the
//! backup's position is missing or different, and a daemon on what was restored goes on with it.
//!
//! `LONGHAUL_BACKUPS` says how many backups are taken of each store.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::given::{expect, longhaul};
use crate::home::{Home, Kind, backup_file, differences, number};
use crate::load::{Answers, Load, again, token};

/// Keys that are sent again to each restored store.
const KEYS: usize = 20;
/// Until everything that was open is over. A lease would end later: that none is waited for is part of it.
const ENDED_WITHIN: Duration = Duration::from_secs(40);
const DEFAULT_BACKUPS: usize = 2;

#[test]
fn backups_of_a_file_under_load_are_the_same_elsewhere_on_a_file_and_in_a_database() {
    taken_under_load(Kind::File);
}

#[test]
fn backups_of_a_database_under_load_are_the_same_elsewhere_in_a_database_and_on_a_file() {
    taken_under_load(Kind::Server);
}

struct Taken {
    dir: tempfile::TempDir,
    said: Value,
}

fn taken_under_load(kind: Kind) {
    let home = Home::new(kind);
    let daemon = home.daemon(&[]);
    let token = token(&home);
    let backups = std::env::var("LONGHAUL_BACKUPS").ok().and_then(|text| text.parse().ok());
    let begun = Instant::now();
    let (taken, answers) = Load::around(&daemon, &token, |load| {
        let mut taken: Vec<Taken> = Vec::new();
        for _ in 0..backups.unwrap_or(DEFAULT_BACKUPS) {
            // Something new since the one before, and leases that are held.
            let enough = load.accepted() + 100;
            crate::given::within("a hundred more", || (load.accepted() >= enough).then_some(()));
            let (dir, file) = backup_file();
            let said = home.backup(&file);
            taken.push(Taken { dir, said });
        }
        taken
    });
    let rate = f64::from(u32::try_from(answers.len()).expect("it is small")) / begun.elapsed().as_secs_f64();
    println!("{} backups of {kind:?} beside {rate:.0} creates a second", taken.len());
    for (place, taken) in taken.iter().enumerate() {
        let file = taken.dir.path().join("made.backup");
        // Both targets, one after the other; the first of each goes on.
        let target = if place % 2 == 0 { other(kind) } else { kind };
        let restored = restored_and_compared(&home, taken, &file, target);
        if place < 2 {
            goes_on(&restored, &file, &token, &answers);
        }
    }
}

fn other(kind: Kind) -> Kind {
    match kind {
        Kind::File => Kind::Server,
        Kind::Server => Kind::File,
    }
}

fn restored_and_compared(home: &Home, taken: &Taken, file: &Path, target: Kind) -> Home {
    let position = taken.said["position"].as_u64().expect("it is a number");
    let restored = Home::new(target);
    let said = restored.restore(file);
    for name in ["position", "records", "facts"] {
        assert_eq!(said[name], taken.said[name], "{name}");
    }
    restored.verify();
    let (here, there) = (home.facts_up_to(position), restored.facts_up_to(u64::MAX));
    assert_eq!(here.len() as u64, taken.said["facts"].as_u64().expect("it is a number"));
    assert!(here == there, "the ledgers differ up to position {position}");
    // What is restored is what was backed up, row by row, in every table.
    let (_dir, again) = backup_file();
    restored.backup(&again);
    assert_eq!(differences(file, &again), Vec::<String>::new());
    let leases = "SELECT count(*) FROM agenda WHERE held = 1 AND owner LIKE 'daemon%'";
    assert_eq!(number(file, leases), 0, "a lease of a daemon that is not there");
    assert_eq!(number(file, "SELECT count(*) FROM nodes"), 0);
    assert!(number(file, "SELECT count(*) FROM backup_artifact_chunks") > 0, "no artifact came along");
    restored
}

/// A daemon on it finishes what was open, knows the token, and answers what was asked before as it did.
fn goes_on(restored: &Home, file: &Path, token: &str, answers: &Answers) {
    let open = "SELECT count(*) FROM jobs WHERE state IN ('dispatching', 'running')";
    let held = number(file, open);
    let daemon = restored.daemon(&[]);
    let begun = Instant::now();
    // Those that wait for somebody go on waiting.
    let waiting = usize::try_from(number(
        file,
        "SELECT count(*) FROM jobs WHERE state = 'queued' AND view NOT LIKE '%\"executor\":\"%'",
    ));
    let waiting = waiting.expect("it is small");
    while restored.open_jobs().len() > waiting {
        assert!(begun.elapsed() < ENDED_WITHIN, "{} of {waiting} are open", restored.open_jobs().len());
        std::thread::sleep(Duration::from_millis(100));
    }
    println!("what was open, {held} of it at work, was over after {:?}", begun.elapsed());
    let mut sent = 0;
    for (key, answered) in answers {
        let answer: Value = serde_json::from_str(answered).expect("it is JSON");
        let id = answer["status"]["job_id"].as_str().or(answer["job_id"].as_str()).expect("it has an id");
        let is_there = number(file, &format!("SELECT count(*) FROM jobs WHERE id = '{id}'")) > 0;
        if is_there && sent < KEYS {
            sent += 1;
            assert_eq!(&again(&daemon, token, key), answered, "{key}");
        }
    }
    assert_eq!(sent, KEYS);
    // New work has its place in the ledger, above all that ever was.
    let created = longhaul(restored.path(), &["jobs", "create", "new", "--executor", "noop", "--json"]);
    let created: Value = serde_json::from_str(&expect(0, &created)).expect("it is JSON");
    expect(0, &longhaul(restored.path(), &["jobs", "wait", created["job_id"].as_str().expect("it is text")]));
    restored.verify();
}
