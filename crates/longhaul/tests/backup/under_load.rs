//! Backups beside a daemon that accepts two hundred jobs a second, each restored elsewhere and compared: nothing of the ledger up to the
//! backup's position is missing or different, and a daemon on what was restored goes on with it.
//!
//! `LONGHAUL_BACKUPS` says how many backups are taken of each store.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::given::{expect, longhaul};
use crate::home::{Home, Kind, backup_file, differences, number, texts};
use crate::load::{Answers, Load, again, token};

/// Keys that are sent again to each restored store.
const KEYS: usize = 20;
/// Until everything that was open is over, however slow the machine is.
const ENDED_WITHIN: Duration = Duration::from_mins(5);
/// From the first thing that a daemon on a restored store does to the last attempt that it takes up. A lease would end later: that none is
/// waited for is part of it.
const TAKEN_UP_WITHIN: Duration = Duration::from_secs(40);
const DEFAULT_BACKUPS: usize = 2;
/// Creates for each backup: more than come while it is taken, unless it takes very long. What is open then must not be without end.
const PER_BACKUP: usize = 1_000;

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
            // Something new since the one before, leases that are held, and the output of a command.
            load.allow(PER_BACKUP);
            let enough = load.accepted() + 100;
            crate::given::within("a hundred more", || (load.accepted() >= enough).then_some(()));
            let output = home.path().join("artifacts");
            crate::given::within("output", || {
                output.read_dir().is_ok_and(|mut jobs| jobs.next().is_some()).then_some(())
            });
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

/// What was at work when the backup was taken was taken up again, and not when its lease was over.
fn taken_up_in_time(restored: &Home, file: &Path, held: &[String]) {
    let position = number(file, "SELECT value FROM backup WHERE name = 'position'");
    let mut first_of: BTreeMap<String, jiff::Timestamp> = BTreeMap::new();
    for line in restored.facts_up_to(u64::MAX) {
        let fact: Value = serde_json::from_str(&line).expect("it is JSON");
        if fact["position"].as_i64().expect("it has one") > position {
            let at = fact["at"].as_str().expect("it is text").parse().expect("it is a time");
            first_of.entry(fact["stream"].as_str().expect("it is text").to_owned()).or_insert(at);
        }
    }
    let first = *first_of.values().min().expect("it has done something");
    for id in held {
        let taken_up = first_of[id].duration_since(first);
        assert!(taken_up.unsigned_abs() < TAKEN_UP_WITHIN, "{id} was taken up after {taken_up:?}");
    }
}

/// A daemon on it finishes what was open, knows the token, and answers what was asked before as it did.
fn goes_on(restored: &Home, file: &Path, token: &str, answers: &Answers) {
    let held = texts(file, "SELECT id FROM jobs WHERE state IN ('dispatching', 'running')");
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
    println!("what was open, {} of it at work, was over after {:?}", held.len(), begun.elapsed());
    taken_up_in_time(restored, file, &held);
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
