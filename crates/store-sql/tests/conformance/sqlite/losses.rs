//! File and log damaged at random, after a kill and after a stop, and files and logs that are not those of the store. The store is refused with a code,
//! or every record that was acknowledged is there with the same content. Nobody runs `verify` first.
//!
//! `LONGHAUL_LOG_DAMAGES` says how often each kind of damage is done.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::{BodyName, Record, RecordId};
use store::{Head, Store, StoreError, StoredFact};
use store_sql::{OpenError, SqliteOptions, SqliteStore, open_for_reading, open_for_rebuilding, verify};

use super::damage::Chance;
use super::file::File;
use crate::given::*;

const DAMAGES: u64 = 600;
const JOBS: usize = 12;
const SECTOR: usize = 512;
const PAGE: usize = 4_096;
const PARTS: [&str; 3] = ["", "-wal", ".mark"];

/// What a process has left: the file, its log, its watermark.
#[derive(Clone)]
struct Remains([Option<Vec<u8>>; 3]);

impl Remains {
    fn of(path: &Path) -> Self {
        Self(PARTS.map(|part| std::fs::read(beside(path, part)).ok()))
    }

    fn put(&self) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("longhaul.sqlite");
        for (part, bytes) in PARTS.iter().zip(&self.0) {
            if let Some(bytes) = bytes {
                std::fs::write(beside(&path, part), bytes).unwrap();
            }
        }
        (directory, path)
    }

    fn file(&mut self) -> &mut Vec<u8> {
        self.0[0].as_mut().unwrap()
    }

    fn log(&mut self) -> &mut Vec<u8> {
        self.0[1].as_mut().unwrap()
    }
}

fn beside(path: &Path, part: &str) -> PathBuf {
    PathBuf::from(format!("{}{part}", path.display()))
}

/// One record as it was acknowledged.
#[derive(PartialEq, Debug)]
struct Acknowledged {
    record: Arc<Record>,
    head: Head,
    facts: Vec<StoredFact>,
    body: Option<Vec<u8>>,
}

type Records = BTreeMap<RecordId, Acknowledged>;

async fn read(store: &SqliteStore, id: &RecordId) -> Result<Option<Acknowledged>, StoreError> {
    let Some(loaded) = store.load(id).await? else { return Ok(None) };
    let facts = store.facts_of(id, 0, 1_000).await?;
    let body = match loaded.record.as_job().and_then(|job| job.bodies.first()) {
        Some(body) => store.body(id, *body).await?,
        None => None,
    };
    Ok(Some(Acknowledged { record: loaded.record, head: loaded.head, facts, body }))
}

async fn all(store: &SqliteStore) -> Records {
    let mut records = Records::new();
    for fact in store.facts_after(0, 1_000).await.unwrap() {
        if let Some(record) = read(store, &fact.stream).await.unwrap() {
            records.insert(fact.stream, record);
        }
    }
    records
}

async fn add_jobs(store: &SqliteStore, from: usize) {
    for number in from..from + JOBS {
        let id = job(&format!("more-{number:03}"));
        let input = new_body(BodyName::Input, format!("{{\"number\":{number}}}").repeat(20).as_bytes());
        let mut change = creation(&id, created_with(|new| new.bodies = vec![input.body]), at(100));
        change.bodies = vec![input];
        store.commit(commit(vec![change], at(100))).await.unwrap();
        if number.is_multiple_of(3) {
            taken(store, &id, "node-a", at(101)).await;
            write(store, &id, vec![dispatched(1), noted("begun")], at(102)).await;
            write(store, &id, vec![completed()], at(103)).await;
        }
    }
}

/// A store's life: what its processes left when they were killed and when they stopped, and what was acknowledged by then.
struct Life {
    killed: Remains,
    stopped: Remains,
    acknowledged: Records,
    /// Of earlier moments: killed in the same run, and stopped in runs before.
    earlier_killed: Vec<Remains>,
    earlier_stopped: Vec<Remains>,
}

async fn live() -> Life {
    let file = File::lived_in().await;
    let mut earlier_stopped = vec![Remains::of(&file.path())];
    for run in 0..3 {
        let store = file.open();
        add_jobs(&store, run * JOBS).await;
        drop(store);
        earlier_stopped.push(Remains::of(&file.path()));
    }
    let store = file.open();
    let mut earlier_killed = Vec::new();
    for run in 3..6 {
        add_jobs(&store, run * JOBS).await;
        earlier_killed.push(Remains::of(&file.path()));
    }
    // Something that is no fact, and is acknowledged.
    taken(&store, &job("more-001"), "node-b", at(200)).await;
    let acknowledged = all(&store).await;
    let killed = Remains::of(&file.path());
    drop(store);
    Life { killed, stopped: Remains::of(&file.path()), acknowledged, earlier_killed, earlier_stopped }
}

/// One damage of these bytes at random; also says which.
fn harm(bytes: &mut [u8], chance: &mut Chance) -> String {
    let mut byte = chance.below(bytes.len());
    // Much of a file is empty, and damage there proves little.
    for _ in 0..8 {
        if bytes[byte] != 0 {
            break;
        }
        byte = chance.below(bytes.len());
    }
    let (sector, page) = (byte / SECTOR * SECTOR, byte / PAGE * PAGE);
    let end = |from: usize, length: usize| (from + length).min(bytes.len());
    match chance.below(5) {
        0 => {
            bytes[byte] ^= 1 << chance.below(8);
            format!("bit at {byte}")
        }
        1 => {
            bytes[byte] = bytes[byte].wrapping_add(1);
            format!("byte at {byte}")
        }
        2 => {
            let end = end(sector, SECTOR);
            bytes[sector..end].fill(0);
            format!("sector zeroed at {sector}")
        }
        3 => {
            let end = end(sector, SECTOR);
            bytes[sector..end].iter_mut().for_each(|byte| *byte = chance.byte());
            format!("sector overwritten at {sector}")
        }
        _ => {
            let end = end(page, PAGE);
            bytes[page..end].fill(0);
            format!("page zeroed at {page}")
        }
    }
}

/// What came of damage.
#[derive(Debug, Default)]
struct Tally {
    /// Not opened, by code.
    refused: BTreeMap<&'static str, u64>,
    /// Opened, and a read was refused.
    told: u64,
    right: u64,
    silent: Vec<String>,
}

impl Tally {
    async fn serve(&mut self, remains: &Remains, acknowledged: &Records, what: impl FnOnce() -> String) {
        let (_directory, path) = remains.put();
        let store = match SqliteStore::open(&SqliteOptions { readers: 1, ..SqliteOptions::at(&path) }) {
            Ok(store) => store,
            Err(error) => {
                *self.refused.entry(error.code()).or_default() += 1;
                return;
            }
        };
        let mut is_told = false;
        for (id, expected) in acknowledged {
            match read(&store, id).await {
                Ok(Some(found)) if found == *expected => {}
                Ok(found) => {
                    let found = if found.is_some() { "reads otherwise" } else { "is gone" };
                    self.silent.push(format!("{}: {id} {found}", what()));
                    return;
                }
                Err(_) => is_told = true,
            }
        }
        if is_told {
            self.told += 1;
        } else {
            self.right += 1;
        }
    }

    fn check(&self, kind: &str) {
        println!("{kind}: {self:?}");
        assert!(self.silent.is_empty(), "{kind}: {} silent: {:#?}", self.silent.len(), self.silent);
    }

    fn check_all_refused(&self, kind: &str) {
        self.check(kind);
        assert_eq!((self.told, self.right), (0, 0), "{kind}: {self:?}");
    }
}

fn damages() -> u64 {
    std::env::var("LONGHAUL_LOG_DAMAGES").map_or(DAMAGES, |damages| damages.parse().unwrap())
}

#[tokio::test]
async fn damaged_file_is_refused_or_served_right() {
    let life = live().await;
    for (kind, remains) in [("after a kill", &life.killed), ("after a stop", &life.stopped)] {
        let mut tally = Tally::default();
        for seed in 0..damages() {
            let (mut harmed, mut chance) = (remains.clone(), Chance(seed));
            let place = harm(harmed.file(), &mut chance);
            tally.serve(&harmed, &life.acknowledged, || format!("seed {seed}: {place}")).await;
        }
        tally.check(kind);
        assert!(tally.right > 0 && tally.refused.len() + usize::from(tally.told > 0) > 1, "{tally:?}");
    }
}

#[tokio::test]
async fn damaged_log_is_refused_or_served_right() {
    let life = live().await;
    let mut tally = Tally::default();
    for seed in 0..damages() {
        let (mut harmed, mut chance) = (life.killed.clone(), Chance(seed));
        let place = harm(harmed.log(), &mut chance);
        tally.serve(&harmed, &life.acknowledged, || format!("seed {seed}: {place}")).await;
    }
    tally.check("log");
    assert!(tally.refused["log_damaged"] * 10 > damages() * 9, "{tally:?}");
}

#[tokio::test]
async fn damaged_file_and_log_are_refused_or_served_right() {
    let life = live().await;
    let mut tally = Tally::default();
    for seed in 0..damages() {
        let (mut harmed, mut chance) = (life.killed.clone(), Chance(seed));
        let places = [harm(harmed.file(), &mut chance), harm(harmed.log(), &mut chance)];
        tally.serve(&harmed, &life.acknowledged, || format!("seed {seed}: {places:?}")).await;
    }
    tally.check("both");
}

#[tokio::test]
async fn shortened_or_missing_log_is_refused() {
    let life = live().await;
    let mut tally = Tally::default();
    for seed in 0..damages() {
        let (mut harmed, mut chance) = (life.killed.clone(), Chance(seed));
        let log = harmed.log();
        let length = chance.below(log.len());
        log.truncate(length);
        tally.serve(&harmed, &life.acknowledged, || format!("seed {seed}: cut to {length}")).await;
    }
    let mut gone = life.killed.clone();
    gone.0[1] = None;
    tally.serve(&gone, &life.acknowledged, || "gone".to_owned()).await;
    tally.check_all_refused("shortened");
}

#[tokio::test]
async fn older_file_or_older_log_is_refused() {
    let life = live().await;
    let mut tally = Tally::default();
    for (index, older) in life.earlier_stopped.iter().enumerate() {
        let mut swapped = life.stopped.clone();
        swapped.0[0].clone_from(&older.0[0]);
        if index + 1 < life.earlier_stopped.len() {
            tally.serve(&swapped, &life.acknowledged, || format!("file of run {index}, stopped")).await;
            swapped = life.killed.clone();
            swapped.0[0].clone_from(&older.0[0]);
        }
        tally.serve(&swapped, &life.acknowledged, || format!("file of run {index}")).await;
    }
    for (index, older) in life.earlier_killed.iter().enumerate().take(2) {
        for (kind, base) in [("killed", &life.killed), ("stopped", &life.stopped)] {
            let mut swapped = base.clone();
            swapped.0[1].clone_from(&older.0[1]);
            tally.serve(&swapped, &life.acknowledged, || format!("log of moment {index}, {kind}")).await;
        }
    }
    tally.check_all_refused("older");
}

#[tokio::test]
async fn log_of_another_store_is_refused() {
    let (life, other) = (live().await, live().await);
    let mut tally = Tally::default();
    for (kind, base) in [("killed", &life.killed), ("stopped", &life.stopped)] {
        for log in [&other.killed, &other.earlier_killed[0], &other.earlier_killed[1]] {
            let mut swapped = base.clone();
            swapped.0[1].clone_from(&log.0[1]);
            tally.serve(&swapped, &life.acknowledged, || format!("{kind}, log of another")).await;
        }
        // The whole of another store, under the watermark of this one.
        let mut swapped = base.clone();
        swapped.0[..2].clone_from_slice(&other.killed.0[..2]);
        tally.serve(&swapped, &life.acknowledged, || format!("{kind}, another store")).await;
    }
    tally.check_all_refused("foreign");
}

#[tokio::test]
async fn what_processes_leave_is_served_right() {
    let life = live().await;
    let mut tally = Tally::default();
    for remains in [&life.killed, &life.stopped] {
        let mut without_mark = remains.clone();
        without_mark.0[2] = None;
        for remains in [remains, &without_mark] {
            tally.serve(remains, &life.acknowledged, || "whole".to_owned()).await;
        }
    }
    // A commit that was under way: frames after the last acknowledged one, of which the last is torn.
    let mut torn = life.killed.clone();
    let tail = torn.log()[32..32 + 2_000].to_vec();
    torn.log().extend(tail);
    tally.serve(&torn, &life.acknowledged, || "torn".to_owned()).await;
    tally.check("whole");
    assert_eq!(tally.right, 5, "{tally:?}");
}

#[tokio::test]
async fn every_verb_refuses_a_damaged_log_and_leaves_it() {
    let life = live().await;
    let mut harmed = life.killed.clone();
    let log = harmed.log();
    let middle = log.len() / 2;
    log[middle] ^= 1;
    let (_directory, path) = harmed.put();
    let before = Remains::of(&path);
    let refused = |error: OpenError| {
        assert_eq!(error.code(), "log_damaged", "{error}");
        let told = error.to_string();
        assert!(told.contains("frame ") && told.contains("longhaul restore"), "{told}");
    };
    refused(open_for_reading(&path).map(|_| ()).unwrap_err());
    refused(open_for_rebuilding(&path).map(|_| ()).err().unwrap());
    refused(SqliteStore::open(&SqliteOptions::at(&path)).map(|_| ()).unwrap_err());
    assert!(Remains::of(&path).0 == before.0, "something was changed");
}

#[tokio::test]
async fn accepted_loss_is_written_down_and_gives_no_position_again() {
    let life = live().await;
    let mut older = life.stopped.clone();
    older.0[0].clone_from(&life.earlier_stopped[1].0[0]);
    let (_directory, path) = older.put();
    let error = SqliteStore::open(&SqliteOptions::at(&path)).map(|_| ()).unwrap_err();
    assert_eq!(error.code(), "commits_lost", "{error}");
    let accepting = SqliteOptions { accept_loss: Some(at(300)), ..SqliteOptions::at(&path) };
    let store = SqliteStore::open(&accepting).unwrap();
    let facts = life.acknowledged.values().flat_map(|record| &record.facts);
    let lost = facts.map(|fact| fact.position).max().unwrap();
    let written = write(&store, &job("after"), vec![created()], at(301)).await;
    assert!(written.position > lost, "{written:?}, {lost}");
    drop(store);
    // Accepted once, it is a store like any other, and says what happened to it.
    let store = SqliteStore::open(&SqliteOptions::at(&path)).unwrap();
    drop(store);
    let connection = open_for_reading(&path).unwrap();
    let loss = store_sql::accepted_loss(&connection).unwrap().unwrap();
    assert_eq!((loss.at, loss.acknowledged), (at(300), lost));
    assert!(loss.position < lost);
    assert_eq!(verify(&connection).unwrap().differences, []);
}
